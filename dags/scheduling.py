"""How Airflow runs a DAG, by settings of query and application: owner, tags, retries, timeout, pool, priority."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

RETRY_DELAY = timedelta(seconds=10)
LONGEST_RETRY_DELAY = timedelta(minutes=10)
OVERRIDABLE = frozenset(
    {
        "owner", "tags", "retries", "retry_delay", "timeout", "pool", "priority", "dag", "parallelism", "schedule",
        "backfill_slice", "spark", "python", "storage",
    }
)  # fmt: skip
"""Settings that are about DAGs alone, so that who makes the DAGs may set them."""
_LENGTH = re.compile(r"\s*(\d+)\s*(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Scheduling:
    """``retry_delay`` is that before the first repetition; it doubles up to ``LONGEST_RETRY_DELAY``, or stays where it
    is longer. ``timeout``: after which a task is ended, None: never. ``pool``: one of Airflow's, None: its default.
    ``notify``: who is alerted when it fails or falls behind (``alerts.py``), None: nobody. ``cron``: when a query runs,
    None: when it is behind. Of its tasks (``connections.py``, ``second_python.py``) ``spark`` names Airflow's
    connection to the Spark, None: the installation's own; ``storage`` that with the keys of the object store, None:
    those of the environment; ``python`` the interpreter, None: Airflow's.
    """

    owner: str = "sweeparea"
    tags: tuple[str, ...] = ()
    retries: int = 2
    retry_delay: timedelta = RETRY_DELAY
    timeout: timedelta | None = None
    pool: str | None = None
    priority: int = 1
    notify: str | None = None
    spark: str | None = None
    python: str | None = None
    storage: str | None = None
    cron: str | None = None

    @staticmethod
    def of(settings: Mapping[str, str]) -> Scheduling:
        """From settings whose values the catalog has checked."""
        found: dict[str, Any] = {}
        for name, read in (
            ("owner", str.strip),
            ("tags", lambda text: tuple(dict.fromkeys(tag.strip() for tag in text.split(",")))),
            ("retries", int),
            ("retry_delay", length),
            ("timeout", length),
            ("pool", str),
            ("priority", int),
            ("notify", str),
            ("spark", str),
            ("python", str),
            ("storage", str),
        ):
            if name in settings:
                found[name] = read(settings[name])
        if "schedule" in settings:
            found["cron"] = " ".join(settings["schedule"].split())
        return Scheduling(**found)

    @property
    def arguments(self) -> dict[str, Any]:
        """The ``default_args`` of a DAG: what its tasks are given."""
        given: dict[str, Any] = {
            "owner": self.owner,
            "retries": self.retries,
            "retry_delay": self.retry_delay,
            "retry_exponential_backoff": 2.0,
            "max_retry_delay": max(LONGEST_RETRY_DELAY, self.retry_delay),
            "execution_timeout": self.timeout,
            "priority_weight": self.priority,
        }
        return given | ({} if self.pool is None else {"pool": self.pool})


USUAL = Scheduling()
"""Where nothing is set."""


def length(text: str) -> timedelta:
    """``6 hours`` as a length of time. Which texts are one, the catalog has checked."""
    match = _LENGTH.fullmatch(text)
    assert match is not None, text
    return timedelta(**{f"{match[2].lower()}s": int(match[1])})
