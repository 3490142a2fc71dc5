"""Expressions that Arrow computes as Spark does, for rows that workers read without Spark SQL (``reading.py``).

Only what gives the same value, bit for bit, and cannot fail: columns, constants, comparisons of values of one type, the
logic of three values, IS NULL, CASE, the remainder by a constant, products of decimals that fit, instants as texts.
``evaluation/in_arrow.py`` makes a tree of a text or says that Spark has to compute it.

>>> price = ColumnValue("p", pa.int64())
>>> tree = CallValue("greater", (price, ConstantValue(3, pa.int64())), pa.bool_())
>>> evaluated(tree, pa.table({"p": [1, 5, None]})).to_pylist()
[False, True, None]
>>> selected(pa.table({"p": [1, 5, None]}), tree).column("p").to_pylist()
[5]
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeparea.operators.base.later import later
from sweeparea.operators.values.bag import BAG

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from sweeparea.operators.linear import instant_texts
else:
    np, pa, pc, instant_texts = later("numpy", "pyarrow", "pyarrow.compute", "sweeparea.operators.linear.instant_texts")


@dataclass(frozen=True)
class ColumnValue:
    """A column of the rows."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class ConstantValue:
    """A value; NULL only as one of CASE."""

    value: Any
    type: pa.DataType


@dataclass(frozen=True)
class CallValue:
    """A function of values, one of Arrow's or of ``OWN``; ``type``: that of its result."""

    function: str
    arguments: tuple[Computed, ...]
    type: pa.DataType


Computed = ColumnValue | ConstantValue | CallValue


def _remainder(value: pa.ChunkedArray, by: pa.Scalar) -> pa.Array:
    """Spark's %: it has the sign of the dividend. ``by`` is above zero."""
    array = value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
    left = np.fmod(pc.fill_null(array, 0).to_numpy(zero_copy_only=False), by.as_py())
    return pa.array(left, array.type, mask=array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None)


def _case(*parts: Any) -> Any:
    """CASE: conditions, each with its value behind it, then the value where none of them is TRUE."""
    found = parts[-1]
    for condition, value in reversed(list(zip(parts[:-1:2], parts[1:-1:2], strict=True))):
        found = pc.if_else(pc.fill_null(condition, fill_value=False), value, found)
    return found


def _date_format(instants: pa.ChunkedArray, pattern: pa.Scalar) -> pa.Array:
    return instant_texts.written(instants, pattern.as_py())


OWN: dict[str, Callable[..., Any]] = {"remainder": _remainder, "case": _case, "date_format": _date_format}
"""Functions that Arrow has not, or not as Spark has them."""


def evaluated(tree: Computed, rows: pa.Table) -> Any:
    """The expression's value for each row, of its type: an array, or a scalar where no column takes part."""
    if isinstance(tree, ConstantValue):
        return pa.scalar(tree.value, tree.type)
    if isinstance(tree, ColumnValue):
        column = rows.column(tree.name)
        return column if column.type == tree.type else column.cast(tree.type)
    arguments = [evaluated(argument, rows) for argument in tree.arguments]
    own = OWN.get(tree.function)
    made = pc.call_function(tree.function, arguments) if own is None else own(*arguments)
    return made if made.type == tree.type else made.cast(tree.type)


def columns_of(tree: Computed) -> Iterator[str]:
    """The columns that take part in an expression, perhaps several times."""
    if isinstance(tree, ColumnValue):
        yield tree.name
    elif isinstance(tree, CallValue):
        for argument in tree.arguments:
            yield from columns_of(argument)


def selected(rows: pa.Table, condition: Computed) -> pa.Table:
    """The rows for which a condition is TRUE."""
    return rows.filter(evaluated(condition, rows))


def projected(
    rows: pa.Table, outputs: Sequence[tuple[str, Computed]], kept: Sequence[tuple[str, str]] = ()
) -> pa.Table:
    """A bag's rows with other columns, by name: computed ones, and ``kept`` ones (name, column) as they are; ``__ts``,
    ``__te`` and ``__n`` stay.
    """
    columns = [evaluated(tree, rows) for _, tree in outputs]
    filled = [pa.repeat(c, rows.num_rows) if isinstance(c, pa.Scalar) else c for c in columns]
    names = [name for name, _ in outputs] + [name for name, _ in kept]
    return pa.table([*filled, *(rows.column(c) for _, c in kept), *(rows.column(c) for c in BAG)], names=[*names, *BAG])
