"""Random plans over small inputs, of all kinds of nodes: for law S4, rule by rule."""

from __future__ import annotations

import dataclasses
from random import Random

from sweeparea.cql.rewrites.conditions import substitute
from sweeparea.operators import windows as w
from sweeparea.operators.nodes import (
    Aggregate,
    AggregateCall,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
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
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.sweeps.join import JoinKind
from tests.cql.plan_oracle import Relation, Stream

LAST = 8
TABLES = {
    "S": (("a", "int"), ("b", "string"), ("x", "double")),
    "T": (("a", "int"), ("c", "int")),
    "R": (("a", "int"), ("d", "string")),
    "Q": (("c", "int"), ("x", "double")),
}
STREAMS = ("S", "T")


def inputs(r: Random) -> dict[str, Stream | Relation]:
    """Rows with few values, many of them equal or NULL, at ticks 0 to ``LAST``."""

    def row(name: str) -> tuple:
        values = {"int": (0, 1, 2, None), "string": ("x", "y", None), "double": (0.5, 1.0, -2.25, None)}
        return tuple(r.choice(values[t]) for _, t in TABLES[name])

    found: dict[str, Stream | Relation] = {}
    for name, columns in TABLES.items():
        names = tuple(c for c, _ in columns)
        if name in STREAMS:
            found[name] = Stream(names, [(r.randint(0, LAST), row(name)) for _ in range(r.randint(0, 12))])
            continue
        changes: list[tuple[int, int, tuple]] = []
        for _ in range(r.randint(0, 6)):
            record, since = row(name), r.randint(-2, LAST)
            changes.append((since, 1, record))
            if r.random() < 0.5:
                changes.append((r.randint(since, LAST), -1, record))
        found[name] = Relation(names, changes)
    return found


class Plans:
    """Makes plans; ids are unique in all of them."""

    def __init__(self, r: Random) -> None:
        self.r = r
        self.made = 0

    def column(self, type_: str | None) -> Column:
        self.made += 1
        return Column(f"c{self.made}", f"l{self.made}", type_)

    # -- expressions ---------------------------------------------------------------------------------------------------

    @staticmethod
    def ref(column: Column) -> Expr:
        return Expr(f"`{column.id}`", column.label, frozenset({column.id}))

    def constant(self, type_: str | None) -> str:
        return self.r.choice({"int": ("0", "1", "2"), "string": ("'x'", "'y'"), "double": ("0.5D", "1.0D")}[str(type_)])

    def conjunct(self, columns: tuple[Column, ...], depth: int = 1) -> Expr:
        r = self.r
        if depth and r.random() < 0.2:
            a, b = self.conjunct(columns, 0), self.conjunct(columns, 0)
            sql = r.choice(
                (f"({a.sql} OR {b.sql})", f"NOT ({a.sql} AND {b.sql})", f"({a.sql}) = ({b.sql})", f"NOT ({a.sql})")
            )
            return Expr(sql, sql, a.columns if sql == f"NOT ({a.sql})" else a.columns | b.columns)
        column = r.choice(columns)
        like = [c for c in columns if c.type == column.type and c is not column]
        value, k = f"`{column.id}`", self.constant(column.type)
        used = {column.id}
        if like and r.random() < 0.4:
            other = r.choice(like)
            used.add(other.id)
            sql = f"{value} {r.choice(('=', '=', '<', '<=>', '<>'))} `{other.id}`"
        else:
            sql = r.choice(
                (
                    f"{value} = {k}",
                    f"{value} > {k}",
                    f"{value} IS NULL",
                    f"{value} IS NOT NULL",
                    f"coalesce({value}, {k}) = {k}",
                    f"{value} IN ({k}, {self.constant(column.type)})",
                    f"{value} BETWEEN {k} AND {self.constant(column.type)}",
                )
            )
        return Expr(sql, sql, frozenset(used))

    def condition(self, columns: tuple[Column, ...], most: int = 3) -> Expr:
        parts = [self.conjunct(columns) for _ in range(self.r.randint(1, most))]
        sql = " AND ".join(f"({p.sql})" for p in parts) if len(parts) > 1 else parts[0].sql
        return Expr(sql, sql, frozenset().union(*(p.columns for p in parts)))

    def outputs(self, columns: tuple[Column, ...]) -> tuple[tuple[Column, Expr], ...]:
        r, found = self.r, []
        for column in r.sample(columns, r.randint(1, len(columns))):
            expr, type_ = self.ref(column), column.type
            if column.type == "int" and r.random() < 0.3:
                sql = f"`{column.id}` + {r.choice((1, 2))}"
                expr = Expr(sql, sql, frozenset({column.id}))
            elif r.random() < 0.1:
                expr = Expr(self.constant(type_), "", frozenset())
            found.append((self.column(type_), expr))
        return tuple(found)

    def order(self, columns: tuple[Column, ...]) -> tuple[SortKey, ...]:
        first = self.r.choice(columns)
        down = self.r.random() < 0.5
        return (SortKey(self.ref(first), down, not down), *(SortKey(self.ref(c)) for c in columns))

    # -- streams -------------------------------------------------------------------------------------------------------

    def scan(self, name: str) -> StreamScan | RelationScan:
        source = tuple((self.column(t), n) for n, t in TABLES[name])
        return StreamScan(name, source) if name in STREAMS else RelationScan(name, source)

    def stream(self, depth: int) -> Node:
        roll = self.r.random()
        if depth > 0 and roll < 0.12:
            kind = self.r.choice((StreamKind.ISTREAM, StreamKind.DSTREAM, StreamKind.ISTREAM, StreamKind.RSTREAM))
            below = self.plain(depth - 1) if self.r.random() < 0.6 else self.relation(depth - 1)
            instant = self.column("int") if self.r.random() < 0.4 else None
            return RelationToStream(below, kind, instant=instant)
        if roll < 0.2:
            scan, relation = self.scan("S"), self.scan("R")
            condition = self.condition((*scan.columns, *relation.columns), 2)
            return Enrich(scan, relation, condition, self.r.choice((JoinKind.INNER, JoinKind.LEFT)))
        return self.scan(self.r.choice(STREAMS))

    def plain(self, depth: int) -> Node:
        """A relation of one Unbounded or Now window under select, project and union."""
        spec = self.r.choice((w.Unbounded(), w.Unbounded(), w.Range(1), w.Landmark(2, 5)))

        def one() -> Node:
            node: Node = Window(self.stream(depth - 1), spec)
            if self.r.random() < 0.5:
                node = Select(node, self.condition(node.columns, 2))
            return Project(node, self.outputs(node.columns)) if self.r.random() < 0.7 else node

        node = one()
        if self.r.random() < 0.25:
            node = self.union(node, one())
        return node

    def window(self, depth: int) -> Node:
        r, stream = self.r, self.stream(depth)
        spec: w.WindowDefinition = r.choice(
            (
                w.Range(1),
                w.Range(3),
                w.Range(4),
                w.Unbounded(),
                w.Unbounded(),
                w.Slide(4, 2, 1),
                w.Hopping(3, 3),
                w.Hopping(4, 2, 1),
                w.Fixed(3),
                w.Landmark(2, 5),
                w.Rows(2),
                w.Rows(3, 2),
                w.Rows(2, 1, 3),
                w.Session(2),
                w.When(),
            )
        )
        known = stream.columns
        partition: tuple[Expr, ...] = ()
        condition = None
        if isinstance(spec, w.Rows | w.Session | w.When) and r.random() < 0.7:
            partition = tuple(self.ref(c) for c in r.sample(known, r.randint(1, 2)))
        if isinstance(spec, w.When):
            condition = self.conjunct(known)
        bounds = None
        if isinstance(spec, w.Hopping | w.Fixed | w.Session) and r.random() < 0.3:
            bounds = self.column("int"), self.column("int")
        ties = tuple(c.id for c in known) if isinstance(spec, w.Rows | w.When) else ()
        return Window(stream, spec, partition, condition, (), ties, bounds)

    # -- relations -----------------------------------------------------------------------------------------------------

    def relation(self, depth: int) -> Node:
        r = self.r
        if depth <= 0:
            return self.window(0) if r.random() < 0.75 else self.scan(r.choice(("R", "Q")))
        make = r.choice(
            (
                self.select,
                self.select,
                self.select,
                self.project,
                self.join,
                self.join,
                self.inner_joins,
                self.set_operation,
                self.distinct,
                self.aggregate,
                self.top,
                self.analytic,
                self.generate,
                self.window,
                self.twice,
                self.extreme,
            )
        )
        return make(depth)

    def select(self, depth: int) -> Node:
        make = self.r.choice(
            (self.relation, self.relation, self.set_operation, self.join, self.aggregate, self.analytic)
        )
        below = make(depth - 1)
        return Select(below, self.condition(below.columns))

    def project(self, depth: int) -> Node:
        below = self.relation(depth - 1)
        if self.r.random() < 0.1:
            return Project(below, tuple((c, self.ref(c)) for c in below.columns))
        return Project(below, self.outputs(below.columns))

    def join(self, depth: int) -> Node:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        kind = self.r.choice((JoinKind.INNER, *JoinKind))
        both = (*left.columns, *right.columns)
        parts = [self.condition(both)]
        pairs = [(a, b) for a in left.columns for b in right.columns if a.type == b.type]
        if pairs and (self.r.random() < 0.7 or kind == JoinKind.FULL):
            a, b = self.r.choice(pairs)
            parts.append(Expr(f"`{a.id}` = `{b.id}`", "", frozenset({a.id, b.id})))
            if kind == JoinKind.FULL:
                parts = parts[-1:]  # DuckDB's full joins want equalities
        if kind != JoinKind.FULL and self.r.random() < 0.1:
            parts.append(Expr("TRUE", "TRUE"))
        sql = " AND ".join(f"({p.sql})" for p in parts)
        return Join(left, right, Expr(sql, sql, frozenset().union(*(p.columns for p in parts))), kind)

    def inner_joins(self, depth: int) -> Node:
        node = self.relation(0)
        for _ in range(self.r.randint(2, 3)):
            right = self.relation(0)
            if self.r.random() < 0.3:
                right = self.anti(right)
            pairs = [(a, b) for a in node.columns for b in right.columns if a.type == b.type]
            condition = None
            if pairs and self.r.random() < 0.85:
                a, b = self.r.choice(pairs)
                condition = Expr(f"`{a.id}` = `{b.id}`", "", frozenset({a.id, b.id}))
            node = Join(node, right, condition)
        return self.anti(node) if self.r.random() < 0.3 else node

    def anti(self, node: Node) -> Node:
        """A semi or anti join with an equality on one column."""
        right = self.relation(0)
        pairs = [(a, b) for a in node.columns for b in right.columns if a.type == b.type]
        if not pairs:
            return node
        a, b = self.r.choice(pairs)
        equal = Expr(f"`{a.id}` = `{b.id}`", "", frozenset({a.id, b.id}))
        return Join(node, right, equal, self.r.choice((JoinKind.SEMI, JoinKind.ANTI)))

    def union(self, *parts: Node) -> Node:
        width = min(len(p.columns) for p in parts)
        types = [p.columns[i].type for i in range(width) for p in parts]
        same = all(len(set(types[i * len(parts) : (i + 1) * len(parts)])) == 1 for i in range(width))
        if not same:
            return parts[0]
        cut = tuple(
            p
            if len(p.columns) == width
            else Project(p, tuple((self.column(c.type), self.ref(c)) for c in p.columns[:width]))
            for p in parts
        )
        return UnionAll(cut, tuple(self.column(c.type) for c in cut[0].columns))

    def set_operation(self, depth: int) -> Node:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        types = [c.type for c in left.columns]
        fitting: list[tuple[Column, Expr]] = []
        for type_ in types:
            given = [c for c in right.columns if c.type == type_]
            expr = self.ref(self.r.choice(given)) if given else Expr(self.constant(type_))
            fitting.append((self.column(type_), expr))
        right = Project(right, tuple(fitting))
        outputs = tuple(self.column(t) for t in types)
        roll = self.r.random()
        if roll < 0.4:
            return UnionAll((left, right), outputs)
        kind = Difference if roll < 0.7 else Intersect
        if self.r.random() < 0.4:
            left = self.distinct_of(left)
        return kind(left, right, outputs, self.r.random() < 0.5)

    def distinct_of(self, below: Node) -> Node:
        return Aggregate(below, tuple((self.column(c.type), self.ref(c)) for c in below.columns), ())

    def distinct(self, depth: int) -> Node:
        roll = self.r.random()
        below = self.inner_joins(depth) if roll < 0.5 else self.relation(depth - 1)
        if roll > 0.9:  # fewer columns than a grouping has
            below = self.aggregate(depth)
            below = Project(below, tuple((self.column(c.type), self.ref(c)) for c in below.columns[:1]))
            return self.distinct_of(below)
        if roll < 0.25 and isinstance(below, Join):  # columns of one side
            left = below.left.columns
            below = Project(below, tuple((self.column(c.type), self.ref(c)) for c in left))
        elif roll > 0.75:
            below = Project(below, self.outputs(below.columns))
        return self.distinct_of(below)

    def aggregate(self, depth: int) -> Node:
        below, r = self.relation(depth - 1), self.r
        global_ = r.random() < 0.2
        keys: list[tuple[Column, Expr]] = []
        for column in [] if global_ else r.sample(below.columns, r.randint(1, min(2, len(below.columns)))):
            sql = f"`{column.id}` + 1" if column.type == "int" and r.random() < 0.3 else f"`{column.id}`"
            keys.append((self.column(column.type), Expr(sql, sql, frozenset({column.id}))))
        calls = [(self.column("int"), AggregateCall("COUNT"))]
        column = r.choice(below.columns)
        if column.type != "string":
            calls.append((self.column(column.type), AggregateCall(r.choice(("SUM", "MIN", "MAX")), self.ref(column))))
        return Aggregate(below, tuple(keys), tuple(calls), global_)

    def top(self, depth: int) -> Node:
        below = self.relation(depth - 1)
        keys = (self.ref(self.r.choice(below.columns)),) if self.r.random() < 0.6 else ()
        return TopK(below, self.order(below.columns), self.r.randint(1, 2), self.r.choice((0, 0, 1)), keys)

    def analytic(self, depth: int) -> Node:
        below = self.relation(depth - 1)
        partition = tuple(self.ref(c) for c in self.r.sample(below.columns, 1))
        order = self.order(below.columns)
        calls = [(self.column("int"), WindowFunction("ROW_NUMBER", (), partition, order))]
        for function in ("RANK", "DENSE_RANK"):
            if self.r.random() < 0.3:
                calls.append((self.column("int"), WindowFunction(function, (), partition, order[:1])))
        if self.r.random() < 0.5:
            calls.append((self.column("int"), WindowFunction("COUNT", (self.ref(below.columns[0]),), partition)))
        self.r.shuffle(calls)
        return Analytic(below, tuple(calls))

    def generate(self, depth: int) -> Node:
        below = self.relation(depth - 1)
        numbers = [c for c in below.columns if c.type == "int"]
        if not numbers:
            return below
        column = self.r.choice(numbers)
        sql = f"explode(array(`{column.id}`, `{column.id}` + 1))"
        return Generate(below, Expr(sql, sql, frozenset({column.id})), (self.column("int"),), self.r.random() < 0.5)

    def twice(self, depth: int) -> Node:
        """A join or union of a subplan with a copy of it."""
        below = self.relation(depth - 1)
        other = self.copied(below)
        if self.r.random() < 0.4:
            return UnionAll((below, other), tuple(self.column(c.type) for c in below.columns))
        a, b = below.columns[0], other.columns[0]
        return Join(below, other, Expr(f"`{a.id}` = `{b.id}`", "", frozenset({a.id, b.id})))

    def extreme(self, depth: int) -> Node:
        """Rows whose value is the greatest or least of the same rows, all or those of a group; most often."""
        r, base = self.r, self.relation(depth - 1)
        other = self.copied(base)
        places = [i for i, c in enumerate(base.columns) if c.type != "double" or r.random() < 0.1]
        if not places:
            return base
        value, *keys = r.sample(places, min(len(places), r.choice((1, 1, 2, 3))))
        call = AggregateCall(r.choice(("MAX", "MIN")), self.ref(other.columns[value]))
        made = (self.column(base.columns[value].type), call)
        grouped = tuple((self.column(base.columns[k].type), self.ref(other.columns[k])) for k in keys)
        if r.random() < 0.15:  # of some of the rows: another extreme
            other = Select(other, self.condition(other.columns, 1))
        best: Node = Aggregate(other, grouped, (made,), not grouped)
        side: Node = base
        if r.random() < 0.3:
            side = Select(side, self.condition(side.columns, 1))
        shown = list(base.columns)
        if r.random() < 0.3:
            shown = [self.column(c.type) for c in base.columns]
            outputs = list(zip(shown, map(self.ref, base.columns), strict=True))
            r.shuffle(outputs)
            side = Project(side, tuple(outputs))
        pairs = [(shown[value], made[0]), *((shown[k], c) for k, (c, _) in zip(keys, grouped, strict=True))]
        if r.random() < 0.1:
            pairs.pop()
        parts = [Expr(f"`{a.id}` = `{b.id}`", "", frozenset({a.id, b.id})) for a, b in pairs]
        if r.random() < 0.3:
            parts.append(self.conjunct((*side.columns, *best.columns)))
        sql = " AND ".join(f"({p.sql})" for p in parts) or "TRUE"
        condition = Expr(sql, sql, frozenset().union(*(p.columns for p in parts)))
        both = (side, best) if r.random() < 0.7 else (best, side)
        return Join(*both, condition)

    def copied(self, node: Node) -> Node:
        """The same subplan with other ids."""

        names: dict[str, Column] = {}

        def new(column: Column) -> Column:
            if column.id not in names:
                names[column.id] = self.column(column.type)
            return names[column.id]

        def change(value: object) -> object:
            if isinstance(value, Node):
                return dataclasses.replace(
                    value, **{f.name: change(getattr(value, f.name)) for f in dataclasses.fields(value)}
                )
            if isinstance(value, Column):
                return new(value)
            if isinstance(value, Expr):
                by = {i: Expr(f"`{names[i].id}`", "", frozenset({names[i].id})) for i in value.columns if i in names}
                return substitute(value, by)
            if isinstance(value, tuple):
                return tuple(map(change, value))
            if isinstance(value, str):
                return names[value].id if value in names else value
            if isinstance(value, SortKey | AggregateCall | WindowFunction):
                return dataclasses.replace(
                    value, **{f.name: change(getattr(value, f.name)) for f in dataclasses.fields(value)}
                )
            return value

        made = change(node)
        assert isinstance(made, Node)
        return made
