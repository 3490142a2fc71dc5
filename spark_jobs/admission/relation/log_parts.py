"""What a commit looks at of a log of changes, in parts that fit into memory: changes of different keys (or records)
never meet there, so that each part is settled by itself (``change_log.advance``).
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.values import keys
from sweeparea.spark_jobs.admission.judging.parts import by_keys
from sweeparea.spark_jobs.admission.relation import change_log
from sweeparea.spark_jobs.admission.relation.change_log import HASH
from sweeparea.spark_jobs.admission.relation.change_table import ChangeTable
from sweeparea.spark_jobs.admission.relation.history_events import TICK
from sweeparea.spark_jobs.declarations.keyed import KeyedChanges

_OF = "__of"
_PAST, _RIPE, _NEW = 0, 1, 2


@dataclass(frozen=True)
class LogPart:
    """All changes of a log that matter to some new ones (``change_log.ChangeLog``): those that become ripe, and
    others."""

    ripe: pa.Table
    past: pa.Table

    def between(self, h0: int, h1: int) -> pa.Table:
        """Those that become ripe, with ``h0 < __tick <= h1``."""
        return self.ripe

    def holding(self, hashes: np.ndarray) -> pa.Table:
        """The others whose ``__hash`` is one of ``hashes``."""
        return self.past.filter(pc.is_in(self.past.column(HASH), pa.array(hashes)))


def in_parts(
    log: ChangeTable, new: Iterable[pa.Table], h0: int, h1: int, keyed: KeyedChanges | None, scratch: str
) -> Iterator[tuple[pa.Table, LogPart]]:
    """``new`` changes (with ``__hash``, in the order of the log's columns) and what of the log meets them when the
    heartbeat goes from ``h0`` to ``h1``. A part has more than ``parts.PIECE`` rows only where one key has.
    """
    rows = chain((_marked(each, _NEW) for each in new), (_marked(each, _RIPE) for each in log.between(h0, h1)))
    for part in by_keys(rows, [HASH], scratch):
        ripe_or_new = pc.less_equal(part.column(TICK), h1)
        asking = change_log.asking(part.filter(ripe_or_new), h0, keyed)
        hashes = np.unique(keys.int64_of(asking.column(HASH)))
        past = (_marked(_past(each, h0, h1), _PAST) for each in (log.holding(hashes) if len(hashes) else ()))
        for whole in by_keys(chain([part], past), [HASH], scratch):
            yield _of(whole, _NEW), LogPart(_of(whole, _RIPE), _of(whole, _PAST))


def _past(rows: pa.Table, h0: int, h1: int) -> pa.Table:
    tick = rows.column(TICK)
    return rows.filter(pc.or_(pc.less_equal(tick, h0), pc.greater(tick, h1)))


def _marked(rows: pa.Table, of: int) -> pa.Table:
    return rows.append_column(_OF, pa.repeat(pa.scalar(of, pa.int8()), rows.num_rows))


def _of(rows: pa.Table, of: int) -> pa.Table:
    return rows.filter(pc.equal(rows.column(_OF), of)).drop_columns([_OF])
