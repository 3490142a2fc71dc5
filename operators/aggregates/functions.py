"""Which class computes a call of an aggregation."""

from __future__ import annotations

import pyarrow as pa

from sweeparea.operators.aggregates.calls import Argument, BaseCall
from sweeparea.operators.aggregates.extrema import Extremum, First, Single
from sweeparea.operators.aggregates.holistic import Bits, Mode, Percentile
from sweeparea.operators.aggregates.instants import Elements
from sweeparea.operators.aggregates.moment_sums import MomentSum
from sweeparea.operators.aggregates.names import SUMS_OF_POWERS, TOTALS
from sweeparea.operators.aggregates.sums import Sum
from sweeparea.operators.aggregates.user_values import UserValue

_CLASSES: dict[str, type[Argument]] = {
    **dict.fromkeys(TOTALS, Sum),
    **dict.fromkeys(SUMS_OF_POWERS, MomentSum),
    "COUNT": Argument,
    "SINGLE_VALUE": Single,
    "MIN": Extremum,
    "MAX": Extremum,
    "FIRST": First,
    "PERCENTILE": Percentile,
    "PERCENTILE_DISC": Percentile,
    "MODE": Mode,
    "BIT_AND": Bits,
    "BIT_OR": Bits,
    "BIT_XOR": Bits,
    "USER": UserValue,
}


def argument_of(elements: Elements, table: pa.Table, i: int, call: BaseCall) -> Argument | None:
    """The argument of call number i; None for COUNT(*)."""
    if call.argument is None:
        return None
    return _CLASSES[call.function](elements, table, i, call)
