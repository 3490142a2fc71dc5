"""A relation's changes and the signed rows that they amount to, whatever the order in which they became known.

What a source tells of a relation is kept as a log of changes. What the relation holds is a function of that log alone:
of all its changes with an instant up to the heartbeat. So a change that comes late, or that lies ahead, or that another
one cancels, needs no rule of its own: the function is taken of the changes before and after, for the records or keys
that have new ones, and the difference is what is admitted.

There are two such functions. ``_signed``: each change is so many copies of a record more or less, as changes of a
feed, of a history or of a log with insert and delete are. ``_keyed``: each change sets or ends the row of a key.
Both also tell which changes take away what is not there; these are refused (semantics, section 8: the net count is
judged when the heartbeat passes the instant).
"""

# pyarrow makes its compute functions when it is imported: no checker sees them
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import N
from sweeparea.operators.values.key_hash import key_hash
from sweeparea.operators.values.order import record_ranks
from sweeparea.spark_jobs.admission.relation.history_events import TICK, representatives
from sweeparea.spark_jobs.declarations.keyed import KeyedChanges

SETS = ("I", "U")
ENDS = "D"
BELOW_ZERO = "net count below zero: it takes away what the relation does not hold"
NO_ROW = "D of a key that has no row"
REFUSED = (BELOW_ZERO, NO_ROW)
"""Why changes are refused; they stay in the log, and stand as soon as what they take away is there."""
HASH = "__hash"
"""BIGINT, ``key_hash`` of a change's group: of its key, else of its record."""


@dataclass(frozen=True)
class Effect:
    """What some changes amount to: ``n`` copies more, at ``tick``, of the record in row ``at``; and per change how many
    of its copies are ``refused``.
    """

    at: np.ndarray
    tick: np.ndarray
    n: np.ndarray
    refused: np.ndarray


Function = Callable[[np.ndarray], Effect]
"""The effect of a selection of changes, given as the positions of their rows."""


@dataclass(frozen=True)
class Settled:
    """``changes``: the record's columns, ``__tick``, ``__n``: what is to be admitted. ``refused`` and ``revived``: rows
    of the log with ``__n``, the copies that are refused from now on, and those that no longer are.
    """

    changes: pa.Table
    refused: pa.Table
    revived: pa.Table


class ChangeLog(Protocol):
    """All changes that were known before, with their ``__hash``."""

    def between(self, h0: int, h1: int) -> pa.Table:
        """Those with ``h0 < __tick <= h1``."""
        ...

    def holding(self, hashes: np.ndarray) -> pa.Table:
        """Those whose ``__hash`` is one of ``hashes``, at whatever instant."""
        ...


def hashed(rows: pa.Table, record: Sequence[str], keyed: KeyedChanges | None) -> pa.Table:
    """``rows`` with their ``__hash``."""
    group = record if keyed is None else keyed.key
    return rows.append_column(HASH, pa.array(key_hash([rows.column(c) for c in group], rows.num_rows)))


def advance(
    log: ChangeLog, new: pa.Table, record: Sequence[str], h0: int, h1: int, keyed: KeyedChanges | None = None
) -> Settled:
    """``settle`` with what has to be known of the log. ``new``: changes that it does not have yet, with ``__hash``.

    Changes that lie ahead become ripe with the heartbeat.
    """
    ripe = log.between(h0, h1)
    arrived = new.filter(pc.less_equal(new.column(TICK), h1))
    fresh = pa.concat_tables([ripe, arrived.select(ripe.column_names)])
    hashes = np.unique(keys.int64_of(asking(fresh, h0, keyed).column(HASH)))
    past = log.holding(hashes) if len(hashes) else ripe.slice(0, 0)
    tick = past.column(TICK)
    past = past.filter(pc.or_(pc.less_equal(tick, h0), pc.greater(tick, h1)))
    rows = pa.concat_tables([past, fresh]).combine_chunks()
    known = np.arange(rows.num_rows) < past.num_rows + ripe.num_rows
    return settle(rows, known, record, h0, h1, keyed)


def asking(fresh: pa.Table, h0: int, keyed: KeyedChanges | None) -> pa.Table:
    """Those of the changes that become known or ripe whose past matters: a record that only gains copies after ``h0``
    needs no look at what it was before.
    """
    if keyed is not None:
        return fresh
    return fresh.filter(pc.or_(pc.less(fresh.column(N), 0), pc.less_equal(fresh.column(TICK), h0)))


def settle(
    rows: pa.Table, known: np.ndarray, record: Sequence[str], h0: int, h1: int, keyed: KeyedChanges | None = None
) -> Settled:
    """What moving the heartbeat from ``h0`` to ``h1`` and knowing more changes means for a relation.

    ``rows``: changes, with the source's columns, ``__tick``, ``__n``, ``__version``; all that there are of each record
    (or key) among them, later ones too. ``known`` (boolean): those that were there before. ``record``: the record's
    columns.

    >>> rows = pa.table({"r": ["x", "x", "y"], "__tick": [3, 8, 9], "__n": [1, -1, -1], "__version": [0, 1, 1]})
    >>> done = settle(rows, np.array([True, False, False]), ["r"], 5, 9)
    >>> done.changes.to_pylist(), done.refused.column("r").to_pylist()
    ([{'r': 'x', '__tick': 8, '__n': -1}], ['y'])
    """
    tick = keys.int64_of(rows.column(TICK))
    code = keys.codes([rows.column(c) for c in record])[0]
    of = _signed(rows, code) if keyed is None else _keyed(rows, keyed)
    before = of(np.flatnonzero(known & (tick <= h0)))
    after = of(np.flatnonzero(tick <= h1))
    at = np.append(after.at, before.at)
    picked, ticks, n = representatives(code[at], np.append(after.tick, before.tick), np.append(after.n, -before.n))
    changes = rows.select(list(record)).take(pa.array(at[picked]))
    changes = changes.append_column(TICK, pa.array(ticks)).append_column(N, pa.array(n))
    more = after.refused - before.refused
    return Settled(changes, _copies(rows, np.maximum(more, 0)), _copies(rows, np.maximum(-more, 0)))


def _copies(rows: pa.Table, n: np.ndarray) -> pa.Table:
    at = np.flatnonzero(n)
    signs = np.sign(keys.int64_of(rows.column(N)))[at]
    picked = rows.take(pa.array(at))
    return picked.set_column(picked.column_names.index(N), N, pa.array(n[at] * signs))


# -- copies of records -----------------------------------------------------------------------------------------------


def _signed(rows: pa.Table, code: np.ndarray) -> Function:
    tick, n = keys.int64_of(rows.column(TICK)), keys.int64_of(rows.column(N))

    def effect(at: np.ndarray) -> Effect:
        refused = np.zeros(rows.num_rows, np.int64)
        if not len(at):
            return Effect(at, at, at, refused)
        order = at[np.lexsort((tick[at], code[at]))]
        c, t = code[order], tick[order]
        first = np.flatnonzero(np.append(True, (c[1:] != c[:-1]) | (t[1:] != t[:-1])))
        net = np.add.reduceat(n[order], first)
        excess = _below_zero(c[first], net)
        last = np.append(first[1:], len(order))
        for i in np.flatnonzero(excess):
            _refuse(rows, order[first[i] : last[i]], int(excess[i]), n, refused)
        return Effect(order[first], t[first], net + excess, refused)

    return effect


def _below_zero(code: np.ndarray, net: np.ndarray) -> np.ndarray:
    """Per instant, in order of (record, instant): how many more copies are taken away than there are left.

    The count after an instant is ``max(0, count before + net)``: with S the running sum, S less the least of 0 and of
    all S so far.

    >>> _below_zero(np.array([0, 0, 0, 1]), np.array([1, -3, 1, -1])).tolist()
    [0, 2, 0, 1]
    """
    begins = np.append(True, code[1:] != code[:-1])
    which = np.cumsum(begins) - 1
    total = np.cumsum(net)
    sums = total - (total - net)[begins][which]
    # records one below the other, so that one running minimum serves all of them
    step = 2 * int(np.abs(sums).max(initial=0)) + 1
    least = np.minimum.accumulate(np.minimum(sums, 0) - which * step) + which * step
    return np.where(begins, 0, np.append(0, least[:-1])) - least


def _refuse(rows: pa.Table, at: np.ndarray, excess: int, n: np.ndarray, refused: np.ndarray) -> None:
    """Shares ``excess`` among the changes of one record and instant that take away: the last ones, by version and total
    order.
    """
    taking = at[n[at] < 0]
    if len(taking) > 1:
        told = rows.take(pa.array(taking))
        columns = ["__version", *(c for c in told.column_names if not c.startswith("__"))]
        taking = taking[np.argsort(record_ranks(told, columns)[0], kind="stable")]
    for row in taking[::-1]:
        refused[row] = min(excess, -n[row])
        excess -= int(refused[row])


# -- rows of keys ----------------------------------------------------------------------------------------------------


def _keyed(rows: pa.Table, how: KeyedChanges) -> Function:
    tick, n = keys.int64_of(rows.column(TICK)), keys.int64_of(rows.column(N))
    key = keys.codes([rows.column(c) for c in how.key])[0]
    sets = pc.is_in(rows.column(how.operation), pa.array(SETS)).to_numpy()
    others = [c for c in rows.column_names if not c.startswith("__") and c not in (how.operation, how.sequence)]
    first_columns = ([] if how.sequence is None else [how.sequence]) + [how.operation]
    rank = record_ranks(rows, [*first_columns, *others])[0]

    def effect(at: np.ndarray) -> Effect:
        refused = np.zeros(rows.num_rows, np.int64)
        if not len(at):
            return Effect(at, at, at, refused)
        order = at[np.lexsort((rank[at], tick[at], key[at]))]
        k, t = key[order], tick[order]
        first = np.flatnonzero(np.append(True, (k[1:] != k[:-1]) | (t[1:] != t[:-1])))
        counts = order[np.append(first[1:], len(order)) - 1]  # the last of each key and instant
        before = np.append(-1, counts[:-1])
        there = np.append(False, (key[counts[1:]] == key[counts[:-1]]) & sets[counts[:-1]])
        lost = ~sets[counts] & ~there & ~np.logical_or.reduceat(sets[order], first)
        refused[counts[lost]] = n[counts[lost]]
        new, old = counts[sets[counts]], before[there]
        return Effect(
            np.append(new, old),
            np.append(tick[new], tick[counts[there]]),
            np.append(np.ones(len(new), np.int64), np.full(len(old), -1)),
            refused,
        )

    return effect
