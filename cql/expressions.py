"""Scalar expressions: names to column ids, what is not allowed at a place told, the rest left to Spark.

``Binder.bind`` gives an ``Expr`` whose text is the author's, with each column replaced by its quoted id. ``Grouping``
is the extra knowledge of a select list or HAVING above GROUP BY: keys and aggregates are replaced as wholes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from sweeparea.cql import functions, types
from sweeparea.cql.dialect import span_of
from sweeparea.cql.errors import BindError, ParseError, Place, RefusedError, TypeError_, nearest, not_offered
from sweeparea.cql.scopes import Scope, parts_of
from sweeparea.cql.source_text import Replacement, SourceText, Span
from sweeparea.operators.logical import AggregateCall, Column, Expr

_UNREPEATABLE = "its value depends on when and where a slice is run, so no two runs would agree"
_ID_LIKE = re.compile(r"^c\d+$", re.IGNORECASE)


@dataclass(frozen=True)
class Bound:
    """A bound expression and its type, where that is certain."""

    expr: Expr
    type: str | None


@dataclass
class Grouping:
    """GROUP BY while the select list and HAVING are bound: the keys, and the aggregates met so far."""

    keys: list[tuple[Column, Expr, tuple[str, ...]]] = field(default_factory=list)
    calls: dict[tuple[str, ...], tuple[Column, AggregateCall]] = field(default_factory=dict)

    def key_of_column(self, column: Column) -> Column | None:
        for key, _, canonical in self.keys:
            if canonical == (quoted(column),):
                return key
        return None

    def key_of(self, canonical: tuple[str, ...]) -> Column | None:
        for key, _, other in self.keys:
            if other == canonical:
                return key
        return None


def quoted(column: Column) -> str:
    return f"`{column.id}`"


def _named(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def column_expr(column: Column, text: str | None = None) -> Expr:
    """The expression that is just a column."""
    return Expr(quoted(column), text if text is not None else column.label, frozenset({column.id}))


class Binder:
    """Binds expressions at one place of a query.

    ``where`` names the place for errors (WHERE, SELECT, ..). ``aliases`` are select-list aliases that may be used once
    no column has the name (Spark's lateral aliases, and HAVING).
    """

    def __init__(
        self,
        source: SourceText,
        scope: Scope,
        new_column: Callable[[str, str | None], Column],
        where: str,
        grouping: Grouping | None = None,
        aliases: dict[str, Bound] | None = None,
    ) -> None:
        self.source = source
        self.scope = scope
        self.new_column = new_column
        self.where = where
        self.grouping = grouping
        self.aliases = aliases if aliases is not None else {}

    # -- the two ways in ---------------------------------------------------------------------------------------------

    def bind(self, node: exp.Expr, span: Span | None = None) -> Bound:
        """The expression of a tree. Raises the first fault that it has."""
        span = span or self.span(node)
        walk = _Walk(self)
        walk.visit(node)
        expr = Expr(self.source.splice(span, walk.replacements), self.source.splice(span), frozenset(walk.used))
        return Bound(expr, types.normal(types.of(node, walk.types)))

    def condition(self, node: exp.Expr) -> Expr:
        """As ``bind``, for WHERE, ON and HAVING: TypeError where the type is known and not BOOLEAN."""
        bound = self.bind(node)
        if bound.type not in (None, "boolean", "void"):
            raise TypeError_(
                f"{self.where} needs a condition, but {bound.expr.text} is of type {bound.type.upper()}",
                self.place(node),
                "Write a comparison, such as a > 0",
            )
        return bound.expr

    # -- helpers -----------------------------------------------------------------------------------------------------

    def span(self, node: exp.Expr) -> Span:
        span = span_of(node)
        if span is None:
            first = self.source.tokens[0].start if self.source.tokens else 0
            raise ParseError(f"this part of {self.where} cannot be read", self.source.place(first))
        return span

    def place(self, node: exp.Expr) -> Place:
        return self.source.place(self.span(node)[0])

    def canonical(self, node: exp.Expr) -> tuple[str, ...] | None:
        """What equal expressions over the input share, or None where a name does not resolve there."""
        replacements: list[Replacement] = []
        try:
            for column in node.find_all(exp.Column):
                parts = parts_of(column)
                if len(parts) != len(column.parts):
                    return None
                found, used = self.scope.resolve([p.name for p in parts], self.place(column))
                replacements.append(Replacement(_span_of_parts(parts[:used]), quoted(found)))
            return self.source.canonical(self.span(node), replacements)
        except BindError:
            return None


def _span_of_parts(parts: list[exp.Identifier]) -> Span:
    first, last = span_of(parts[0]), span_of(parts[-1])
    if first is None or last is None:
        raise ParseError(f"{parts[0].name} has no place in the text")
    return first[0], last[1]


class _Walk:
    """One pass over a tree: collects replacements, used ids and known types."""

    def __init__(self, binder: Binder) -> None:
        self.binder = binder
        self.replacements: list[Replacement] = []
        self.used: set[str] = set()
        self.types: dict[int, str | None] = {}

    def visit(self, node: exp.Expr) -> None:
        if self._grouping_key(node):
            return
        handler = self._handler(node)
        if handler is not None:
            handler(node)
            return
        for child in node.iter_expressions():
            self.visit(child)

    def _handler(self, node: exp.Expr) -> Callable[[exp.Expr], None] | None:
        for kind, handler in (
            (exp.Column, self._column),
            (exp.Anonymous, self._function),
            (exp.Window, self._over),
            (exp.Filter, self._filter),
            (exp.WithinGroup, self._within_group),
            (exp.Query, self._subquery),
            (exp.Exists, self._exists),
            (exp.In, self._in),
            (exp.Lambda, self._lambda),
            (exp.Cast, self._cast),
            (exp.DataType, self._nothing),
            (exp.Star, self._star),
            (exp.Tuple, self._tuple),
            (exp.Placeholder, self._parameter),
            (exp.Parameter, self._parameter),
            (exp.SessionParameter, self._parameter),
            (exp.Distinct, self._distinct),
            (exp.Kwarg, self._kwarg),
            (exp.Func, self._own_function),
        ):
            if isinstance(node, kind):
                return handler
        return None

    def _children(self, node: exp.Expr) -> None:
        for child in node.iter_expressions():
            self.visit(child)

    def _replace(self, node: exp.Expr, span: Span, column: Column) -> None:
        self.replacements.append(Replacement(span, quoted(column)))
        self.used.add(column.id)
        self.types[id(node)] = column.type

    def _refuse(self, what: str, node: exp.Expr, hint: str = "") -> RefusedError:
        return not_offered(what, self.binder.place(node), hint)

    # -- columns -----------------------------------------------------------------------------------------------------

    def _grouping_key(self, node: exp.Expr) -> bool:
        grouping = self.binder.grouping
        if grouping is None or isinstance(node, exp.Column | exp.Identifier | exp.Var | exp.DataType):
            return False
        if not any(canonical[1:] or not canonical[:1][0].startswith("`") for _, _, canonical in grouping.keys):
            return False
        span = span_of(node)
        if span is None:
            return False
        canonical = self.binder.canonical(node)
        key = grouping.key_of(canonical) if canonical else None
        if key is None or isinstance(node, exp.Literal):
            return False
        self._replace(node, span, key)
        return True

    def _column(self, node: exp.Expr) -> None:
        if not isinstance(node, exp.Column):
            return
        binder = self.binder
        parts = parts_of(node)
        if len(parts) != len(node.parts):
            if isinstance(node.this, exp.Star):
                raise ParseError(f"* does not belong into an expression of {binder.where}", binder.place(node))
            if isinstance(node.this, exp.Func):
                raise self._refuse("a function with a qualified name", node)
            raise ParseError("this name cannot be read", binder.place(node))
        names = [p.name for p in parts]
        place = binder.place(node)
        try:
            column, used = binder.scope.resolve(names, place)
        except BindError as error:
            if self._alias(node, parts):
                return
            raise error
        grouping = binder.grouping
        if grouping is None:
            self._replace(node, _span_of_parts(parts[:used]), column)
            if used < len(parts):
                self.types[id(node)] = None
            return
        key = grouping.key_of_column(column)
        if key is None and used < len(parts):
            canonical = binder.canonical(node)
            whole = grouping.key_of(canonical) if canonical else None
            if whole is not None:
                self._replace(node, _span_of_parts(parts), whole)
                return
        if key is None:
            if self._alias(node, parts):
                return
            name = ".".join(names)
            raise BindError(
                f"column {name} is neither grouped nor inside an aggregate",
                place,
                f"Add it to GROUP BY, or write MIN({name}) or another aggregate of it",
            )
        self._replace(node, _span_of_parts(parts[:used]), key)
        if used < len(parts):
            self.types[id(node)] = None

    def _alias(self, node: exp.Expr, parts: list[exp.Identifier]) -> bool:
        bound = self.binder.aliases.get(parts[0].name.lower())
        if bound is None:
            return False
        self.replacements.append(Replacement(_span_of_parts(parts[:1]), f"({bound.expr.sql})"))
        self.used |= bound.expr.columns
        self.types[id(node)] = bound.type if len(parts) == 1 else None
        return True

    # -- functions ---------------------------------------------------------------------------------------------------

    def _function(self, node: exp.Expr) -> None:
        if not isinstance(node, exp.Anonymous):
            return
        name = node.name.upper()
        self._check_name(name, node)
        if name in functions.SUPPORTED_AGGREGATES:
            self._aggregate(node, functions.SUPPORTED_AGGREGATES[name])
            return
        arguments = node.expressions
        if name in functions.UNIT_FIRST and len(arguments) == 3:
            arguments = arguments[1:]
        for position, argument in enumerate(arguments, 1):
            if isinstance(argument, exp.Distinct):
                raise ParseError(f"DISTINCT belongs to aggregates, and {name} is none", self.binder.place(node))
            if _is_star(argument):
                self._expand(argument, named=name == "STRUCT")
            else:
                self.visit(argument)
                if name == "STRUCT":
                    self._keep_field_name(argument, position)

    def _tuple(self, node: exp.Expr) -> None:
        """``(a, b)`` is a struct too."""
        for position, part in enumerate(node.expressions, 1):
            self.visit(part)
            self._keep_field_name(part, position)

    def _keep_field_name(self, part: exp.Expr, position: int) -> None:
        """A struct's field is named after the column that fills it: by its own name, not by the id in its place."""
        span = span_of(part)
        if self.replacements and self.replacements[-1].span == span and not isinstance(part, exp.Alias):
            name = part.name if isinstance(part, exp.Column) else f"col{position}"
            last = self.replacements.pop()
            self.replacements.append(Replacement(last.span, f"{last.text} AS {_named(name)}"))

    def _check_name(self, name: str, node: exp.Expr) -> None:
        place = self.binder.place(node)
        if node.meta.get("to_stream") is not None:
            raise ParseError(
                f"{name} turns a whole query into a stream and cannot stand inside {self.binder.where}",
                place,
                f"Write SELECT {name}(a, b) FROM .., or {name}(SELECT ..)",
            )
        if name in functions.NON_DETERMINISTIC or (name == "UNIX_TIMESTAMP" and not node.expressions):
            raise RefusedError(
                f"{name.lower()} is not deterministic: {_UNREPEATABLE}",
                place,
                "Use the stream's instant ts, or a column that the source fills",
            )
        if name in functions.SKETCHES:
            raise RefusedError(
                f"{name.lower()} is approximate: its answer depends on the order of the rows, so no two runs agree",
                place,
            )
        if name in functions.OTHER_AGGREGATES:
            raise self._refuse(f"the aggregate {name}", node, "Offered are COUNT, SUM, AVG, MIN and MAX")
        if name in functions.WINDOW_ONLY:
            raise self._refuse(f"the window function {name}", node)
        if name in functions.GENERATORS:
            raise self._refuse(f"the table function {name}", node)
        if name in functions.SPARK_STREAMING:
            raise self._refuse(
                f"Spark's {name.lower()}(..)", node, "Write a window behind the stream: S [Tumbling INTERVAL 1 HOUR]"
            )
        if name in functions.WINDOW_BOUNDS:
            raise self._refuse(name, node)
        if name == "ARRAYS_ZIP":
            raise RefusedError(
                "arrays_zip is not offered: it names its fields after columns, which have other names inside",
                place,
                "Write zip_with(a, b, (x, y) -> struct(x AS a, y AS b))",
            )
        if name.lower() not in functions.spark_functions():
            raise BindError(f"there is no function {node.name}", place, nearest(name, functions.spark_functions()))

    def _own_function(self, node: exp.Expr) -> None:
        """Functions that sqlglot makes a class of its own even so: CURRENT_DATE without parentheses, TRIM, EXTRACT,
        .."""
        names = list(node.sql_names()) if isinstance(node, exp.Func) else []
        name = names[0].upper() if names else ""
        if name in functions.NON_DETERMINISTIC or isinstance(
            node,
            exp.CurrentDate
            | exp.CurrentTimestamp
            | exp.CurrentUser
            | exp.SessionUser
            | exp.CurrentTime
            | exp.Localtimestamp,
        ):
            raise RefusedError(
                f"{name.lower()} is not deterministic: {_UNREPEATABLE}",
                self.binder.place(node),
                "Use the stream's instant ts, or a column that the source fills",
            )
        self._children(node)

    def _aggregate(self, node: exp.Anonymous, function: str) -> None:
        binder, name = self.binder, node.name.upper()
        grouping = binder.grouping
        place = binder.place(node)
        if grouping is None:
            raise BindError(
                f"the aggregate {name} cannot stand in {binder.where}",
                place,
                "Use HAVING for conditions on aggregates"
                if binder.where == "WHERE"
                else "Aggregate in a subquery first",
            )
        inner = Binder(binder.source, binder.scope, binder.new_column, f"the argument of {name}")
        arguments = node.expressions
        if any(isinstance(a, exp.Distinct) for a in arguments):
            raise self._refuse(f"{name}(DISTINCT ..)", node, "Count the rows of a subquery that selects DISTINCT")
        if function != "COUNT" and (len(arguments) != 1 or _is_star(arguments[0])):
            raise TypeError_(f"{name} takes one argument, found {_count_text(arguments)}", place, f"Write {name}(a)")
        if function == "COUNT" and not arguments:
            raise TypeError_("COUNT needs an argument", place, "Write COUNT(*)")
        for argument in arguments:
            if isinstance(argument, exp.Order | exp.Limit | exp.IgnoreNulls | exp.RespectNulls | exp.HavingMax):
                raise self._refuse(f"{name} with {argument.key.upper()} inside", node)
        star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
        if star and not arguments[0].args.get("except_"):
            key: tuple[str, ...] = ("COUNT", "*")
            call = AggregateCall("COUNT", None)
            type_: str | None = "bigint"
        else:
            bound = self._argument(inner, arguments, name)
            if types.aggregate_refuses(function, bound.type):
                raise TypeError_(
                    f"{name} cannot take {bound.expr.text}, which is of type {(bound.type or '').upper()}",
                    place,
                    "It takes numbers" if function in ("SUM", "AVG") else "It takes types that have an order",
                )
            key = (function, bound.expr.sql)
            call = AggregateCall(function, bound.expr)
            type_ = types.aggregate_type(function, bound.type)
        if key not in grouping.calls:
            grouping.calls[key] = (binder.new_column(binder.source.splice(binder.span(node)).lower(), type_), call)
        self._replace(node, binder.span(node), grouping.calls[key][0])

    def _argument(self, inner: Binder, arguments: list[exp.Expr], name: str) -> Bound:
        if len(arguments) == 1 and not _is_star(arguments[0]):
            if any(_is_aggregate(n) for n in arguments[0].walk()):
                nested = next(n for n in arguments[0].walk() if _is_aggregate(n))
                raise BindError(
                    f"the aggregate {nested.name.upper()} cannot stand inside the aggregate {name}",
                    inner.place(nested),
                    "Aggregate in a subquery first",
                )
            return inner.bind(arguments[0])
        # COUNT(a, b) and COUNT(t.*) count the rows in which none of them is NULL
        bound: list[Expr] = []
        for argument in arguments:
            if _is_star(argument):
                bound += [column_expr(c) for c in star_columns(inner.scope, argument, inner.place(argument))]
            else:
                bound.append(inner.bind(argument).expr)
        if not bound:
            raise TypeError_(f"{name} needs an argument", self.binder.place(arguments[0]))
        test = " OR ".join(f"({b.sql}) IS NULL" for b in bound)
        columns = frozenset().union(*(b.columns for b in bound))
        return Bound(Expr(f"IF({test}, NULL, 1)", ", ".join(b.text for b in bound), columns), "int")

    def _expand(self, argument: exp.Expr, named: bool) -> None:
        """``struct(*)`` and ``hash(t.*)``: a star among arguments stands for its columns."""
        columns = star_columns(self.binder.scope, argument, self.binder.place(argument))
        if self.binder.grouping is not None:
            raise self._refuse("* inside a function above GROUP BY", argument)
        span = span_of(argument)
        if span is None:
            raise ParseError("* cannot be read here", self.binder.place(argument))
        texts = [f"{quoted(c)} AS {_named(c.label)}" if named else quoted(c) for c in columns]
        self.replacements.append(Replacement(span, ", ".join(texts)))
        self.used |= {c.id for c in columns}

    def _over(self, node: exp.Expr) -> None:
        raise self._refuse("a window function (OVER)", node)

    def _filter(self, node: exp.Expr) -> None:
        raise self._refuse("FILTER (WHERE ..) behind an aggregate", node, "Aggregate a CASE expression")

    def _within_group(self, node: exp.Expr) -> None:
        raise self._refuse("WITHIN GROUP", node)

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _subquery(self, node: exp.Expr) -> None:
        raise self._refuse("a scalar subquery", node, "Join the subquery instead")

    def _exists(self, node: exp.Expr) -> None:
        if isinstance(node.this, exp.Query):
            raise self._refuse("EXISTS (subquery)", node, "Join the subquery instead")
        self._children(node)

    def _in(self, node: exp.Expr) -> None:
        if node.args.get("query") is not None:
            negated = isinstance(node.parent, exp.Not)
            raise self._refuse(
                "NOT IN (subquery)" if negated else "IN (subquery)", node, "Join a DISTINCT subquery instead"
            )
        self._children(node)

    def _lambda(self, node: exp.Expr) -> None:
        for parameter in node.expressions:
            if _ID_LIKE.match(parameter.name):
                raise BindError(
                    f"the parameter {parameter.name} has a name that the engine gives to columns",
                    self.binder.place(node),
                    "Name it otherwise, such as x",
                )
        self.visit(node.this)

    def _cast(self, node: exp.Expr) -> None:
        literal = node.this
        if (
            isinstance(literal, exp.Literal)
            and literal.is_string
            and literal.name.strip().lower() in functions.SPECIAL_INSTANTS
        ):
            raise RefusedError(
                f"'{literal.name}' as a time is not deterministic: it depends on when a slice is run",
                self.binder.place(node),
            )
        self.visit(node.this)

    def _kwarg(self, node: exp.Expr) -> None:
        self.visit(node.expression)

    def _nothing(self, node: exp.Expr) -> None:
        return None

    def _star(self, node: exp.Expr) -> None:
        raise ParseError(f"* does not belong into an expression of {self.binder.where}", self.binder.place(node))

    def _parameter(self, node: exp.Expr) -> None:
        raise self._refuse("a parameter marker or variable", node, "Write the value itself")

    def _distinct(self, node: exp.Expr) -> None:
        raise ParseError("DISTINCT belongs behind SELECT or into an aggregate", self.binder.place(node))


def _count_text(arguments: list[exp.Expr]) -> str:
    return "*" if len(arguments) == 1 else str(len(arguments))


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in functions.AGGREGATES


def star_columns(scope: Scope, node: exp.Expr, place: Place) -> list[Column]:
    """The columns of ``*``, ``t.*`` or ``* EXCEPT (a)``."""
    if isinstance(node, exp.Column):
        qualifier, star = node.table, node.this
        if node.args.get("db") is not None:
            raise not_offered("the fields of a struct as columns (a.b.*)", place)
        aliases = [i for i in scope.items if i.alias is not None and i.alias.lower() == qualifier.lower()]
        if not aliases and scope.unqualified(qualifier):
            raise not_offered(
                f"the fields of the struct {qualifier} as columns ({qualifier}.*)", place, "Name the fields"
            )
        columns = list(scope.item(qualifier, place).columns)
    else:
        star, columns = node, list(scope.star)
        if not scope.items:
            raise BindError("* needs a FROM", place)
    if star.args.get("replace") or star.args.get("rename"):
        raise not_offered("* REPLACE / RENAME", place)
    for excluded in star.args.get("except_") or []:
        name = excluded.name
        kept = [c for c in columns if c.label.lower() != name.lower()]
        if len(kept) == len(columns):
            raise BindError(f"EXCEPT names {name}, which * does not have", place)
        columns = kept
    return columns


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND connects, from left to right."""
    found: list[exp.Expr] = []
    pending = [node]
    while pending:
        tree = pending.pop()
        while isinstance(tree, exp.Paren) and isinstance(tree.this, exp.And | exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.And):
            pending += [tree.expression, tree.this]
        else:
            found.append(tree)
    return found


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression makes its SELECT an aggregation: an aggregate that is not a window function nor in a
    subquery."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        return any(has_aggregate(a) for a in (node.this.iter_expressions() if isinstance(node.this, exp.Expr) else ()))
    return _is_aggregate(node) or any(has_aggregate(child) for child in node.iter_expressions())
