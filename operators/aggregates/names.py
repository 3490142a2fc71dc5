"""The aggregates' names by what their state is; imports nothing, as the language asks too."""

from __future__ import annotations

SUMS_OF_POWERS = frozenset(
    [
        *("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "SKEWNESS", "KURTOSIS"),
        *("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"),
        *("REGR_SXX", "REGR_SYY", "REGR_SXY"),
    ]
)
"""A formula of exact sums of powers and products (``moments.py``)."""
TOTALS = frozenset({"SUM", "TRY_SUM"})
ADDITIVE = SUMS_OF_POWERS | TOTALS | {"COUNT"}
"""Their state is a sum: elements of one group that end together are one row."""
AVERAGES = frozenset({"AVG", "TRY_AVG"})
"""A sum divided by a count."""
ORDERED = frozenset({"FIRST", "LAST", "MAX_BY", "MIN_BY"})
"""The value of the first row in an order."""
OF_VALUES = frozenset({"PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "MODE", "BIT_AND", "BIT_OR", "BIT_XOR"})
"""Their state is the bag of the values."""
INCREMENTAL = TOTALS | {"COUNT", "AVG", "MIN", "MAX", "TRY_AVG", "SINGLE_VALUE"} | SUMS_OF_POWERS | OF_VALUES | ORDERED
"""Aggregates that a sweep keeps up to date by adding and taking away."""
SKIP_NULLS = INCREMENTAL - ORDERED - {"SINGLE_VALUE"}
"""Those that leave out NULLs: ``f(x) FILTER (WHERE c)`` is ``f(IF(c, x, NULL))``."""
OF_DISTINCT = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
"""Those that can stand above a duplicate elimination."""
WINDOW_ONLY = frozenset(
    ["ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD", "NTH_VALUE"]
)
"""Functions that need OVER: no aggregates."""
