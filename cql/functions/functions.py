"""Spark's functions by what the language makes of them. Names in upper case; whatever is not listed is a scalar
function of Spark's.

The classes are complete for Spark 4.2's own functions: what its analyzer calls non-deterministic, what its optimizer
replaces by the time, the user or the session, and what its documentation calls approximate.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from sweeparea.cql.text.errors import Place, RefusedError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SKETCHES = _names(
    """
    APPROX_COUNT_DISTINCT APPROX_PERCENTILE PERCENTILE_APPROX COUNT_MIN_SKETCH HISTOGRAM_NUMERIC HLL_SKETCH_AGG
    HLL_UNION_AGG APPROX_TOP_K APPROX_TOP_K_ACCUMULATE APPROX_TOP_K_COMBINE KLL_SKETCH_AGG_BIGINT KLL_SKETCH_AGG_DOUBLE
    KLL_SKETCH_AGG_FLOAT KLL_MERGE_AGG_BIGINT KLL_MERGE_AGG_DOUBLE KLL_MERGE_AGG_FLOAT THETA_SKETCH_AGG
    THETA_UNION_AGG THETA_INTERSECTION_AGG TUPLE_SKETCH_AGG_DOUBLE TUPLE_SKETCH_AGG_INTEGER TUPLE_UNION_AGG_DOUBLE
    TUPLE_UNION_AGG_INTEGER TUPLE_INTERSECTION_AGG_DOUBLE TUPLE_INTERSECTION_AGG_INTEGER
    """
)
"""Aggregates that approximate; their exact counterparts are in ``_EXACT``."""

_EXACT = {
    "APPROX_COUNT_DISTINCT": "COUNT(DISTINCT a)",
    "APPROX_PERCENTILE": "PERCENTILE(a, 0.5)",
    "PERCENTILE_APPROX": "PERCENTILE(a, 0.5)",
    "HISTOGRAM_NUMERIC": "COUNT(*) with GROUP BY width_bucket(a, 0, 100, 10)",
    "COUNT_MIN_SKETCH": "COUNT(*) with GROUP BY a",
    "APPROX_TOP_K": "COUNT(*) with GROUP BY a ORDER BY 2 DESC LIMIT 5",
    "HLL_SKETCH_AGG": "COUNT(DISTINCT a)",
    "THETA_SKETCH_AGG": "COUNT(DISTINCT a)",
}

NON_DETERMINISTIC = {
    **dict.fromkeys(
        _names("NOW CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME CURDATE LOCALTIMESTAMP UNIX_TIMESTAMP CURRENT_INSTANT"),
        "Use the stream's instant ts, or a column that the source fills",
    ),
    **dict.fromkeys(
        _names("RAND RANDOM RANDN RANDSTR UNIFORM SHUFFLE"),
        "Derive numbers from the row itself: pmod(hash(a, b), 100)",
    ),
    **dict.fromkeys(
        _names("UUID MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID"), "Derive an id from the row itself: sha2(a, 256)"
    ),
    **dict.fromkeys(
        _names("INPUT_FILE_NAME INPUT_FILE_BLOCK_START INPUT_FILE_BLOCK_LENGTH"),
        "Have the source put the file's name into a column",
    ),
    **dict.fromkeys(
        _names("CURRENT_USER USER SESSION_USER CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA CURRENT_PATH VERSION"),
        "Write the value itself as a literal",
    ),
    "CURRENT_TIMEZONE": "The engine's time zone is UTC: write 'UTC'",
    **dict.fromkeys(
        _names("REFLECT JAVA_METHOD TRY_REFLECT"),
        "Register a function of your own: CREATE FUNCTION f AS 'module:object'",
    ),
    **dict.fromkeys(_names("COLLATIONS SQL_KEYWORDS PYTHON_WORKER_LOGS"), "Declare a RELATION over a table"),
}
"""Functions whose value depends on when, where or by whom a slice is run, so that no two runs of a query would agree;
with the way out."""

_UNREPEATABLE = "its value depends on when and where a slice is run, so no two runs would agree"

_SPECIAL_INSTANT = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*", re.IGNORECASE)

WINDOW_ONLY = _names("ROW_NUMBER RANK DENSE_RANK PERCENT_RANK CUME_DIST NTILE LAG LEAD NTH_VALUE")

GENERATORS = _names(
    """
    EXPLODE EXPLODE_OUTER POSEXPLODE POSEXPLODE_OUTER INLINE INLINE_OUTER STACK JSON_TUPLE VARIANT_EXPLODE
    VARIANT_EXPLODE_OUTER
    """
)

SPARK_STREAMING = {
    "WINDOW": "Write a window behind the stream: S [Tumbling INTERVAL 1 HOUR]",
    "SESSION_WINDOW": "Write a window behind the stream: S [Session INTERVAL 5 MINUTES Partition By a]",
    "WINDOW_TIME": "Write WINDOW_END(S), with a window behind the stream: S [Tumbling INTERVAL 1 HOUR]",
}
"""Spark Structured Streaming's windows, and what to write: the language has its own."""

WINDOW_BOUNDS = _names("WINDOW_START WINDOW_END")

UNIT_FIRST = _names(
    """
    TIMESTAMPADD TIMESTAMPDIFF DATEADD DATE_ADD DATEDIFF DATE_DIFF TIMEDIFF
    """
)
"""With three arguments, the first is a unit (``TIMESTAMPDIFF(HOUR, a, b)``), which reads like a column."""


_TIME_OF_DAY = re.compile(r"\s*T?\d{1,2}:\d")


def is_special_instant(text: str) -> bool:
    """Whether Spark reads a string as the current time where it becomes a DATE or TIMESTAMP: ``'today'``, ``'now
    CET'``, or a time of day, which is one of the current day."""
    return _SPECIAL_INSTANT.fullmatch(text) is not None or _TIME_OF_DAY.match(text) is not None


def refuse_non_deterministic(name: str, arguments: int, place: Place) -> None:
    """RefusedError for a function that gives something else on every run."""
    if name not in NON_DETERMINISTIC or (name == "UNIX_TIMESTAMP" and arguments):
        return
    if name == "CURRENT_INSTANT":
        raise RefusedError(
            "current_instant is not offered: a result that holds the instant would change at every tick",
            place,
            "The result's ts or valid_from is that instant; for ages, choose a window: S [Range INTERVAL 1 HOUR]",
        )
    raise RefusedError(f"{name.lower()} is not deterministic: {_UNREPEATABLE}", place, NON_DETERMINISTIC[name])


def refuse_random_iv(name: str, arguments: list[str | None], place: Place) -> None:
    """RefusedError for AES_ENCRYPT where it draws an initialization vector: all modes but ECB, if none is given.
    ``arguments`` are the literals, None where another expression stands.
    """
    if name != "AES_ENCRYPT" or len(arguments) > 4 or (len(arguments) > 2 and (arguments[2] or "").upper() == "ECB"):
        return
    raise RefusedError(
        "aes_encrypt without an initialization vector is not deterministic: it draws a new one for each row",
        place,
        "Give one, aes_encrypt(a, key, 'GCM', 'DEFAULT', iv), or encrypt where the result is read",
    )


def refuse_collation(name: str, place: Place) -> None:
    """RefusedError for a function that makes strings of another equality than the engine's."""
    if name in ("COLLATE", "COLLATION"):
        raise RefusedError(
            "a collation is not offered: the engine compares strings by their bytes",
            place,
            "Compare LOWER(a), or a key of your own",
        )


def refuse_aggregate(name: str, place: Place) -> None:
    """RefusedError for an aggregate of Spark's that is not exact, or none of tables."""
    if name in SKETCHES:
        raise RefusedError(
            f"{name.lower()} is approximate: its answer depends on the order of the rows, so no two runs agree",
            place,
            f"The exact answer is {_EXACT[name]}" if name in _EXACT else "Use COUNT(DISTINCT a) or PERCENTILE(a, 0.5)",
        )
    if name == "MEASURE":
        raise RefusedError("measure(..) is not offered: it reads metric views", place, "Write the aggregate itself")


@cache
def spark_functions() -> frozenset[str]:
    """All functions of Spark's, lower case, with those that its grammar has without listing them."""
    lines = Path(__file__).with_name("spark_functions.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#")) | {n.lower() for n in UNIT_FIRST}
