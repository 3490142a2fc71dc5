"""Bound plans as CQL: each node a SELECT or an entry of FROM, its columns named by their ids.

Binding the text again gives the same plan up to its normal form (``tests/cql/normal_form.py``): the ids differ, and a
Project that only renames may be there or not. The first rows of each group are those with small row numbers. What the
language has no words for is told by ``NotPrintable``, as an aggregate that only plans have (SINGLE_VALUE of a
decorrelated subquery). Where an order has no syntax (FIRST(x)), binding takes the record's, as it did for the plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sweeparea.cql.printing.statement_printer import VIOLATIONS, name, setting
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import windows as spec
from sweeparea.operators.nodes import (
    Aggregate,
    AggregateCall,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    OneRow,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
    WindowFunction,
)
from sweeparea.operators.plan.expressions import Column, SortKey
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sql_text import substituted
from sweeparea.operators.sweeps.top_k import ROW_NUMBER
from sweeparea.operators.time.domain import TimeDomain

_LIKE_ID = re.compile(r"c\d+", re.IGNORECASE)
_WITHIN = ("LISTAGG", "PERCENTILE_CONT", "PERCENTILE_DISC")
_JOINS = {"left": "LEFT JOIN", "full": "FULL JOIN", "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}


class NotPrintable(SweepAreaError):
    """A plan that no text of the language means."""


def print_plan(plan: Plan) -> str:
    """A CREATE CONTINUOUS QUERY statement that means the plan, without the semicolon."""
    printer = _Printer(plan)
    query = printer.query(plan)
    labels = {c.id: name(c.label) for c in plan.root.columns}
    lines = [f"CREATE CONTINUOUS QUERY {name(plan.name)}"]
    if plan.start:
        lines.append(f"  START AT {printer.length(plan.start)}")
    if plan.time.kind == "TIMESTAMP" and plan.time.chronon > 1 and not any(_is_stream(n) for n in plan.root.walk()):
        lines.append(f"  CHRONON INTERVAL {plan.time.chronon} MICROSECONDS")
    lines.append(f"  MATERIALIZE {', '.join(_kept(plan, kind, printer) for kind in plan.materialize)}")
    for c in plan.constraints:
        condition = substituted(c.condition.sql, labels)
        lines.append(f"  CONSTRAINT {name(c.name)} EXPECT ({condition}) ON VIOLATION {VIOLATIONS[c.on_violation]}")
    if plan.settings:
        lines.append(f"  WITH ({', '.join(f'{n} = {setting(v)}' for n, v in plan.settings)})")
    return "\n".join([*lines, "AS", query])


def _is_stream(node: Node) -> bool:
    return isinstance(node, StreamScan)


def print_query(plan: Plan) -> str:
    """The query of a plan alone, as ``bind_select`` takes it."""
    return _Printer(plan).query(plan)


def _kept(plan: Plan, kind: str, printer: _Printer) -> str:
    every = f" EVERY {printer.every(plan.every, plan.anchor)}" if kind == "rstream" and plan.every is not None else ""
    return kind.upper() + every


@dataclass
class _Block:
    """An entry of FROM: its text, how its columns are referred to, the conditions that WHERE adds, and whether it is
    several entries joined.
    """

    text: str
    references: dict[str, str]
    where: list[str] = field(default_factory=list)
    joined: bool = False


class _Printer:
    def __init__(self, plan: Plan) -> None:
        self.time: TimeDomain = plan.time
        self.aliases = 0
        taken = {n.lower() for node in plan.root.walk() for n in _source_names(node)}
        self.prefix = "" if not any(_LIKE_ID.fullmatch(n) for n in taken) else "k_"
        while self.prefix and any(n.startswith(self.prefix) for n in taken):
            self.prefix += "k_"

    def query(self, plan: Plan) -> str:
        text = self._select(plan.root, [(c.id, name(c.label)) for c in plan.root.columns])
        if plan.stream is None:
            return text
        every = f" EVERY {self.every(plan.every, plan.anchor)}" if plan.stream == "rstream" and plan.every else ""
        return f"{plan.stream.upper()}({text}{every})"

    def every(self, every: int | None, anchor: int) -> str:
        return self.length(every or 0) + (f" ANCHOR {self.length(anchor)}" if anchor else "")

    def length(self, ticks: int) -> str:
        """Ticks as the time domain writes them."""
        if self.time.kind == "BIGINT":
            return str(ticks)
        return f"INTERVAL {'-' if ticks < 0 else ''}{abs(ticks) * self.time.chronon} MICROSECONDS"

    def _id(self, column: Column | str) -> str:
        return self.prefix + (column if isinstance(column, str) else column.id)

    def _alias(self) -> str:
        self.aliases += 1
        return f"{self.prefix}t{self.aliases}"

    # -- SELECT ------------------------------------------------------------------------------------------------------

    def _named(self, node: Node) -> str:
        """A SELECT whose columns have the node's ids as names."""
        return self._select(node, [(c.id, self._id(c)) for c in node.columns])

    def _select(self, node: Node, outputs: list[tuple[str, str]]) -> str:
        """A SELECT of a node's columns: (id, the name it gets), in order."""
        match node:
            case Project():
                block = self._block(node.input)
                by_id = {c.id: e for c, e in node.outputs}
                items = [f"{substituted(by_id[i].sql, block.references)} AS {n}" for i, n in outputs]
                return _text(items or ["1 AS none"], block)
            case Aggregate() if [i for i, _ in outputs] == [c.id for c in node.columns]:
                return self._aggregate(node, [n for _, n in outputs])
            case TopK():
                block = self._block(node.input)
                numbers = {c.id: self._number(node, f, block.references) for c, f in node.numbers}
                items = [f"{numbers.get(i) or block.references[i]} AS {n}" for i, n in outputs]
                return _text(items, block) + self._top(node, block.references)
            case Analytic():
                block = self._block(node.input)
                calls = {c.id: self._over(call, block.references) for c, call in node.calls}
                return _text([f"{calls.get(i) or block.references[i]} AS {n}" for i, n in outputs], block)
            case UnionAll() | Difference() | Intersect() if [i for i, _ in outputs] == [c.id for c in node.outputs]:
                return self._set_operation(node, [n for _, n in outputs])
            case _:
                block = self._block(node)
                return _text([f"{block.references[i]} AS {n}" for i, n in outputs] or ["1 AS none"], block)

    def _aggregate(self, node: Aggregate, names: list[str]) -> str:
        block = self._block(node.input)
        keys = [substituted(e.sql, block.references) for _, e in node.keys]
        calls = [self._call(call, block.references) for _, call in node.calls]
        items = [f"{item} AS {n}" for item, n in zip([*keys, *calls], names, strict=True)]
        if not calls and keys:
            return _text(items, block).replace("SELECT ", "SELECT DISTINCT ", 1)
        if node.global_:
            return _text(items, block)
        # a key is named by its position, as a constant would be taken for one
        return _text(items, block) + f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}"

    def _call(self, call: AggregateCall, references: Mapping[str, str]) -> str:
        if call.function == "SINGLE_VALUE":
            raise NotPrintable("A decorrelated scalar subquery (SINGLE_VALUE) has no text of its own.")
        arguments = [substituted(e.sql, references) for e in (call.argument, *call.extra) if e is not None]
        inside = ("DISTINCT " if call.distinct else "") + (", ".join(arguments) or "*")
        text = f"{call.function}({inside})"
        if call.order and call.function in _WITHIN:
            if call.function != "LISTAGG":
                text = f"{call.function}({', '.join(arguments[1:])})"
            text += f" WITHIN GROUP (ORDER BY {self._order(call.order, references)})"
        if call.ignore_nulls:
            text += " IGNORE NULLS"
        if call.filter is not None:
            text += f" FILTER (WHERE {substituted(call.filter.sql, references)})"
        return text

    def _over(self, call: WindowFunction, references: Mapping[str, str]) -> str:
        arguments = ", ".join(substituted(e.sql, references) for e in call.arguments)
        text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments})"
        text += " IGNORE NULLS" if call.ignore_nulls else ""
        text += f" FILTER (WHERE {substituted(call.filter.sql, references)})" if call.filter is not None else ""
        over = []
        if call.partition:
            over.append(f"PARTITION BY {', '.join(substituted(e.sql, references) for e in call.partition)}")
        if call.order:
            over.append(f"ORDER BY {self._order(call.order, references)}")
        return f"{text} OVER ({' '.join([*over, call.frame] if call.frame else over)})"

    def _order(self, order: tuple[SortKey, ...], references: Mapping[str, str]) -> str:
        return ", ".join(
            f"{substituted(k.expr.sql, references)} {'DESC' if k.descending else 'ASC'} "
            f"NULLS {'FIRST' if k.nulls_first else 'LAST'}"
            for k in order
        )

    def _top(self, node: TopK, references: Mapping[str, str]) -> str:
        if node.keys or node.numbers or node.by != ROW_NUMBER:
            return self._cut(node, references)
        limit = f" LIMIT {node.limit}" if node.limit is not None else ""
        offset = f" OFFSET {node.offset}" if node.offset else ""
        return f" ORDER BY {self._order(node.order, references)}{limit}{offset}"

    def _cut(self, node: TopK, references: Mapping[str, str]) -> str:
        number = self._number(node, node.by, references)
        parts = [f"{number} > {node.offset}"] if node.offset else []
        parts += [f"{number} <= {node.offset + node.limit}"] if node.limit is not None else []
        return f" QUALIFY {' AND '.join(parts)}" if parts else ""

    def _number(self, node: TopK, function: str, references: Mapping[str, str]) -> str:
        order = node.order if function == ROW_NUMBER else node.order[: node.peers]
        return self._over(WindowFunction(function, (), node.keys, order), references)

    def _set_operation(self, node: UnionAll | Difference | Intersect, names: list[str]) -> str:
        if isinstance(node, UnionAll):
            operator = "UNION ALL"
        else:
            operator = ("EXCEPT" if isinstance(node, Difference) else "INTERSECT") + (" ALL" if node.all else "")
        parts = [
            f"({self._select(part, [(c.id, n) for c, n in zip(part.columns, names, strict=True)])})"
            for part in node.inputs
        ]
        return f" {operator} ".join(parts)

    # -- FROM --------------------------------------------------------------------------------------------------------

    def _block(self, node: Node) -> _Block:
        match node:
            case RelationScan():
                alias = self._alias()
                return _Block(f"{_dotted(node.name)} AS {alias}", {c.id: f"{alias}.{name(n)}" for c, n in node.source})
            case OneRow():
                return _Block("", {})
            case Select():
                block = self._block(node.input)
                block.where.append(substituted(node.condition.sql, block.references))
                return block
            case Window():
                return self._window(node)
            case Join():
                return self._join(node)
            case Generate():
                return self._generate(node)
            case StreamScan() | RelationToStream() | Enrich():
                raise NotPrintable("A stream without a window has no text of its own.")
            case _:
                return self._derived(node)

    def _derived(self, node: Node) -> _Block:
        alias = self._alias()
        return _Block(f"({self._named(node)}) AS {alias}", {c.id: f"{alias}.{self._id(c)}" for c in node.columns})

    def _join(self, node: Join) -> _Block:
        left, right = self._block(node.left), self._block(node.right)
        if left.joined and left.where:  # WHERE would put the conditions above this join as well
            left = self._derived(node.left)
        if (right.joined and right.where) or isinstance(_source(node.right), Generate):
            right = self._derived(node.right)  # a LATERAL VIEW belongs to all of FROM before it
        if node.kind == "inner" and (not left.text or not right.text):  # beside OneRow
            block = left if left.text else right
            block.where += [] if node.condition is None else [substituted(node.condition.sql, block.references)]
            return block
        if node.kind != "inner":
            left = left if left.text and not left.where else self._derived(node.left)
            right = right if right.text and not right.where else self._derived(node.right)
        references = {**left.references, **right.references}
        condition = substituted(node.condition.sql, references) if node.condition is not None else None
        beside = f"({right.text})" if right.joined else right.text
        if node.kind == "inner":
            on = f"JOIN {beside} ON {condition}" if condition is not None else f"CROSS JOIN {beside}"
            return _Block(f"{left.text} {on}", references, left.where + right.where, True)
        text = f"{left.text} {_JOINS[node.kind]} {beside} ON {condition or 'TRUE'}"
        return _Block(text, left.references if node.kind in ("semi", "anti") else references, joined=True)

    def _generate(self, node: Generate) -> _Block:
        block = self._block(node.input)
        if block.where or not block.text:
            block = self._derived(node.input)
        alias = self._alias()
        names = ", ".join(self._id(c) for c in node.outputs)
        call = substituted(node.generator.sql, block.references)
        outer = "OUTER " if node.outer else ""
        text = f"{block.text} LATERAL VIEW {outer}{call} {alias} AS {names}"
        return _Block(text, {**block.references, **{c.id: f"{alias}.{self._id(c)}" for c in node.outputs}})

    # -- windows -----------------------------------------------------------------------------------------------------

    def _window(self, node: Window) -> _Block:
        if isinstance(node.input, Select | Project):
            return self._below(node)
        alias = self._alias()
        stream = node.input.stream if isinstance(node.input, Enrich) else node.input
        if isinstance(stream, StreamScan):
            text, references = _dotted(stream.name), {c.id: f"{alias}.{name(n)}" for c, n in stream.source}
            if stream.instant is not None:
                references[stream.instant.id] = f"{alias}.ts"
        elif isinstance(stream, RelationToStream):
            inner = self._named(stream.input)
            every = f" EVERY {self.every(stream.every, stream.anchor)}" if stream.every is not None else ""
            text = f"({stream.kind.upper()}({inner}{every}))"
            references = {c.id: f"{alias}.{self._id(c)}" for c in stream.input.columns}
            if stream.instant is not None:
                references[stream.instant.id] = f"{alias}.ts"
        else:
            raise NotPrintable(f"A window over a {type(stream).__name__} has no text of its own.")
        block = _Block(f"{text} {self._window_text(node, references)} AS {alias}", references)
        if node.bounds is not None:
            start, end = node.bounds
            block.references |= {start.id: f"WINDOW_START({alias})", end.id: f"WINDOW_END({alias})"}
        return self._enriched(block, node.input) if isinstance(node.input, Enrich) else block

    def _enriched(self, block: _Block, node: Enrich) -> _Block:
        relation = self._block(node.relation)
        if relation.where:
            raise NotPrintable("A selection below the join with a NON RETROACTIVE relation has no text of its own.")
        references = {**block.references, **relation.references}
        condition = substituted(node.condition.sql, references) if node.condition is not None else "TRUE"
        kind = "LEFT JOIN" if node.kind == "left" else "JOIN"
        return _Block(f"{block.text} {kind} {relation.text} ON {condition}", references, joined=True)

    def _below(self, node: Window) -> _Block:
        """Selections and projections below a window, which commute with windows of time, above it."""
        below = node.input
        if not isinstance(node.spec, spec.TimeWindow) or not isinstance(below, Select | Project):
            raise NotPrintable("A selection below a window that counts rows has no text of its own.")
        block = self._window(_over(node, below.inputs[0]))
        if isinstance(below, Select):
            block.where.append(substituted(below.condition.sql, block.references))
            return block
        outputs = {c.id: _atom(substituted(e.sql, block.references)) for c, e in below.outputs}
        return _Block(block.text, {**block.references, **outputs}, block.where)

    def _window_text(self, node: Window, references: Mapping[str, str]) -> str:
        length, window = self.length, node.spec
        by = ", ".join(substituted(e.sql, references) for e in node.partition)
        partition = f" Partition By {by}" if by else ""
        match window:
            case spec.Unbounded():
                return "[Range Unbounded]"
            case spec.Range():
                return f"[Range {length(window.length)} Exclusive]"
            case spec.Slide():
                hops = f" Slide {length(window.slide)} Lag {length(window.lag)} Anchor {length(window.anchor)}"
                return f"[Range {length(window.length)} Exclusive{hops}]"
            case spec.Hopping():
                return f"[Hopping {length(window.length)} Slide {length(window.slide)} Anchor {length(window.anchor)}]"
            case spec.Fixed():
                return f"[Fixed {length(window.length)} Anchor {length(window.anchor)}]"
            case spec.Landmark():
                start = f"From {length(window.start)}" if window.start is not None else ""
                end = f"Until {length(window.end)}" if window.end is not None else ""
                return f"[{' '.join(x for x in (start, end) if x)}]"
            case spec.Calendar():
                return f"[Tumbling By {window.unit} In '{window.zone}']"
            case spec.Rows():
                span = f" Range {length(window.length)} Exclusive" if window.length is not None else ""
                slide = f" Slide {window.slide}" if window.slide != 1 else ""
                return f"[{partition.strip()}{' ' if by else ''}Rows {window.count}{span}{slide}]"
            case spec.Session():
                return f"[Session {length(window.gap)}{partition}]"
            case spec.When():
                condition = substituted(node.condition.sql if node.condition is not None else "TRUE", references)
                return f"[Tumbling When ({condition}){partition}]"
            case spec.UserWindow():
                return f"[{name(window.name)}({', '.join(substituted(e.sql, references) for e in node.arguments)})]"
            case _:
                raise NotPrintable(f"The window {window} has no text of its own.")


def _source(node: Node) -> Node:
    """What a selection is of."""
    while isinstance(node, Select):
        node = node.input
    return node


def _over(node: Window, input_: Node) -> Window:
    return Window(input_, node.spec, node.partition, node.condition, node.arguments, node.ties, node.bounds)


def _text(items: list[str], block: _Block) -> str:
    from_ = f" FROM {block.text}" if block.text else ""
    where = f" WHERE {' AND '.join(f'({w})' for w in block.where)}" if block.where else ""
    return f"SELECT {', '.join(items)}{from_}{where}"


def _atom(sql: str) -> str:
    return sql if re.fullmatch(r"[\w.`]+", sql) else f"({sql})"


def _dotted(text: str) -> str:
    return name(text) if "." not in text else ".".join(name(part) for part in text.split("."))


def _source_names(node: Node) -> list[str]:
    return [n for _, n in node.source] if isinstance(node, StreamScan | RelationScan) else []
