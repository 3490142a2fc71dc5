"""User-defined aggregates: a registered Python function, once for the rows of each group at each instant.

The function gets one Arrow array for each argument, the rows in the total order of the arguments, NULLs included, and
gives one value: a Python value, an Arrow scalar or an array of one (``user.py``). So its answer is a function of the
bag, whatever the order of the rows and the slicing. The function sees all rows of the group (``snapshot.py``). Where it
has a ``state``, a class that adds and removes rows, that keeps its value up to date (``aggregates/user_values.py``).

>>> call = UserAggregate("widest", lambda x, y: max(b.as_py() - a.as_py() for a, b in zip(x, y)), pa.int64())
>>> call(pa.array([[{"x": 1, "y": 4}, {"x": 2, "y": 3}], [{"x": 0, "y": 7}]])).to_pylist()
[3, 7]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import DataError
from sweeparea.operators.user_code.user_state import UserState
from sweeparea.operators.values import keys
from sweeparea.operators.values.order import record_ranks


@dataclass(frozen=True)
class UserAggregate:
    """The aggregate ``name``: ``function`` of the arguments' arrays gives a value of ``type``.

    It is called with lists of structs, one list for each result, whose fields are the arguments. DataError where the
    function fails or gives something else.
    """

    name: str
    function: Callable[..., Any]
    type: pa.DataType

    def __call__(self, lists: pa.Array) -> pa.Array:
        sizes = keys.lengths(lists)
        parts = keys.flat_values(lists).flatten()
        rows = pa.Table.from_arrays(parts, names=[str(i) for i in range(len(parts))])
        ranks, _ = record_ranks(rows, rows.column_names)
        rows = rows.take(pa.array(np.lexsort((ranks, np.repeat(np.arange(len(sizes)), sizes)))))
        arrays = [keys.one_array(c) for c in rows.columns]
        offsets = [0, *np.cumsum(sizes).tolist()]
        return self.array([self._value([c.slice(a, b - a) for c in arrays]) for a, b in itertools.pairwise(offsets)])

    def array(self, values: list[Any]) -> pa.Array:
        """The values that it has given."""
        try:
            return pa.array(values, self.type)
        except MemoryError:  # Arrow's is an ArrowException too
            raise
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"The aggregate {self.name} gave a value that is no {self.type}: {error}") from error

    def state(self) -> UserState:
        """A state of no rows."""
        made = getattr(self.function, "state", None)
        if made is None:
            raise TypeError(f"{self.name} has no state")
        return self._tried(made)

    def change(self, state: UserState, row: tuple[Any, ...], n: int) -> None:
        """Adds (n < 0: removes) so many copies of a row."""
        for _ in range(abs(n)):
            self._tried(state.add if n > 0 else state.remove, *row)

    def merged(self, state: UserState, other: UserState) -> UserState:
        """``state``, to which the rows of another one have come."""
        self._tried(state.merge, other)
        return state

    def value(self, state: UserState) -> Any:
        """The value of a state."""
        return self._plain(self._tried(state.value))

    def _value(self, arguments: list[pa.Array]) -> Any:
        return self._plain(self._tried(self.function, *arguments))

    def _tried(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except MemoryError:  # no fault of the rows
            raise
        except Exception as error:
            raise DataError(f"The aggregate {self.name} failed: {type(error).__name__}: {error}") from error

    def _plain(self, value: Any) -> Any:
        if isinstance(value, pa.Array | pa.ChunkedArray):
            if len(value) != 1:
                raise DataError(f"The aggregate {self.name} gave {len(value)} values for one group.")
            value = value[0]
        if isinstance(value, np.generic):
            value = value.item()
        return value.as_py() if isinstance(value, pa.Scalar) else value
