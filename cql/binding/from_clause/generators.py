"""Generators: functions that make rows of one row, in LATERAL VIEW, in the select list and in FROM, as Generate nodes.

``explode_outer`` is ``explode`` in an outer Generate. How many columns a generator has is part of the query's meaning,
so where the type of its argument is not known, the alias has to name them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sweeparea.cql.binding.expressions.registry import binder_at
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.bound import Bound
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Entry, Item, Scope
from sweeparea.cql.functions import functions, types
from sweeparea.cql.functions.signatures import split_types
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text import foreign_words
from sweeparea.cql.text.constants import number_of
from sweeparea.cql.text.errors import BindError, RefusedError, TypeError_, not_offered
from sweeparea.operators.nodes import Generate, OneRow, Select
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column, Expr


@dataclass(frozen=True)
class Generated:
    """A bound generator: its columns, and whether a row without any stays."""

    generator: Expr
    columns: tuple[Column, ...]
    outer: bool = False

    def over(self, plan: Node) -> Node:
        return Generate(plan, self.generator, self.columns, self.outer)


def is_generator(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in functions.GENERATORS


# -- where they stand --------------------------------------------------------------------------------------------------


def lateral_view(context: Context, plan: Node, scope: Scope, view: exp.Expr) -> Entry:
    """``LATERAL VIEW [OUTER] explode(a) t AS x``: the plan and the scope with its columns."""
    binder = binder_at(context, scope, "LATERAL VIEW")
    if not is_generator(view.this):
        name = view.this.name if isinstance(view.this, exp.Anonymous) else "this"
        raise TypeError_(
            f"LATERAL VIEW needs a generator, and {name} is none",
            context.place(view),
            "Generators are explode, posexplode, inline, stack, json_tuple and variant_explode",
        )
    alias, names = _alias(view)
    made = _bind(binder, view.this, names, bool(view.args.get("outer")))
    return made.over(plan), scope.beside(Scope.of(Item(alias, made.columns)))


def in_select(binder: Binder, item: exp.Expr) -> Generated:
    """A generator that is a whole item of the select list, with its alias or aliases."""
    call: exp.Expr = item
    names: list[str] = []
    if isinstance(item, exp.Aliases):
        call, names = item.this, [i.name for i in item.expressions]
    elif isinstance(item, exp.Alias):
        call, names = item.this, [item.alias]
    assert isinstance(call, exp.Anonymous)
    return _bind(binder, call, names)


def is_table_function(entry: exp.Expr) -> bool:
    """Whether an entry of FROM calls a function: ``explode(..)``, ``LATERAL explode(..)``, ``range(5)``."""
    return isinstance(entry, exp.Lateral | exp.Table) and isinstance(entry.this, exp.Func)


def in_from(context: Context, entry: exp.Expr, left: Entry | None, outer: bool = False) -> Entry:
    """A table function in FROM: ``LATERAL explode(S.a) AS t(x)`` beside what stands before it, ``explode(array(1, 2))``
    or ``range(5)`` alone.

    ``outer``: LEFT JOIN LATERAL, which keeps the rows of ``left`` for which there is none.
    """
    call, place = entry.this, context.place(entry)
    name = call.name.upper() if isinstance(call, exp.Anonymous) else call.key.upper()
    if not is_generator(call) and name != "RANGE":
        known = {key: schema.name for key, schema in context.inputs.items()}
        functions.refuse_non_deterministic(name, 0, place)
        hint = foreign_words.FUNCTIONS.get(name, "Offered are generators, such as explode, and range")
        if name.lower() in known:
            hint = f"Write {known[name.lower()]} AS v(a, b) to name the columns of {known[name.lower()]}"
        raise not_offered(f"the table function {name.lower()}", place, hint)
    window = entry.meta.get("window") or (entry.args["alias"].meta.get("window") if entry.args.get("alias") else None)
    if window is not None:
        raise TypeError_("a window needs a stream, not a table function", place, "Leave the window out")
    alias, names = _alias(entry)
    plan, scope = left if left is not None else (OneRow(), Scope())
    lateral = isinstance(entry, exp.Lateral)
    try:
        made = _bind(binder_at(context, scope if lateral else Scope(), "FROM"), call, names, outer)
    except BindError as error:
        if lateral or left is None or "is unknown" not in error.message:
            raise
        hint = f"To see the columns before it, write LATERAL {name.lower()}(..)"
        raise BindError(error.message, error.place, hint) from None
    return made.over(plan), scope.beside(Scope.of(Item(alias or name.lower(), made.columns)))


def joined(context: Context, left: Entry, join: exp.Expr) -> Entry:
    """A table function behind a comma or a JOIN: ``JOIN LATERAL explode(..) t [ON ..]``."""
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    on = join.args.get("on")
    trivial = on is None or (isinstance(on, exp.Boolean) and bool(on.this))
    if side not in ("", "LEFT") or kind in ("SEMI", "ANTI") or join.args.get("using") or (side and not trivial):
        raise not_offered(
            "this join with a table function",
            context.place(join),
            "Write LATERAL VIEW [OUTER], or JOIN LATERAL and a condition in WHERE",
        )
    node, scope = in_from(context, join.this, left, outer=side == "LEFT")
    if on is None or trivial:
        return node, scope
    return Select(node, binder_at(context, scope, "ON").condition(on)), scope


def _alias(node: exp.Expr) -> tuple[str | None, list[str]]:
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return None, []
    return (alias.name or None), [c.name for c in alias.args.get("columns") or []]


# -- what they make ----------------------------------------------------------------------------------------------------


def _bind(binder: Binder, call: exp.Anonymous, names: list[str], outer: bool = False) -> Generated:
    name = call.name.upper()
    inner = binder.derived(f"the argument of {name}", windows=None)
    bound = [inner.bind(a) for a in call.expressions]
    if name.endswith("_OUTER"):
        name, outer = name.removesuffix("_OUTER"), True
    made = _Columns(binder, call, name, bound, len(names)).columns()
    if names and len(names) != len(made):
        raise BindError(
            f"{call.name} makes {len(made)} column{'s' if len(made) != 1 else ''}, and the alias names {len(names)}",
            binder.place(call),
            f"Its columns are {', '.join(label for label, _ in made)}",
        )
    labels = names or [label for label, _ in made]
    columns = tuple(binder.new_column(label, type_) for label, (_, type_) in zip(labels, made, strict=True))
    text = binder.source.splice(binder.span(call))
    if name == "RANGE":
        return Generated(Expr(_range(binder, call), text), columns, outer)
    sql = f"{name.lower()}({', '.join(b.expr.sql for b in bound)})"
    reads = frozenset().union(*(b.expr.columns for b in bound)) if bound else frozenset()
    binder.source.expressions.setdefault(text, binder.span(call)[0])
    return Generated(Expr(sql, text, reads), columns, outer)


class _Columns:
    """The columns of one generator: labels as Spark gives them, and types where they are certain."""

    def __init__(self, binder: Binder, call: exp.Anonymous, name: str, bound: list[Bound], named: int) -> None:
        self.binder, self.call, self.name, self.bound, self.named = binder, call, name, bound, named
        self.place = binder.place(call)

    def columns(self) -> list[tuple[str, str | None]]:
        makers: dict[str, Callable[[], list[tuple[str, str | None]]]] = {
            "EXPLODE": self._explode,
            "POSEXPLODE": lambda: [("pos", "int"), *self._explode()],
            "INLINE": self._inline,
            "STACK": self._stack,
            "JSON_TUPLE": self._json,
            "VARIANT_EXPLODE": self._variant,
            "RANGE": lambda: [("id", "bigint")],
        }
        return makers[self.name]()

    def _variant(self) -> list[tuple[str, str | None]]:
        self._one()
        return [("pos", "int"), ("key", "string"), ("value", "variant")]

    def _one(self) -> Bound:
        if len(self.bound) != 1:
            raise TypeError_(f"{self.call.name} takes one argument, found {len(self.bound)}", self.place)
        return self.bound[0]

    def _wrong(self, bound: Bound, wanted: str) -> TypeError_:
        return TypeError_(
            f"{self.call.name} cannot take {bound.expr.text}, which is of type {(bound.type or '').upper()}",
            self.place,
            f"It takes {wanted}",
        )

    def _explode(self) -> list[tuple[str, str | None]]:
        bound = self._one()
        type_ = bound.type
        if type_ is not None and type_.startswith("array<"):
            return [("col", type_[6:-1])]
        if type_ is not None and type_.startswith("map<"):
            key, value = split_types(type_[4:-1])
            return [("key", key), ("value", value)]
        if type_ is not None and type_ not in ("array", "map"):
            raise self._wrong(bound, "ARRAY or MAP")
        extra = self.named - (self.name == "POSEXPLODE")
        if extra not in (1, 2):
            raise self._unnamed(bound)
        return [("col", None)] if extra == 1 else [("key", None), ("value", None)]

    def _unnamed(self, bound: Bound) -> TypeError_:
        return TypeError_(
            f"how many columns {self.call.name}({bound.expr.text}) has cannot be told here: its type is not known",
            self.place,
            "Name its columns: AS (k, v), or CAST the argument to its type",
        )

    def _inline(self) -> list[tuple[str, str | None]]:
        bound = self._one()
        type_ = bound.type
        fields = types.fields(type_[6:-1]) if type_ is not None and type_.startswith("array<") else None
        if fields is not None:
            return list(fields)
        if type_ is not None:
            raise self._wrong(bound, "ARRAY of STRUCT")
        if not self.named:
            raise self._unnamed(bound)
        return [(f"col{i + 1}", None) for i in range(self.named)]

    def _stack(self) -> list[tuple[str, str | None]]:
        number = number_of(self.call.expressions[0]) if self.call.expressions else None
        rows = number.numerator if number is not None and number.denominator == 1 else 0
        if rows < 1 or len(self.bound) < 2:
            raise TypeError_(
                "stack takes a positive number of rows, then their values", self.place, "Write stack(2, a, b, c, d)"
            )
        values = self.bound[1:]
        width = -(-len(values) // rows)
        return [(f"col{i}", types.common([b.type for b in values[i::width]])) for i in range(width)]

    def _json(self) -> list[tuple[str, str | None]]:
        if len(self.bound) < 2:
            raise TypeError_("json_tuple takes a JSON text and names", self.place, "Write json_tuple(j, 'a', 'b')")
        return [(f"c{i}", "string") for i in range(len(self.bound) - 1)]


def _range(binder: Binder, call: exp.Anonymous) -> str:
    """``range(end)``, ``range(start, end, step)``: the numbers, which must be known here."""
    numbers = []
    for tree in call.expressions:
        number = number_of(tree)
        if number is None or number.denominator != 1:
            raise TypeError_("range takes constant whole numbers", binder.place(tree), "Write range(0, 10)")
        numbers.append(number.numerator)
    if not 1 <= len(numbers) <= 3:
        raise TypeError_(
            f"range takes one to three numbers, found {len(numbers)}", binder.place(call), "Write range(0, 10, 1)"
        )
    start, end, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if step == 0:
        raise TypeError_("the step of range cannot be 0", binder.place(call), "Write range(0, 10, 1)")
    count = max(0, -(-(end - start) // step))
    if count == 0:
        return "explode(CAST(array() AS ARRAY<BIGINT>))"
    return f"explode(sequence({start}L, {start + (count - 1) * step}L, {step}L))"


# -- struct.* ----------------------------------------------------------------------------------------------------------


def struct_star(scope: Scope, item: exp.Expr, binder: Binder) -> list[exp.Expr] | None:
    """``s.*`` and ``t.s.f.*`` where a struct is meant: items for its fields, marked with what they stand for. None: the
    star is a table's.
    """
    if not isinstance(item, exp.Column):
        return None
    names = [p.name for p in item.parts[:-1]]
    place = binder.place(item)
    if len(names) == 1:
        if any(i.alias is not None and i.alias.lower() == names[0].lower() for i in scope.items):
            return None
        if not scope.unqualified(names[0]):
            return None
    column, used = scope.resolve(names, place)
    type_, path = column.type, f"`{column.id}`"
    for name in names[used:]:
        type_ = types.field_type(type_, name)
        path += _quoted(name)
    found = None if type_ is None else types.fields(type_)
    shown = ".".join(names)
    if found is None:
        if type_ is None:
            raise RefusedError(
                f"{shown}.* is not offered: the type of {shown} is not known here", place, "Name the fields"
            )
        raise TypeError_(f"{shown}.* needs a STRUCT, and {shown} is of type {type_.upper()}", place, f"Write {shown}")
    for excluded in item.this.args.get("except_") or []:
        kept = [(n, t) for n, t in found if n.lower() != excluded.name.lower()]
        if len(kept) == len(found):
            raise BindError(f"EXCEPT names {excluded.name}, which {shown}.* does not have", place)
        found = kept
    items: list[exp.Expr] = []
    for name, field_type in found:
        reference = exp.Column(this=exp.to_identifier(name, quoted=True))
        reference.meta["span"] = span_of(item)
        reference.meta["resolved"] = column
        reference.meta["field"] = (path + _quoted(name), name, field_type)
        items.append(reference)
    return items


def _quoted(name: str) -> str:
    return ".`" + name.replace("`", "``") + "`"
