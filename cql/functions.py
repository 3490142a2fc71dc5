"""Spark's functions by what the language makes of them. Names in upper case; whatever is not listed is a scalar
function of Spark's."""

from __future__ import annotations

from functools import cache
from pathlib import Path


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SUPPORTED_AGGREGATES = {"COUNT": "COUNT", "SUM": "SUM", "AVG": "AVG", "MEAN": "AVG", "MIN": "MIN", "MAX": "MAX"}
"""Spelling -> the function of ``AggregateCall``. A new aggregate is one more entry, and its result type in
``types.py``."""

OTHER_AGGREGATES = _names(
    """
    ANY ANY_VALUE ARRAY_AGG BIT_AND BIT_OR BIT_XOR BITMAP_AND_AGG BITMAP_CONSTRUCT_AGG BITMAP_OR_AGG BOOL_AND
    BOOL_OR COLLECT_LIST COLLECT_SET CORR COUNT_IF COVAR_POP COVAR_SAMP EVERY FIRST FIRST_VALUE GROUPING
    GROUPING_ID HISTOGRAM_NUMERIC KURTOSIS LAST LAST_VALUE LISTAGG STRING_AGG MAX_BY MEDIAN MIN_BY MODE
    PERCENTILE PERCENTILE_CONT PERCENTILE_DISC REGR_AVGX REGR_AVGY REGR_COUNT REGR_INTERCEPT REGR_R2 REGR_SLOPE
    REGR_SXX REGR_SXY REGR_SYY SKEWNESS SOME STD STDDEV STDDEV_POP STDDEV_SAMP TRY_AVG TRY_SUM VAR_POP VAR_SAMP
    VARIANCE SCHEMA_OF_VARIANT_AGG PRODUCT
    """
)

SKETCHES = _names(
    """
    APPROX_COUNT_DISTINCT APPROX_PERCENTILE PERCENTILE_APPROX COUNT_MIN_SKETCH HLL_SKETCH_AGG HLL_UNION_AGG
    APPROX_TOP_K APPROX_TOP_K_ACCUMULATE APPROX_TOP_K_COMBINE KLL_SKETCH_AGG_BIGINT KLL_SKETCH_AGG_DOUBLE
    KLL_SKETCH_AGG_FLOAT THETA_SKETCH_AGG THETA_UNION_AGG THETA_INTERSECTION_AGG
    """
)

NON_DETERMINISTIC = _names(
    """
    RAND RANDOM RANDN RANDSTR UNIFORM UUID NOW CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME CURDATE
    LOCALTIMESTAMP MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID SHUFFLE INPUT_FILE_NAME INPUT_FILE_BLOCK_START
    INPUT_FILE_BLOCK_LENGTH CURRENT_USER USER SESSION_USER CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA
    VERSION REFLECT JAVA_METHOD TRY_REFLECT
    """
)
"""Their value depends on when, where or by whom a slice is run, so no two runs of a query would agree."""

SPECIAL_INSTANTS = frozenset({"now", "today", "tomorrow", "yesterday"})
"""Strings that Spark reads as the current time in TIMESTAMP and DATE literals."""

WINDOW_ONLY = _names(
    """
    ROW_NUMBER RANK DENSE_RANK PERCENT_RANK CUME_DIST NTILE LAG LEAD NTH_VALUE
    """
)

GENERATORS = _names(
    """
    EXPLODE EXPLODE_OUTER POSEXPLODE POSEXPLODE_OUTER INLINE INLINE_OUTER STACK JSON_TUPLE VARIANT_EXPLODE
    """
)

SPARK_STREAMING = _names("WINDOW SESSION_WINDOW WINDOW_TIME")
"""Spark Structured Streaming's windows; the language has its own."""

WINDOW_BOUNDS = _names("WINDOW_START WINDOW_END")

UNIT_FIRST = _names(
    """
    TIMESTAMPADD TIMESTAMPDIFF DATEADD DATE_ADD DATEDIFF DATE_DIFF TIMEDIFF
    """
)
"""With three arguments, the first is a unit (``TIMESTAMPDIFF(HOUR, a, b)``), which reads like a column."""

AGGREGATES = frozenset(SUPPORTED_AGGREGATES) | OTHER_AGGREGATES | SKETCHES


@cache
def spark_functions() -> frozenset[str]:
    """All functions of Spark's, lower case, with those that its grammar has without listing them."""
    lines = Path(__file__).with_name("spark_functions.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#")) | {n.lower() for n in UNIT_FIRST}
