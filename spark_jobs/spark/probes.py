"""What a Spark session was asked once and is not asked again; it is noted with the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Passed(Protocol):
    """What a session was probed for: a set, or its lease."""

    def __contains__(self, probe: object, /) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def add(self, probe: str, /) -> None: ...


def note_with(spark: SparkSession, passed: Passed) -> None:
    """Has what the session is asked noted in ``passed``, and believes what stands there."""
    _SESSIONS[_identity(spark)] = passed


def asked_once(spark: SparkSession, probe: str, ask: Callable[[], str]) -> str:
    """The answer to a probe, as it is noted with the session."""
    passed = _SESSIONS.setdefault(_identity(spark), set())
    for noted in passed:
        if noted.startswith(probe):
            return noted.removeprefix(probe)
    answer = ask()
    passed.add(probe + answer)
    return answer


def _identity(spark: Any) -> str:
    # of a classic session its application, of a Connect session its own id
    context = getattr(spark, "_jsparkSession", None)
    return spark.sparkContext.applicationId if context is not None else spark.session_id


_SESSIONS: dict[str, Passed] = {}
