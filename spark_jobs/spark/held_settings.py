"""Settings of a session for a time, though several threads share it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class _HeldSetting:
    before: str | None
    holders: int = 1


_lock = threading.Lock()
_held: dict[tuple[Any, str], _HeldSetting] = {}
"""What is held, by session and key."""


@contextmanager
def settings_held(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """While inside, ``spark`` has the settings ``wanted``. As it was before it is again when the last thread has left
    that holds them; all must want the same value of a key.
    """
    session = _identity(spark)
    with ExitStack() as stack:
        for key, value in wanted.items():
            with _lock:
                _take(spark, session, key, value)
            stack.callback(_give_back, spark, session, key)
        yield


def _take(spark: SparkSession, session: Any, key: str, value: str) -> None:
    if held := _held.get((session, key)):
        held.holders += 1
        return
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    _held[session, key] = _HeldSetting(before)


def _give_back(spark: SparkSession, session: Any, key: str) -> None:
    with _lock:
        held = _held[session, key]
        held.holders -= 1
        if held.holders:
            return
        del _held[session, key]
        if held.before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, held.before)


def _identity(spark: SparkSession) -> Any:
    """The session itself: a process may have several objects of Python for one."""
    return spark.session_id if hasattr(spark, "session_id") else spark._jsparkSession  # pyright: ignore
