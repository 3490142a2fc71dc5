"""User-defined windows: ``[name(argument, ..)]``, a registered Python function over Arrow columns.

Definition (Arasu et al. 2003, section 6: any mapping from a stream to a relation is a window; Patroumpas & Sellis 2006,
section 3.3: a scope function): the function gets the instants of some elements, as ticks, and its arguments' values,
one Arrow array each, and gives two arrays of ticks: from when until when each element is valid, half-open. NULL as a
start or an end not after it: never valid; NULL as an end: for ever. An element is not valid before its own instant.

It must be a function of each element alone, whatever others come in the same arrays: how elements are put together is
the engine's choice. So expiry is known and there is no SweepArea. The declared pattern (monotonic, WKS, WK or STR;
Golab & Oezsu 2005, section 3.1) is the author's word for the order in which elements leave. That nothing leaves a
monotonic window is checked, for Istream is added to queries over it; of the other patterns no result depends on it.

Columns in: the record, ``__ts``, ``__n``, the arguments. Columns out: the record, ``__ts``, ``__te``, ``__n``.

>>> import pyarrow.compute as pc
>>> elements = pa.table({"v": ["a", "b"], "hold": [3, None], "__ts": [1, 2], "__n": [1, 1]})
>>> spec = UserWindowSpec("hold_for", lambda s, hold: (s, pc.add(s, hold)), ("v",), ("hold",))
>>> [tuple(row.values()) for row in apply(elements, spec).to_pylist()]
[('a', 1, 4, 1), ('b', 2, 9223372036854775807, 1)]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import DataError
from sweeparea.operators.time.ticks import INF, MAX_TICK
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import TE, TS, N


@dataclass(frozen=True)
class UserWindowSpec:
    """``function``: what was registered under ``name``; ``columns``: the record; ``arguments``: their columns.

    ``monotonic``: the declared pattern is that.
    """

    name: str
    function: Callable[..., tuple[Any, Any]]
    columns: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    monotonic: bool = False


def apply(rows: pa.Table, spec: UserWindowSpec) -> pa.Table:
    """The elements of ``rows`` in their intervals of validity.

    Errors (DataError): the function fails, gives something else than two columns of ticks, one for each element, a
    start before the element's instant, or an end where it is monotonic.
    """
    arguments = [keys.one_array(rows.column(c)) for c in (TS, *spec.arguments)]
    start, end = _called(spec, arguments)
    instant = keys.int64_of(rows.column(TS))
    # a NULL start or one beyond the time domain: never
    ts = keys.numpy_of(start, INF)
    te = keys.numpy_of(end, INF)
    te = np.where(te > MAX_TICK, INF, te)
    early = np.flatnonzero(ts < instant)
    if len(early):
        i = int(early[0])
        raise DataError(
            f"The window {spec.name} lets an element of tick {instant[i]} be valid from tick {ts[i]} on, before it"
            " arrives. A window may show an element at its own instant or later."
        )
    left = np.flatnonzero((ts < te) & (te < INF))
    if spec.monotonic and len(left):
        i = int(left[0])
        raise DataError(
            f"The window {spec.name} is declared to be monotonic, but lets an element of tick {instant[i]} end at"
            f" tick {te[i]}. Give NULL as the end, or declare it as WKS or WK."
        )
    kept = pa.array(np.flatnonzero((ts <= MAX_TICK) & (ts < te)))
    record = rows.select(list(spec.columns)).take(kept)
    added = [pa.array(ts).take(kept), pa.array(te).take(kept), keys.one_array(rows.column(N)).take(kept)]
    return pa.Table.from_arrays([*record.columns, *added], names=[*spec.columns, TS, TE, N])


def _called(spec: UserWindowSpec, arguments: list[pa.Array]) -> list[pa.Array]:
    try:
        given = spec.function(*arguments)
    except MemoryError:  # no fault of the rows
        raise
    except Exception as error:
        raise DataError(f"The window {spec.name} failed: {type(error).__name__}: {error}") from error
    try:
        first, second = given
        bounds = [keys.one_array(_array(x)).cast(pa.int64()) for x in (first, second)]
    except MemoryError:  # Arrow's is an ArrowException too
        raise
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"The window {spec.name} must give two Arrow arrays of ticks, where elements begin and cease to be valid;"
            f" it gave {type(given).__name__} ({error})."
        ) from error
    size = len(arguments[0])
    if any(len(x) != size for x in bounds):
        lengths = " and ".join(str(len(x)) for x in bounds)
        raise DataError(f"The window {spec.name} gave columns of {lengths} values for {size} elements.")
    return bounds


def _array(values: Any) -> pa.Array | pa.ChunkedArray:
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
