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
from functools import singledispatchmethod

from sweeparea.cql.printing.calls import aggregate_text, order_text, window_function_text
from sweeparea.cql.printing.naming import Naming
from sweeparea.cql.printing.not_printable import NotPrintable
from sweeparea.cql.printing.statement_printer import VIOLATIONS, expected, name, setting
from sweeparea.cql.printing.window_words import WindowParts, window_text
from sweeparea.infra.deep_stack import deep
from sweeparea.operators import windows as spec
from sweeparea.operators.nodes import (
    Aggregate,
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
from sweeparea.operators.plan.join_kind import JoinKind
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.numbers import ROW_NUMBER
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind, StreamKind
from sweeparea.operators.sql.sql_text import substituted
from sweeparea.operators.time.domain import TimeKind

__all__ = ["NotPrintable", "print_plan", "print_query"]

_JOINS = {
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}
Outputs = list[tuple[str, str]]
"""Columns of a SELECT: (id, the name it gets), in order."""


@deep
def print_plan(plan: Plan) -> str:
    """A CREATE CONTINUOUS QUERY statement that means the plan, without the semicolon."""
    printer = _Printer(plan)
    query = printer.query(plan)
    labels = {c.id: name(c.label) for c in plan.root.columns}
    lines = [f"CREATE CONTINUOUS QUERY {name(plan.name)}"]
    if plan.start:
        lines.append(f"  START AT {printer.naming.length(plan.start)}")
    if (
        plan.time.kind == TimeKind.TIMESTAMP
        and plan.time.chronon > 1
        and not any(_is_stream(n) for n in plan.root.walk())
    ):
        lines.append(f"  CHRONON INTERVAL {plan.time.chronon} MICROSECONDS")
    kept = [kind for kind in plan.materialize if kind != ResultKind.QUARANTINE]  # its constraints say so
    lines.append(f"  MATERIALIZE {', '.join(_kept(plan, kind, printer.naming) for kind in kept)}")
    for c in plan.constraints:
        condition = substituted(c.condition.sql, labels)
        lines.append(f"  CONSTRAINT {name(c.name)} EXPECT ({condition}) ON VIOLATION {VIOLATIONS[c.on_violation]}")
    for e in plan.expectations:
        per = "" if e.per is None else f" PER {printer.naming.length(e.per)}"
        told = expected(e.kind, e.type, e.arguments)
        lines.append(f"  CONSTRAINT {name(e.name)} EXPECT {told}{per} ON VIOLATION {VIOLATIONS[e.on_violation]}")
    if plan.settings:
        lines.append(f"  WITH ({', '.join(f'{n} = {setting(v)}' for n, v in plan.settings)})")
    return "\n".join([*lines, "AS", query])


def _is_stream(node: Node) -> bool:
    return isinstance(node, StreamScan)


@deep
def print_query(plan: Plan) -> str:
    """The query of a plan alone, as ``bind_select`` takes it."""
    return _Printer(plan).query(plan)


def _kept(plan: Plan, kind: ResultKind, naming: Naming) -> str:
    every = (
        f" EVERY {naming.every(plan.every, plan.anchor)}"
        if kind == ResultKind.RSTREAM and plan.every is not None
        else ""
    )
    return kind.upper() + every


@dataclass
class Block:
    """An entry of FROM: its text, how its columns are referred to, the conditions that WHERE adds, and whether it is
    several entries joined.
    """

    text: str
    references: dict[str, str]
    where: list[str] = field(default_factory=list)
    joined: bool = False


class _Printer:
    """``select`` and ``block`` say of each kind of node how it is written: as a SELECT, as an entry of FROM."""

    def __init__(self, plan: Plan) -> None:
        self.naming = Naming(plan)

    def query(self, plan: Plan) -> str:
        text = self.select(plan.root, [(c.id, name(c.label)) for c in plan.root.columns])
        if plan.stream is None:
            return text
        named = plan.stream == StreamKind.RSTREAM and plan.every
        every = f" EVERY {self.naming.every(plan.every, plan.anchor)}" if named else ""
        return f"{plan.stream.upper()}({text}{every})"

    # -- SELECT ------------------------------------------------------------------------------------------------------

    def _named(self, node: Node) -> str:
        """A SELECT whose columns have the node's ids as names."""
        return self.select(node, [(c.id, self.naming.id(c)) for c in node.columns])

    @singledispatchmethod
    def select(self, node: Node, outputs: Outputs) -> str:
        """A SELECT of a node's columns."""
        return self._of_entry(node, outputs)

    @select.register
    def _(self, node: Project, outputs: Outputs) -> str:
        block = self.block(node.input)
        by_id = {c.id: e for c, e in node.outputs}
        items = [f"{substituted(by_id[i].sql, block.references)} AS {n}" for i, n in outputs]
        return _text(items or ["1 AS none"], block)

    @select.register
    def _(self, node: TopK, outputs: Outputs) -> str:
        block = self.block(node.input)
        numbers = {c.id: _number(node, f, block.references) for c, f in node.numbers}
        items = [f"{numbers.get(i) or block.references[i]} AS {n}" for i, n in outputs]
        return _text(items, block) + _top(node, block.references)

    @select.register
    def _(self, node: Analytic, outputs: Outputs) -> str:
        block = self.block(node.input)
        calls = {c.id: window_function_text(call, block.references) for c, call in node.calls}
        return _text([f"{calls.get(i) or block.references[i]} AS {n}" for i, n in outputs], block)

    @select.register
    def _(self, node: Aggregate, outputs: Outputs) -> str:
        if [i for i, _ in outputs] != [c.id for c in node.columns]:
            return self._of_entry(node, outputs)
        return self._aggregate(node, [n for _, n in outputs])

    @select.register(UnionAll)
    @select.register(Difference)
    @select.register(Intersect)
    def _(self, node: UnionAll | Difference | Intersect, outputs: Outputs) -> str:
        if [i for i, _ in outputs] != [c.id for c in node.outputs]:
            return self._of_entry(node, outputs)
        return self._set_operation(node, [n for _, n in outputs])

    def _of_entry(self, node: Node, outputs: Outputs) -> str:
        block = self.block(node)
        return _text([f"{block.references[i]} AS {n}" for i, n in outputs] or ["1 AS none"], block)

    def _aggregate(self, node: Aggregate, names: list[str]) -> str:
        block = self.block(node.input)
        keys = [substituted(e.sql, block.references) for _, e in node.keys]
        calls = [aggregate_text(call, block.references) for _, call in node.calls]
        items = [f"{item} AS {n}" for item, n in zip([*keys, *calls], names, strict=True)]
        if not calls and keys:
            return _text(items, block).replace("SELECT ", "SELECT DISTINCT ", 1)
        if node.global_:
            return _text(items, block)
        # a key is named by its position, as a constant would be taken for one
        return _text(items, block) + f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}"

    def _set_operation(self, node: UnionAll | Difference | Intersect, names: list[str]) -> str:
        if isinstance(node, UnionAll):
            operator = "UNION ALL"
        else:
            operator = ("EXCEPT" if isinstance(node, Difference) else "INTERSECT") + (" ALL" if node.all else "")
        parts = [
            f"({self.select(part, [(c.id, n) for c, n in zip(part.columns, names, strict=True)])})"
            for part in node.inputs
        ]
        return f" {operator} ".join(parts)

    # -- FROM --------------------------------------------------------------------------------------------------------

    @singledispatchmethod
    def block(self, node: Node) -> Block:
        """An entry of FROM with a node's rows: its SELECT, unless it has a way of its own."""
        selects = _Printer.__dict__["select"].dispatcher
        if selects.dispatch(type(node)) is selects.dispatch(Node):  # then it would be an entry of FROM again
            raise NotPrintable(f"{type(node).__name__} has no text of its own.")
        return self._derived(node)

    @block.register
    def _(self, node: RelationScan) -> Block:
        alias = self.naming.alias()
        return Block(f"{_dotted(node.name)} AS {alias}", {c.id: f"{alias}.{name(n)}" for c, n in node.source})

    @block.register
    def _(self, node: OneRow) -> Block:
        del node
        return Block("", {})

    @block.register
    def _(self, node: Select) -> Block:
        block = self.block(node.input)
        block.where.append(substituted(node.condition.sql, block.references))
        return block

    @block.register(StreamScan)
    @block.register(RelationToStream)
    @block.register(Enrich)
    def _(self, node: Node) -> Block:
        del node
        raise NotPrintable("A stream without a window has no text of its own.")

    @block.register
    def _(self, node: Join) -> Block:
        left, right = self.block(node.left), self.block(node.right)
        if left.joined and left.where:  # WHERE would put the conditions above this join as well
            left = self._derived(node.left)
        if (right.joined and right.where) or isinstance(_source(node.right), Generate):
            right = self._derived(node.right)  # a LATERAL VIEW belongs to all of FROM before it
        if node.kind == JoinKind.INNER and (not left.text or not right.text):  # beside OneRow
            block = left if left.text else right
            block.where += [] if node.condition is None else [substituted(node.condition.sql, block.references)]
            return block
        if node.kind != JoinKind.INNER:
            left = left if left.text and not left.where else self._derived(node.left)
            right = right if right.text and not right.where else self._derived(node.right)
        references = {**left.references, **right.references}
        condition = substituted(node.condition.sql, references) if node.condition is not None else None
        beside = f"({right.text})" if right.joined else right.text
        if node.kind == JoinKind.INNER:
            on = f"JOIN {beside} ON {condition}" if condition is not None else f"CROSS JOIN {beside}"
            return Block(f"{left.text} {on}", references, left.where + right.where, True)
        text = f"{left.text} {_JOINS[node.kind]} {beside} ON {condition or 'TRUE'}"
        return Block(text, left.references if node.kind in (JoinKind.SEMI, JoinKind.ANTI) else references, joined=True)

    @block.register
    def _(self, node: Generate) -> Block:
        block = self.block(node.input)
        if block.where or not block.text:
            block = self._derived(node.input)
        alias = self.naming.alias()
        names = ", ".join(self.naming.id(c) for c in node.outputs)
        call = substituted(node.generator.sql, block.references)
        outer = "OUTER " if node.outer else ""
        text = f"{block.text} LATERAL VIEW {outer}{call} {alias} AS {names}"
        return Block(text, {**block.references, **{c.id: f"{alias}.{self.naming.id(c)}" for c in node.outputs}})

    @block.register
    def _(self, node: Window) -> Block:
        if isinstance(node.input, Select | Project):
            return self._below(node)
        alias = self.naming.alias()
        stream = node.input.stream if isinstance(node.input, Enrich) else node.input
        text, references = self.stream(stream, alias)
        block = Block(f"{text} {self._window_text(node, references)} AS {alias}", references)
        if node.bounds is not None:
            start, end = node.bounds
            block.references |= {start.id: f"WINDOW_START({alias})", end.id: f"WINDOW_END({alias})"}
        return self._enriched(block, node.input) if isinstance(node.input, Enrich) else block

    @singledispatchmethod
    def stream(self, node: Node, alias: str) -> tuple[str, dict[str, str]]:
        """What a window is of, and how its columns are referred to behind the alias."""
        del alias
        raise NotPrintable(f"A window over a {type(node).__name__} has no text of its own.")

    @stream.register
    def _(self, node: StreamScan, alias: str) -> tuple[str, dict[str, str]]:
        references = {c.id: f"{alias}.{name(n)}" for c, n in node.source}
        if node.instant is not None:
            references[node.instant.id] = f"{alias}.ts"
        return _dotted(node.name), references

    @stream.register
    def _(self, node: RelationToStream, alias: str) -> tuple[str, dict[str, str]]:
        inner = self._named(node.input)
        every = f" EVERY {self.naming.every(node.every, node.anchor)}" if node.every is not None else ""
        references = {c.id: f"{alias}.{self.naming.id(c)}" for c in node.input.columns}
        if node.instant is not None:
            references[node.instant.id] = f"{alias}.ts"
        return f"({node.kind.upper()}({inner}{every}))", references

    def _derived(self, node: Node) -> Block:
        alias = self.naming.alias()
        return Block(f"({self._named(node)}) AS {alias}", {c.id: f"{alias}.{self.naming.id(c)}" for c in node.columns})

    # -- windows -----------------------------------------------------------------------------------------------------

    def _enriched(self, block: Block, node: Enrich) -> Block:
        relation = self.block(node.relation)
        if relation.where:
            raise NotPrintable("A selection below the join with a NON RETROACTIVE relation has no text of its own.")
        references = {**block.references, **relation.references}
        condition = substituted(node.condition.sql, references) if node.condition is not None else "TRUE"
        kind = "LEFT JOIN" if node.kind == JoinKind.LEFT else "JOIN"
        return Block(f"{block.text} {kind} {relation.text} ON {condition}", references, joined=True)

    def _below(self, node: Window) -> Block:
        """Selections and projections below a window, which commute with windows of time, above it."""
        below = node.input
        if not isinstance(node.spec, spec.TimeWindow) or not isinstance(below, Select | Project):
            raise NotPrintable("A selection below a window that counts rows has no text of its own.")
        block = self.block(_over(node, below.inputs[0]))
        if isinstance(below, Select):
            block.where.append(substituted(below.condition.sql, block.references))
            return block
        outputs = {c.id: _atom(substituted(e.sql, block.references)) for c, e in below.outputs}
        return Block(block.text, {**block.references, **outputs}, block.where)

    def _window_text(self, node: Window, references: Mapping[str, str]) -> str:
        by = ", ".join(substituted(e.sql, references) for e in node.partition)
        condition = substituted(node.condition.sql if node.condition is not None else "TRUE", references)
        arguments = ", ".join(substituted(e.sql, references) for e in node.arguments)
        partition = f" Partition By {by}" if by else ""
        return window_text(node.spec, WindowParts(self.naming.length, partition, condition, arguments))


def _top(node: TopK, references: Mapping[str, str]) -> str:
    if node.keys or node.numbers or node.by != ROW_NUMBER:
        return _cut(node, references)
    limit = f" LIMIT {node.limit}" if node.limit is not None else ""
    offset = f" OFFSET {node.offset}" if node.offset else ""
    return f" ORDER BY {order_text(node.order, references)}{limit}{offset}"


def _cut(node: TopK, references: Mapping[str, str]) -> str:
    """The first rows of each group: those with small numbers."""
    number = _number(node, node.by, references)
    parts = [f"{number} > {node.offset}"] if node.offset else []
    parts += [f"{number} <= {node.offset + node.limit}"] if node.limit is not None else []
    return f" QUALIFY {' AND '.join(parts)}" if parts else ""


def _number(node: TopK, function: str, references: Mapping[str, str]) -> str:
    order = node.order if function == ROW_NUMBER else node.order[: node.peers]
    return window_function_text(WindowFunction(function, (), node.keys, order), references)


def _source(node: Node) -> Node:
    """What a selection is of."""
    while isinstance(node, Select):
        node = node.input
    return node


def _over(node: Window, input_: Node) -> Window:
    return Window(input_, node.spec, node.partition, node.condition, node.arguments, node.ties, node.bounds)


def _text(items: list[str], block: Block) -> str:
    from_ = f" FROM {block.text}" if block.text else ""
    where = f" WHERE {' AND '.join(f'({w})' for w in block.where)}" if block.where else ""
    return f"SELECT {', '.join(items)}{from_}{where}"


def _atom(sql: str) -> str:
    return sql if re.fullmatch(r"[\w.`]+", sql) else f"({sql})"


def _dotted(text: str) -> str:
    return name(text) if "." not in text else ".".join(name(part) for part in text.split("."))
