"""Grouping with aggregation and duplicate elimination over a signed temporal bag.

Definition, at every instant: of the rows of each group that are valid then one row, the group's keys and a value of
each call (Kraemer & Seeger 2005, sections 3.2.6 and 3.2.7, eq. 7, Algorithms 3 and 8; with negative tuples Hammad et
al., section 4.4, W-Group-By). Without calls it is duplicate elimination (Kraemer & Seeger, section 3.2.4, Algorithm 6;
Golab & Oezsu 2005, section 5.3.1, the operator delta*). Instead of one element at a time, all groups of a partition are
swept at once, in the order of (group, tick): all that starts or ends at one tick is applied before the aggregate row is
looked at, so an expiry is reported at its own instant, never at the next arrival (Hammad et al., section 2.2).

Columns in (``rows_schema``): the keys, the calls' arguments, ``__ts``, ``__te``, ``__n``; of what the previous slice
carried also its sums. Columns out (``delta_schema``): the keys, the calls' values, ``__ts``, ``__te``, ``__n``, the
delta of the relation within ``(h0, h1]``.

SweepArea, with the least state that each call's function allows (``aggregates/functions.py``; its bound: ``sweep``).
Sums are exact (``exact.py``): they may subtract, so a sliding sum costs O(1) an event and no slicing can change a bit;
they are one row a group and end, where Algorithm 8 has a row for each stretch of time between two ends.

>>> from sweeparea.operators.aggregates.calls import BaseCall
>>> spec = AggregateSpec((("k", pa.string()),), (BaseCall("s", "SUM", pa.int64(), "v", pa.int64()),), expiry_known=True)
>>> bag = [{"k": "x", "a0": v, "__ts": s, "__te": s + 9, "__n": 1, "__kind": 0} for s, v in [(1, 9), (4, 6)]]
>>> schema = rows_schema(spec)
>>> rows = pa.Table.from_pylist([{name: b.get(name) for name in schema.names} for b in bag], schema)
>>> delta, carry = sweep(rows, spec, 0, 11)
>>> [(r["s"], r["__ts"], r["__te"]) for r in delta.to_pylist() if r["__te"] < INF]
[(9, 1, 4), (15, 4, 10)]
>>> [(r["__te"], r["__n"]) for r in carry.to_pylist()]
[(13, 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sweeparea.infra.errors import DataError
from sweeparea.operators.aggregates.call import AggregateCall, evaluated_call
from sweeparea.operators.aggregates.names import OF_DISTINCT
from sweeparea.operators.base.later import later
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.carriers import Carriers, renamed
from sweeparea.operators.plan.edge import Edge
from sweeparea.operators.plan.influence import Influence, Made, made_by, read_by
from sweeparea.operators.plan.node import Ends, Evaluated, ExpressionKind, Ids, Node
from sweeparea.operators.plan.words import BY_TIME, cut
from sweeparea.operators.sql.expressions import Column, Expr, reference
from sweeparea.operators.sweeps import distinct
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.values.bag import TE, TS, N
from sweeparea.operators.windows.definitions import all_in_buckets

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sweeparea.operators.aggregates import extrema, functions, sums
    from sweeparea.operators.aggregates import instants as kinds
    from sweeparea.operators.aggregates.calls import Argument, BaseCall
    from sweeparea.operators.kernels import aggregate as kernel
    from sweeparea.operators.kernels import instants, sorting
    from sweeparea.operators.values import keys as key_codes
else:
    np, pa, kinds, extrema, functions, sums, kernel, instants, sorting, key_codes = later(
        "numpy",
        "pyarrow",
        "sweeparea.operators.aggregates.instants",
        "sweeparea.operators.aggregates.extrema",
        "sweeparea.operators.aggregates.functions",
        "sweeparea.operators.aggregates.sums",
        "sweeparea.operators.kernels.aggregate",
        "sweeparea.operators.kernels.instants",
        "sweeparea.operators.kernels.sorting",
        "sweeparea.operators.values.keys",
    )

_SAFE = float(1 << 61)
_BLOCK = 1 << 16


@stored("Aggregate", "input", "keys", "calls", "global_")
@dataclass(frozen=True)
class Aggregate(Node):
    """Grouping with aggregation (Kraemer sections 3.2.6 and 3.2.7). Output: keys, then calls.

    ``global_`` tells an aggregate without GROUP BY (one row at every instant from START, also over an empty bag) from a
    GROUP BY whose groups vanish with their last element. Without calls it is duplicate elimination over the keys
    (``distinct.py``).
    """

    input: Node
    keys: tuple[tuple[Column, Expr], ...]
    calls: tuple[tuple[Column, AggregateCall], ...]
    global_: bool = False

    @property
    def is_distinct(self) -> bool:
        """Whether this is duplicate elimination."""
        return not self.calls and not self.global_

    @property
    def of_distinct(self) -> bool:
        """Whether what it aggregates comes of duplicate elimination: it may be all values of one group."""
        return isinstance(self.input, Aggregate) and self.input.is_distinct

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.keys) + tuple(c for c, _ in self.calls)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def words(self, time: TimeDomain) -> str:
        keys = ", ".join(c.label for c, _ in self.keys)
        if self.is_distinct:
            return f"Distinct ({cut(keys)})"
        calls = ", ".join(call.words for _, call in self.calls) or "no aggregates"
        return f"Aggregate {cut(calls)}" + (f" BY {cut(keys)}" if self.keys else "")

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        """Rule 4: group-by replaces its rows, whatever its input does."""
        return distinct.edge(below) if self.is_distinct else Edge("WK", False)

    @property
    def monotonic(self) -> bool:
        """The value of an aggregate changes."""
        return self.is_distinct and self.input.monotonic

    @property
    def lengthens(self) -> bool:
        return self.is_distinct or super().lengthens

    @property
    def replaces(self) -> bool:
        return True

    def needs(self, needed: Ids) -> Iterator[Ids]:
        calls = (call.reads for call in self._needed(needed))
        yield frozenset().union(*(e.columns for _, e in self.keys), *calls)

    def cut(self, inputs: tuple[Node, ...], needed: Ids) -> Node:
        calls = self._needed(needed)
        return replace(self, input=inputs[0], calls=tuple((c, call) for c, call in self.calls if call in calls))

    def _needed(self, needed: Ids) -> list[AggregateCall]:
        # a SINGLE_VALUE is also a check, and without any call an aggregate would be a DISTINCT
        kept = [call for c, call in self.calls if c.id in needed or call.function == "SINGLE_VALUE"]
        return kept or [call for _, call in self.calls[:1]]

    def evaluated(self) -> Iterator[Evaluated]:
        for column, key in self.keys:
            yield Evaluated(f"({key.sql})", [key.text], remembered=True, columns=(column,))
        for _, call in self.calls:
            yield from evaluated_call(call, remembered=True)

    def computed(self) -> Iterator[Evaluated]:
        for column, expr in self.keys:
            yield Evaluated(expr.sql, [expr.text], columns=(column,))
        for column, call in self.calls:
            yield Evaluated(call.sql, [e.text for e in call.given], kind=ExpressionKind.AGGREGATE, columns=(column,))

    def made(self) -> Iterator[Made]:
        yield from (made_by(c.id, e) for c, e in self.keys)
        yield from (call.made(c.id) for c, call in self.calls)

    def decided_by(self) -> Iterator[tuple[Influence, Ids]]:
        yield Influence.GROUP_BY, read_by(e for _, e in self.keys)

    def carriers(self, below: Sequence[Carriers]) -> Carriers:
        """Selection commutes with grouping only on its keys (Patroumpas & Sellis 2006, section 4.2)."""
        return {} if self.global_ else renamed(below[0], self.keys)

    @property
    def looks_back(self) -> int:
        return 0

    def kept(self, ends: Ends) -> str | None:
        if self.lowered().expansion is not None:
            return "the input's rows that are valid after h1"
        known = ends.expiry_known(self.input)
        if self.is_distinct:
            return distinct.kept(known)
        kept = dict.fromkeys(call.kept(known) for _, call in self.calls)
        parts = [f"counts and sums, one row a {'(group, end)' if known else 'group'}"] if None in kept else []
        parts += [text for text in kept if text is not None]
        return "; ".join(parts) or "one row a group"

    def lowered(self) -> Node:
        """Without FILTER where NULLs are left out; calls of DISTINCT values over one argument above a duplicate
        elimination, so that a change touches its values, not the whole group (MIN and MAX do not mind). Beside other
        calls the sweep of the group tells the values apart.
        """
        calls = tuple((column, call.without_filter()) for column, call in self.calls)
        same = all(a is b for (_, a), (_, b) in zip(calls, self.calls, strict=True))
        return (self if same else replace(self, calls=calls))._distinct_first()

    def _distinct_first(self) -> Node:
        calls = [call for _, call in self.calls]
        if not any(call.distinct for call in calls):
            return self
        argument = calls[0].argument
        for call in calls:
            indifferent = call.function in ("MIN", "MAX")
            if call.function not in OF_DISTINCT or not (call.distinct or indifferent) or call.argument != argument:
                return self
        assert argument is not None
        value = Column(f"{self.calls[0][0].id}_value", argument.text)
        below = tuple((replace(column, id=f"{column.id}_key"), expr) for column, expr in self.keys)
        values = Aggregate(self.input, (*below, (value, argument)), ())
        keys = tuple((column, reference(key)) for (column, _), (key, _) in zip(self.keys, below, strict=True))
        above = tuple((c, replace(call, argument=reference(value), distinct=False)) for c, call in self.calls)
        return Aggregate(values, keys, above, self.global_)

    def combines(self, ends: Ends) -> bool:
        """Whether rows of a group are combined where they are made, before they travel to the group's worker
        (``combined``): where many have one interval, where values of a DISTINCT are there again and again, above one,
        whose workers have the values of each group, and where all rows go to one worker.
        """
        if self.lowered().expansion is not None or self.is_distinct:
            return False
        buckets = all_in_buckets(self.input.ends)
        values = any(call.distinct for _, call in self.calls) and ends.expiry_known(self.input)
        return buckets or values or self.of_distinct or not self.keys

    def divides(self, ends: Ends) -> str | None:
        """As ``counted_values.sweep_of`` has it."""
        known = ends.expiry_known(self.input)
        if self.lowered().expansion is not None or (self.is_distinct and known):
            return None
        calls = [call for _, call in self.calls]
        rest = [call for call in calls if not (call.distinct and call.function == "COUNT")]
        if not all(call.sums or (known and call.chooses) for call in rest):
            return None
        return BY_TIME if len(rest) == len(calls) else f"by the values that are counted, then {BY_TIME}"

    @property
    def expansion(self) -> str | None:
        found = dict.fromkeys(call.expansion for _, call in self.calls)
        return ", ".join(text for text in found if text) or None


@dataclass(frozen=True)
class AggregateSpec:
    """What to aggregate. ``keys``: (column id, Arrow type) pairs.

    ``global_``: no GROUP BY, one row at every instant from ``start`` on. ``expiry_known``: no element is ever taken
    away other than at its own te, so dominated extremum values need not be kept. ``start``: the query's first
    instant; what starts earlier counts from there.
    """

    keys: tuple[tuple[str, pa.DataType], ...]
    calls: tuple[BaseCall, ...]
    global_: bool = False
    expiry_known: bool = False
    start: int = 0


def rows_schema(spec: AggregateSpec) -> pa.Schema:
    """Schema of the sweep's input and carry.

    The keys; ``__ts``, ``__te``, ``__n`` (ticks and copies, int64); ``__kind`` (int16); for call i with an argument
    ``a{i}``; for one that is a sum or a count of its argument ``m{i}``, the net number of non-NULL arguments (int64),
    and ``p{i}``, exact sums (binary). A call that shares another one's column has none of its own. Raw rows have NULL
    in m and p, and may have it in ``__kind``; SUMS rows have it in a. A raw row with ``__n`` 0 says nothing and is
    ignored.
    """
    fields = [*spec.keys, (TS, pa.int64()), (TE, pa.int64()), (N, pa.int64()), (kinds.KIND, pa.int16())]
    for i, call in enumerate(spec.calls):
        if call.argument is not None and call.column is None:
            fields.append((f"a{i}", call.argument_type))
            if call.additive:
                fields.append((f"m{i}", pa.int64()))
                if call.function != "COUNT":
                    fields.append((f"p{i}", pa.binary()))
    return pa.schema(fields)


def delta_schema(spec: AggregateSpec) -> pa.Schema:
    """Schema of the delta: the keys, the calls' outputs, ``__ts``, ``__te``, ``__n``."""
    outputs = [(call.output, call.type) for call in spec.calls]
    return pa.schema([*spec.keys, *outputs, (TS, pa.int64()), (TE, pa.int64()), (N, pa.int64())])


def sweep(rows: pa.Table, spec: AggregateSpec, h0: int, h1: int) -> tuple[pa.Table, pa.Table]:
    """(delta, carry) of the slice ``(h0, h1]``.

    ``rows`` (``rows_schema``; order immaterial): the carry of the previous slice and the new elements. What starts at
    or before h0 is state that has been published; what starts after h1 waits in the carry. With ``global_`` call it
    on one partition only: also a table without rows yields the row of the empty bag.

    Delta, per group whose row changes within the slice: +1 ``[t1, t2)`` for a row that comes and goes within it, +1
    ``[t, INF)`` for the one that holds at h1, -1 ``[t, INF)`` for the one that held at h0 and ended at t. No row ends
    where an equal one begins (``istream.changes`` relies on it).

    Carry, never more than what is alive at h1 or pending: counts and sums one row per (group, te), or per (group, ts,
    te) while pending; extrema and FIRST with known expiry the undominated values only, so of those that are alive at
    most one per (group, te); DISTINCT values with known expiry the intervals in which the value is there, none
    touching another: one from h1 on, and pending ones that a gap parts from it; else one row per (group, value, te)
    with a net count; presence alone (no call that counts elements) with known expiry such intervals of the group.

    Errors (DataError): a net number of elements below zero, SUM beyond its result type at an instant of the slice,
    more than one element under SINGLE_VALUE.
    """
    return Aggregation(rows, spec, h0, h1).run()


def combined(rows: pa.Table, spec: AggregateSpec, h0: int) -> pa.Table:
    """New rows of the slice after ``h0``, or what this has made of some, in as few rows as say the same to ``sweep``.

    It is what a slice in which no time passes would carry to the next: sums stay exact, and which rows are combined
    with which makes no difference.
    """
    return Aggregation(rows, spec, h0, h0).carry()


class Aggregation:
    """One call of ``sweep``: the input as NumPy arrays in the order of its rows, and ``order``, which sorts them."""

    def __init__(self, rows: pa.Table, spec: AggregateSpec, h0: int, h1: int):
        self.spec, self.h0, self.h1 = spec, h0, h1
        kind, n = key_codes.int64_of(rows.column(kinds.KIND)), key_codes.int64_of(rows.column(N))
        start, self.te = key_codes.int64_of(rows.column(TS)), key_codes.int64_of(rows.column(TE))
        # at START everything that came before is new: only the inputs know of it (a relation's contents at START)
        self.published = h0 >= spec.start
        start = np.maximum(start, h0 if self.published else spec.start)
        used = (self.te > start) & ((n != 0) | (kind == kinds.SUMS))
        if not used.all():
            rows = rows.filter(pa.array(used))
            kind, n, start, self.te = kind[used], n[used], start[used], self.te[used]
        if len(n) * max(1.0, float(n.max(initial=0)), -float(n.min(initial=0))) > _SAFE:
            raise DataError("An aggregate's input has more than 2^61 copies of its elements.")
        self.rows, self.start, self.n = rows, start, n
        if spec.keys:
            self.group, self.groups = key_codes.codes([rows.column(k) for k, _ in spec.keys])
        else:
            self.group, self.groups = np.zeros(len(n), np.int64), 1
        self.order = sorting.group_order(self.group, self.groups, start)
        self._known_keys: list[pa.Array] | None = None
        self.elements = kinds.Elements(kind, n)
        self.arguments = [functions.argument_of(self.elements, rows, i, call) for i, call in enumerate(spec.calls)]

    def run(self) -> tuple[pa.Table, pa.Table]:
        """The delta block by block, each of whole groups and small enough for the processor's cache; then the carry."""
        mark = instants.NO_MARK
        if self.spec.global_:
            mark = self.h0 if self.published else self.spec.start
        parts = [delta_schema(self.spec).empty_table()]
        parts += [self._delta(*block, mark) for block in self._blocks(mark != instants.NO_MARK)]
        return pa.concat_tables(parts), self.carry()

    def _blocks(self, also_empty: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows in their order, and their groups."""
        counts = np.bincount(self.group, minlength=1)
        ends = np.cumsum(counts)
        size, at, first = len(self.group), 0, 0
        while at < size or also_empty:
            last = len(ends) - 1 if size - at <= _BLOCK else int(np.searchsorted(ends, at + _BLOCK))
            end = int(ends[last])
            yield self.order[at:end], np.repeat(np.arange(first, last + 1), counts[first : last + 1])
            at, first, also_empty = end, last + 1, False

    def _delta(self, rows: np.ndarray, group: np.ndarray, mark: int) -> pa.Table:
        spec = self.spec
        start, te = instants.gathered(rows, self.start, self.te)
        cut = instants.segments(group, start, te, self.h1, mark)
        at = kinds.Instants(rows, group, cut, self.elements.copies(rows), self.h0, self._name)
        elements = at.elements
        at.refuse_negative(elements, "elements")
        present = np.ones(len(elements), np.bool_) if spec.global_ else elements > 0
        changed = np.zeros(len(elements), np.bool_)
        changed[1:] = present[1:] != present[:-1]
        results: list[kinds.Result] = []
        for call, argument in zip(spec.calls, self.arguments, strict=True):
            result = kinds.Result(elements) if argument is None else argument.values_of(at, call, present)
            changed[1:] |= result.changes()
            results.append(result)
        published = self.h0 if self.published else INF
        source, ts, te, n = kernel.emissions(at.group, at.tick, present, changed, published)
        columns = self._keys(at.group[source])
        columns += [r.array(source, call.type) for r, call in zip(results, spec.calls, strict=True)]
        columns += [pa.array(ts), pa.array(te), pa.array(n)]
        return pa.Table.from_arrays(columns, schema=delta_schema(spec))

    def _name(self, row: int) -> str:
        keys = ", ".join(f"{k} = {self.rows.column(k)[row].as_py()!r}" for k, _ in self.spec.keys)
        return f" in group ({keys})" if keys else ""

    def _keys(self, groups: np.ndarray) -> list[pa.Array]:
        at = pa.array(groups)
        return [values.take(at) for values in self._key_values()]

    def _key_values(self) -> list[pa.Array]:
        """The keys of each group, as published."""
        if self._known_keys is None:
            row = np.zeros(self.groups, np.int64)
            row[self.group] = np.arange(len(self.group))
            at = pa.array(row)
            columns = (self.rows.column(k).take(at) for k, _ in self.spec.keys)
            self._known_keys = [key_codes.canonical_array(key_codes.one_array(c)) for c in columns]
        return self._known_keys

    def carry(self) -> pa.Table:
        """What is alive after the slice, or pending, as the next one is given it."""
        alive = np.flatnonzero(self.te > self.h1)
        parts = [self._carried_sums(alive[self.elements.kind[alive] <= kinds.SUMS])]
        for i, argument in enumerate(self.arguments):
            if argument is not None and argument.kind is not None and argument.holds:
                parts.append(self._carried_values(i, argument, alive[argument.copies(alive) != 0]))
        return pa.concat_tables(parts)

    def _carried_sums(self, rows: np.ndarray) -> pa.Table:
        if self.spec.expiry_known and not any(_counts(call) for call in self.spec.calls):
            rows = rows[self.n[rows] != 0]
            return self._carry_united(rows, self.group[rows], kinds.SUMS, {})
        rows, first = self._runs(rows)
        n = _add_runs(self.n[rows], first)
        nonzero = n != 0
        columns: dict[str, pa.Array] = {}
        for i, argument in enumerate(self.arguments):
            if argument is not None and argument.kind is None and argument.holds:
                m = _add_runs(argument.copies(rows), first)
                nonzero |= m != 0
                columns[f"m{i}"] = pa.array(m)
                if isinstance(argument, sums.Additive):
                    columns[f"p{i}"], lengths = argument.encoded(rows, first)
                    nonzero |= lengths != 0
        table = self._carry_table(rows[first[:-1]], n, kinds.SUMS, columns)
        return table if nonzero.all() else table.filter(pa.array(nonzero))

    def _carried_values(self, i: int, argument: Argument, rows: np.ndarray) -> pa.Table:
        best, of_distinct = isinstance(argument, extrema.Extremum), self.spec.calls[i].distinct
        if self.spec.expiry_known and best:
            head = self._undominated(rows, argument.rank)
            n = np.ones(len(head), np.int64)
        elif self.spec.expiry_known and of_distinct:
            value = self.group[rows] * np.int64(argument.ranks) + argument.rank[rows]
            return self._carry_united(rows, value, kinds.VALUE + i, {f"a{i}": argument.shown})
        else:
            rows, first = self._runs(rows, argument.rank)
            n = _add_runs(self.n[rows], first)
            head, n = rows[first[:-1]][n != 0], n[n != 0]
        return self._carry_table(head, n, kinds.VALUE + i, {f"a{i}": argument.shown(head)})

    def _undominated(self, rows: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """Those of ``rows`` that may yet be the first of their group by ``rank``."""
        self._refuse_negative_tuples(rows)
        group, start, te, ranks = self.group[rows], self._carried_start(rows), self.te[rows], rank[rows]
        order = sorting.sorted_order((group, start, _latest_first(te), ranks))
        return rows[kernel.undominated(order, group, start, te, ranks)]

    def _carry_united(
        self, rows: np.ndarray, value: np.ndarray, kind: int, columns: dict[str, Callable[[np.ndarray], pa.Array]]
    ) -> pa.Table:
        """When there is any of ``rows`` of each ``value``, in as few rows as tell it."""
        self._refuse_negative_tuples(rows)
        start = self._carried_start(rows)
        at, start, te = kernel.united(sorting.sorted_order((value, start)), value, start, self.te[rows])
        head = rows[at]
        shown = {name: of(head) for name, of in columns.items()}
        return self._carry_table(head, np.ones(len(head), np.int64), kind, shown, (start, te))

    def _refuse_negative_tuples(self, rows: np.ndarray) -> None:
        if np.any(self.n[rows] < 0):
            raise DataError(
                "An aggregate whose input was said to know every element's expiry got a negative tuple: the plan is "
                "wrong about expiry."
            )

    def _carried_start(self, rows: np.ndarray) -> np.ndarray:
        return np.maximum(self.start[rows], self.h1)

    def _runs(self, rows: np.ndarray, rank: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        # rows ordered by (group, rank, start, te), and where each combination's run begins, with the end
        if not len(rows):
            return rows, np.zeros(1, np.int64)
        parts: Sequence[np.ndarray] = [self.group[rows], self._carried_start(rows), _latest_first(self.te[rows])]
        if rank is not None:
            parts = [parts[0], rank[rows], *parts[1:]]
        order = sorting.sorted_order(parts)
        change = np.zeros(len(rows), np.bool_)
        change[0] = True
        for part in parts:
            p = part[order]
            change[1:] |= p[1:] != p[:-1]
        return rows[order], np.append(np.flatnonzero(change), len(rows))

    def _carry_table(
        self,
        rows: np.ndarray,
        n: np.ndarray,
        kind: int,
        columns: dict[str, pa.Array],
        interval: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> pa.Table:
        start, te = (self._carried_start(rows), self.te[rows]) if interval is None else interval
        schema = rows_schema(self.spec)
        known = dict(zip((k for k, _ in self.spec.keys), self._keys(self.group[rows]), strict=True))
        known |= {TS: pa.array(start), TE: pa.array(te), N: pa.array(n)}
        known[kinds.KIND] = pa.array(np.full(len(n), kind, np.int16))
        known |= columns
        arrays = [known[f.name] if f.name in known else pa.nulls(len(n), f.type) for f in schema]
        return pa.Table.from_arrays(arrays, schema=schema)


def _counts(call: BaseCall) -> bool:
    # whether a call needs to know how many elements there are, not only whether there is one
    return call.argument is None or call.additive or call.function == "SINGLE_VALUE"


def _add_runs(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, first[:-1]) if len(values) else np.zeros(0, np.int64)


def _latest_first(te: np.ndarray) -> np.ndarray:
    # sorts te descending; INF next to the greatest other end, so that the values' range stays small for the sort
    finite = te[te != INF]
    top = int(finite.max()) if len(finite) else 0
    return np.where(te == INF, -1, top - np.where(te == INF, top, te))
