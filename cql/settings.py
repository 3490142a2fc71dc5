"""The settings of queries (WITH) and of an application (SET), with what each of them takes.

A new setting is one more entry of ``SETTINGS``; whoever reads it checks its value further where that needs more than
its form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sweeparea.cql.errors import BindError, ParseError, Place, listing, nearest


@dataclass(frozen=True)
class Setting:
    """``choices`` are the values it takes; without any, ``pattern`` says their form and ``example`` shows one."""

    about: str
    choices: tuple[str, ...] = ()
    pattern: str = r".*\S.*"
    example: str = ""


SETTINGS: dict[str, Setting] = {
    "range_bounds": Setting("what a plain [Range T] means", ("inclusive", "exclusive")),
    "strategy": Setting("how negative tuples travel", ("upa", "negative", "direct")),
    "strict": Setting("refuse what runs by snapshot expansion", ("true", "false")),
    "slice.max_rows": Setting("about how many new rows one slice takes", (), r"-?[0-9_]+", "1000000"),
    "rstream.max_rows_per_slice": Setting("how many rows RSTREAM may add in a slice", (), r"[0-9_]+", "10000000"),
    "state.expiry_partitions": Setting(
        "how many parts the log of a join's side divides its window into", (), r"[1-9][0-9]{0,3}", "10"
    ),
    "state.lazy_percent": Setting("how late expired rows go, in % of the window", (), r"[1-9][0-9]?|100", "5"),
    "backfill_slice": Setting("length of the slices of a backfill", (), r".*\S.*", "6 hours"),
    "maintenance.retention": Setting(
        "how long former versions of tables can be read", (), r"\s*[1-9][0-9]*\s*(hour|day|week)s?\s*", "7 days"
    ),
    "maintenance.every": Setting(
        "how often Airflow maintains an application", (), r"\s*[1-9][0-9]*\s*(minute|hour|day)s?\s*", "1 hour"
    ),
    "rewrites": Setting("which rewrite rules may change plans", (), r"[a-z_]+(\s*,\s*[a-z_]+)*", "all"),
    "dag": Setting("name of the Airflow DAG that runs it", (), r"[\w.\-]+", "flights"),
}


def check_settings(settings: Mapping[str, str], places: Mapping[str, Place]) -> list[BindError | ParseError]:
    """What is wrong with settings: names that there are not (BindError), values that do not fit (ParseError)."""
    faults = (fault_of(name, value, places.get(name)) for name, value in settings.items())
    return [fault for fault in faults if fault is not None]


def fault_of(name: str, value: str, place: Place | None) -> BindError | ParseError | None:
    """What is wrong with one setting, or None."""
    setting = SETTINGS.get(name.lower())
    if setting is None:
        return BindError(
            f"there is no setting {name}", place, nearest(name, SETTINGS) or f"Settings are {listing(SETTINGS)}"
        )
    if setting.choices:
        if value.lower() in setting.choices:
            return None
        return ParseError(
            f"setting {name} is {' or '.join(setting.choices)}, not {value!r}",
            place,
            nearest(value, setting.choices) or f"Write {name} = '{setting.choices[0]}'",
        )
    if re.fullmatch(setting.pattern, value, re.DOTALL):
        return None
    return ParseError(f"setting {name} cannot be {value!r}", place, f"Write {name} = '{setting.example}'")
