"""The stream of a relation whose rows come and never go: each new row is an element, once, when it begins.

Definition (Arasu et al. 2003, section 7.2.1): ``Istream(L(S [Range Unbounded]))`` is ``Rstream(L(S [Now]))``. Every
row of the delta is then one of the stream's elements, and no difference of neighbouring instants has to be taken; equal
rows count as often as they come. Which plans are of that kind is decided when they are made (``Plan.emits_each``).

Columns in: the record, checks, ``__ts``, ``__te``, ``__n``. Columns out: as ``relation_to_stream.sweep``, with an empty
Dstream, Rstream and history.

SweepArea: none.

>>> from sweeparea.operators.relation_to_stream import MaterializeSpec
>>> rows = pa.table({"v": [7, 7], "__ts": [1, 2], "__te": [2, 3], "__n": [1, 2]})
>>> [tuple(row.values()) for row in emit(rows, MaterializeSpec(("v",), each=True), 0, 9).istream.to_pylist()]
[(7, 1), (7, 2), (7, 2)]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import keys as key_codes
from sweeparea.operators.bag import BAG, TS, N
from sweeparea.operators.relation_to_stream import FROM, TICK, TO, Materialized, MaterializeSpec


def emit(rows: pa.Table, spec: MaterializeSpec, h0: int, h1: int) -> Materialized:
    """Outputs of the slice ``(h0, h1]``. SweepAreaError: a row starts outside of it, or takes one away."""
    start, n = (key_codes.int64_of(rows.column(c)) for c in (TS, N))
    if len(start) and (start.min() <= h0 or start.max() > h1 or n.min() < 0):
        raise SweepAreaError(
            "A row was taken back, though the query's plan says that rows only come. Nothing was published. This is a"
            " defect of the engine: please report the query, and set rewrites = 'none' in it to go on meanwhile."
        )
    record = key_codes.canonical(rows.select([*spec.columns, *spec.checks]))
    each = np.repeat(np.arange(len(start)), n)
    stream = record.take(pa.array(each)) if record.num_columns else record
    columns = [*stream.columns, pa.array(start[each])]
    stream = pa.Table.from_arrays(columns, names=[*record.column_names, TICK])

    def none(*ticks: str) -> pa.Table:
        fields = [*record.schema, *(pa.field(name, pa.int64()) for name in ticks)]
        return pa.schema(fields).empty_table()

    return Materialized(stream, none(TICK), none(FROM, TO), none(FROM), none(*BAG), none(TICK), 0)
