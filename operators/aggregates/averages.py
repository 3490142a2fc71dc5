"""AVG of numbers from their exact sum, rounded once to DOUBLE, and their count (semantics: that sum divided by it).

>>> averaged(pa.table({"b0": [3.0, None], "b1": [2, 0]}), (("avg", "b0", "b1"),)).column("avg").to_pylist()
[1.5, None]
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def averaged(rows: pa.Table, averages: Sequence[tuple[str, str, str]]) -> pa.Table:
    """``rows`` with a DOUBLE column more for each of ``averages``, a name with the columns of sum (DOUBLE) and count:
    NULL where nothing was counted. As Spark divides: both are of IEEE 754.
    """
    for name, total, count in averages:
        counts = rows.column(count)
        # a count beyond 2^53 is rounded, as CAST(.. AS DOUBLE) does
        quotient = pc.divide(rows.column(total), counts.cast(pa.float64(), safe=False))
        some = pc.if_else(pc.equal(counts, 0), pa.scalar(None, pa.float64()), quotient)
        rows = rows.append_column(name, some)
    return rows
