"""The settings of queries (WITH) and of an application (SET), with what each of them takes.

A new setting is one more entry of ``SETTINGS``. Every value is checked where it is read, in a file or an environment,
so that no run meets one that it cannot use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sweeparea.cql.text.errors import BindError, ParseError, Place, listing, nearest


@dataclass(frozen=True)
class Setting:
    """``choices`` are the values it takes; without any, ``pattern`` says their form (in any case) and ``example`` shows
    one. ``words`` gives what else than ``all`` or ``none`` may stand in a list with commas. ``whole``: it belongs to
    an application, so no query has its own.
    """

    about: str
    choices: tuple[str, ...] = ()
    pattern: str = ""
    example: str = ""
    words: Callable[[], tuple[str, ...]] | None = None
    whole: bool = False


def _rules() -> tuple[str, ...]:
    # rules know all nodes, and a DAG file that is parsed needs none
    from sweeparea.cql.rewrites import NAMES

    return NAMES


_ROWS = r"[0-9_]{0,12}[1-9][0-9_]{0,12}"
_LENGTH = r"\s*[1-9][0-9]{0,5}\s*"
_UNIT = r"(second|minute|hour|day|week)s?\s*"
_FIELD = r"[0-9*/,\-]{1,60}"
_CRON = rf"\s*{_FIELD}(\s+{_FIELD}){{4}}\s*"
_TAG = r"\s*[^\s,][^,]{0,99}"

SETTINGS: dict[str, Setting] = {
    "range_bounds": Setting("what a plain [Range T] means", ("inclusive", "exclusive")),
    "strategy": Setting("how ends travel", ("upa", "negative", "direct")),
    "strict": Setting("refuse what runs by snapshot expansion", ("true", "false")),
    "slice.max_rows": Setting("about how many new rows one slice takes", (), _ROWS, "1000000"),
    "rstream.max_rows_per_slice": Setting("how many rows RSTREAM may add in a slice", (), _ROWS, "10000000"),
    "state.expiry_partitions": Setting(
        "how many parts the log of a join's side divides its window into", (), r"[1-9][0-9]{0,3}", "10"
    ),
    "state.lazy_percent": Setting("how late expired rows go, in % of the window", (), r"[1-9][0-9]?|100", "5"),
    "backfill_slice": Setting("length of the slices of an Airflow backfill", (), _LENGTH + _UNIT, "6 hours"),
    "maintenance.retention": Setting(
        "how long former versions of tables can be read", (), _LENGTH + r"(hour|day|week)s?\s*", "7 days", whole=True
    ),
    "maintenance.every": Setting(
        "how often Airflow maintains an application", (), _LENGTH + r"(minute|hour|day)s?\s*", "1 hour", whole=True
    ),
    "quality.retain": Setting(
        "how long verdicts and samples are kept", (), _LENGTH + r"(hour|day|week)s?\s*", "90 days", whole=True
    ),
    "owner": Setting("owner of its Airflow DAG", (), r"\s*[^\s,][^,]{0,99}", "data-platform"),
    "tags": Setting("tags of its Airflow DAG, by comma", (), rf"{_TAG}(,{_TAG}){{0,19}}", "sales, hourly"),
    "retries": Setting("how often Airflow tries a failed task again", (), r"[0-9]{1,2}", "2"),
    "retry_delay": Setting("time before the first of these", (), _LENGTH + _UNIT, "10 seconds"),
    "timeout": Setting("after which Airflow ends a task", (), _LENGTH + _UNIT, "2 hours"),
    "pool": Setting("Airflow's pool that bounds how many of its tasks run", (), r"[\w.\-]{1,200}", "spark"),
    "priority": Setting("weight of its tasks among those that wait in Airflow", (), r"[1-9][0-9]{0,5}", "10"),
    "dag": Setting(
        "name of the Airflow DAG that runs it together with others", (), r"[A-Za-z0-9_.\-]{1,200}", "hourly"
    ),
    "parallelism": Setting("how many queries such a DAG runs at a time", (), r"[1-9][0-9]?", "2", whole=True),
    "spark": Setting("Airflow's connection to the Spark of its tasks", (), r"[\w.\-]{1,200}", "spark_prod"),
    "storage": Setting(
        "Airflow's connection with the keys of the object store of its tables", (), r"[\w.\-]{1,200}", "lake_prod"
    ),
    "python": Setting(
        "Python under which its tasks run, where Airflow's own has no Spark",
        (),
        r"/[^\x00-\x1f]{1,500}",
        "/opt/sweeparea/bin/python",
    ),
    "pool.slots": Setting(
        "how many tasks run at a time in a pool that `make up` makes", (), r"[1-9][0-9]{0,3}", "2", whole=True
    ),
    "schedule": Setting(
        "when its Airflow DAG runs, as cron in UTC, in place of when it is behind", (), _CRON, "*/15 * * * *"
    ),
    "alert_after": Setting(
        "how far it may be behind the clock until somebody is alerted", (), _LENGTH + _UNIT, "15 minutes"
    ),
    "alert_quality": Setting(
        "of which expectations that are not met somebody is alerted", ("warn", "all", "off"), whole=True
    ),
    "notify": Setting(
        "who is alerted: an Airflow notifier in the application's Python code",
        (),
        r"[A-Za-z_][\w.]{0,199}:[A-Za-z_]\w{0,99}",
        "alerts:on_call",
    ),
    "rewrites": Setting("which rewrite rules may change plans", example="all", words=_rules),
}


def check_settings(
    settings: Mapping[str, str], places: Mapping[str, Place], of_query: bool = False
) -> list[BindError | ParseError]:
    """What is wrong with settings: names that there are not (BindError), values that do not fit (ParseError).

    ``of_query``: they stand in a query's WITH, where those of a whole application are refused.
    """
    faults = (fault_of(name, value, places.get(name), of_query) for name, value in settings.items())
    return [fault for fault in faults if fault is not None]


def fault_of(name: str, value: str, place: Place | None, of_query: bool = False) -> BindError | ParseError | None:
    """What is wrong with one setting, or None."""
    setting = SETTINGS.get(name.lower())
    if setting is None:
        return BindError(
            f"there is no setting {name}", place, nearest(name, SETTINGS) or f"Settings are {listing(SETTINGS)}"
        )
    if of_query and setting.whole:
        return BindError(
            f"setting {name} belongs to the application, not to one query",
            place,
            f"Write SET {name} = '{value}' beside the queries",
        )
    if setting.words is not None:
        return _fault_of_words(name, value, place, setting.words())
    if setting.choices:
        if value.lower() in setting.choices:
            return None
        return ParseError(
            f"setting {name} is {' or '.join(setting.choices)}, not {value!r}",
            place,
            nearest(value, setting.choices) or f"Write {name} = '{setting.choices[0]}'",
        )
    if re.fullmatch(setting.pattern, value, re.ASCII | re.IGNORECASE):
        return None
    return ParseError(f"setting {name} cannot be {value!r}", place, f"Write {name} = '{setting.example}'")


def _fault_of_words(name: str, value: str, place: Place | None, known: tuple[str, ...]) -> ParseError | None:
    words = [word.strip().lower() for word in value.split(",")]
    wrong = [word for word in words if word not in known]
    if not wrong or words in (["all"], ["none"]):
        return None
    if {*wrong} <= {"all", "none"}:
        return ParseError(f"setting {name} is {wrong[0]} alone, or names of rules, not {value!r}", place)
    unknown = next(word for word in wrong if word not in ("all", "none"))
    return ParseError(
        f"setting {name} cannot be {value!r}: there is no rule {unknown or 'without a name'}",
        place,
        nearest(unknown, known) or f"Write all, none, or names of rules: {listing(known)}",
    )
