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
ORDERED = frozenset({"FIRST", "LAST", "MAX_BY", "MIN_BY"})
"""The value of the first row in an order."""
OF_VALUES = frozenset({"PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC", "MODE", "BIT_AND", "BIT_OR", "BIT_XOR"})
"""Their state is the bag of the values."""
