"""Scalar expressions: names to column ids, what is not allowed at a place told, the rest left to Spark.

``Binder.bind`` gives an ``Expr`` whose text is the author's, with each column replaced by its quoted id. ``Grouping``
is the extra knowledge of a select list or HAVING above GROUP BY: keys and aggregates are replaced as wholes.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from sweeparea.cql.binding.expressions.aggregates import GROUPING, bind_aggregate, is_aggregate, is_star
from sweeparea.cql.binding.expressions.quantified import membership_of
from sweeparea.cql.binding.scope.scopes import Scope, parts_of
from sweeparea.cql.binding.scope.window_bounds import bound_column
from sweeparea.cql.functions import char_padding, functions, literal_checks, types
from sweeparea.cql.functions.argument_checks import ArgumentChecks, comparison
from sweeparea.cql.functions.calls import take_apart
from sweeparea.cql.functions.untyped_nulls import STORED, VOID, held, typed
from sweeparea.cql.syntax.dialect import span_of
from sweeparea.cql.text import foreign_words
from sweeparea.cql.text.errors import (
    BindError,
    ParseError,
    Place,
    RefusedError,
    TypeError_,
    beside,
    listing,
    nearest,
    not_offered,
    raise_all,
)
from sweeparea.cql.text.source_text import Replacement, SourceText, Span
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.expressions import Column, Expr, SortKey

if TYPE_CHECKING:
    from sweeparea.cql.binding.expressions.grouping import Grouping
    from sweeparea.cql.binding.expressions.window_functions import WindowCalls
    from sweeparea.cql.binding.subqueries.subqueries import Outer, Subqueries

_TOKENS_OF_A_COLUMN = 16
"""More than what one name or window bound, which is one piece of a canonical text, is written with."""
_ID_LIKE = re.compile(r"^c\d+$", re.IGNORECASE)


@dataclass(frozen=True)
class Bound:
    """A bound expression and its type, where that is certain; ``char`` is the declared type where it is just a
    column that holds CHAR values."""

    expr: Expr
    type: str | None
    char: str | None = None

    def typed(self, type_: str = STORED) -> Bound:
        """The same, as a NULL of ``type_`` where it is one without a type: what is kept must have one, and so must
        what is inside an array, map or struct.
        """
        kept = type_ if self.type == VOID else held(self.type)
        return self if kept is None or kept == self.type else Bound(typed(self.expr, kept), kept)


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
    no column has the name (Spark's lateral aliases, and HAVING), or before (``aliases_first``: ORDER BY). ``windows``
    takes the window functions met; None: there may be none. ``outer`` is what can be named of the queries around,
    ``subqueries`` takes the subqueries met; None: there may be none.
    """

    def __init__(
        self,
        source: SourceText,
        scope: Scope,
        new_column: Callable[[str, str | None], Column],
        where: str,
        grouping: Grouping | None = None,
        aliases: dict[str, Bound] | None = None,
        windows: WindowCalls | None = None,
        aliases_first: bool = False,
    ) -> None:
        self.source = source
        self.scope = scope
        self.new_column = new_column
        self.where = where
        self.grouping = grouping
        self.aliases = aliases if aliases is not None else {}
        self.windows = windows
        self.aliases_first = aliases_first
        self.outer: Outer | None = None
        self.subqueries: Subqueries | None = None

    def derived(self, where: str, **changes: object) -> Binder:
        """The same binder for another place: ``grouping`` and ``windows`` may be changed."""
        other = copy.copy(self)
        other.where = where
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    # -- the two ways in ---------------------------------------------------------------------------------------------

    def bind(self, node: exp.Expr, span: Span | None = None, condition: bool = False) -> Bound:
        """The expression of a tree. Raises the faults of all its parts. ``condition``: a NULL without a type is one of
        BOOLEAN.
        """
        span = span or self.span(node)
        walk = _Walk(self, conjuncts(node) if condition else ())
        walk.visit(node)
        expr = Expr(self.source.splice(span, walk.replacements), self.source.splice(span), frozenset(walk.used))
        self.source.expressions.setdefault(expr.text, span[0])
        char, outer = walk.char_of(node)
        return Bound(expr, types.normal(types.of(node, walk.types)), None if outer else char)

    def condition(self, node: exp.Expr) -> Expr:
        """As ``bind``, for WHERE, ON and HAVING: TypeError where the type is known and not BOOLEAN."""
        bound = self.bind(node, condition=True)
        if bound.type not in (None, "boolean"):
            raise TypeError_(
                f"{self.where} needs a condition, but {bound.expr.text} is of type {bound.type.upper()}",
                self.place(node),
                comparison(bound.expr.text, bound.type),
            )
        return bound.expr

    def conditions(self, nodes: Iterable[exp.Expr]) -> list[Expr]:
        """As ``condition`` for each of several; raises the faults of all of them."""
        found: list[Expr] = []
        faults: list[SweepAreaError] = []
        for node in nodes:
            try:
                found.append(self.condition(node))
            except SweepAreaError as error:
                faults.append(error)
        raise_all(faults)
        return found

    def faults(self, nodes: Iterable[exp.Expr | None]) -> list[SweepAreaError]:
        """What is wrong with expressions, to be told beside another fault of what they stand in."""
        found: list[SweepAreaError] = []
        for node in nodes:
            try:
                if node is not None and not is_star(node):
                    self.bind(node)
            except SweepAreaError as error:
                found.append(error)
        return found

    def bind_all(self, node: exp.Expr) -> list[Bound]:
        """As ``bind``; a star gives all columns that it stands for."""
        if is_star(node):
            return [Bound(column_expr(c), c.type, c.char) for c in star_columns(self.scope, node, self.place)]
        return [self.bind(node)]

    def kept(self, node: exp.Expr, bound: Bound | None = None, type_: str = STORED) -> Bound:
        """An expression by which rows are remembered, a NULL without a type as one of ``type_``; ``bound`` where it is
        bound already. TypeError_ where no table holds its type.
        """
        bound = bound or self.bind(node)
        if bound.type is not None and (unheld := types.unheld(bound.type)):
            told = f"{bound.expr.text} is of type {bound.type.upper()}, which no table holds"
            hint = "Take a number instead, as timestampdiff(SECOND, a, b) or datediff(b, a) give it"
            hint = hint if unheld == "interval" else "CAST it, or take the parts of it that are needed"
            raise TypeError_(f"{told}, and rows are remembered by it", self.place(node), hint)
        return bound.typed(type_)

    def sort_key(self, node: exp.Expr, bound: Bound | None = None) -> SortKey:
        """A key of an ORDER BY; ``bound`` is its expression where that is known already."""
        bound = self.kept(node.this, bound)
        if bound.type is not None and (bound.type.startswith("map<") or bound.type == "variant"):
            raise TypeError_(
                f"{self.where} cannot compare {bound.expr.text}, which is a {bound.type.split('<')[0].upper()}",
                self.place(node.this),
                "Order by a part of it",
            )
        return SortKey(bound.expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

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
            # equal texts of subqueries at one place mean the same
            for column in node.walk(prune=lambda n: isinstance(n, exp.Query) or _is_window_bound(n)):
                if isinstance(column, exp.Anonymous) and _is_window_bound(column):
                    bound = bound_column(column, self.scope, self.place(column))
                    replacements.append(Replacement(self.span(column), quoted(bound)))
                if not isinstance(column, exp.Column):
                    continue
                parts = parts_of(column)
                if len(parts) != len(column.parts):
                    return None
                names, place = [p.name for p in parts], self.place(column)
                if self.outer is not None and not self.scope.has(names):
                    found, used = self.outer.resolve(names, place)
                else:
                    found, used = self.scope.resolve(names, place)
                replacements.append(Replacement(_span_of_parts(column, parts[:used], self), quoted(found)))
            return self.source.canonical(self.span(node), replacements)
        except (BindError, TypeError_):
            return None


def _within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _is_window_bound(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in functions.WINDOW_BOUNDS


def _span_of_parts(column: exp.Column, parts: list[exp.Identifier], binder: Binder) -> Span:
    """The characters of the first parts of a dotted name. The parser does not say where a literal among them stands."""
    whole, first, last = binder.span(column), span_of(parts[0]), span_of(parts[-1])
    if last is None and len(parts) == len(parts_of(column)):
        return whole
    if first is None or last is None:
        raise ParseError("this name cannot be read", binder.source.place(whole[0]), "Put its parts into backticks")
    return first[0], last[1]


class _Walk:
    """One pass over a tree: collects replacements, used ids and known types. ``conditions`` are the parts of the tree
    that stand where a BOOLEAN is needed and Spark makes none of a NULL.
    """

    def __init__(self, binder: Binder, conditions: Iterable[exp.Expr] = ()) -> None:
        self.binder = binder
        self.conditions = {id(node) for node in conditions}
        self.replacements: list[Replacement] = []
        self.used: set[str] = set()
        self.types: dict[int, str | None] = {}
        self.chars: dict[int, str] = {}
        self.outer: set[int] = set()
        """Columns of the queries around: padded in a comparison, but Spark does not know them for CHAR beyond it."""
        self.checks = ArgumentChecks(binder, self.types)

    def visit(self, node: exp.Expr) -> None:
        if not self._grouping_key(node):
            self._check_literal(node)
            handler = self._handler(node)
            if handler is not None:
                handler(node)
            else:
                self._children(node)
        if id(node) not in self.types:
            self.types[id(node)] = types.of(node, self.types)
        if id(node) in self.conditions and self.types[id(node)] == VOID:
            self._unknown_condition(node)

    def _unknown_condition(self, node: exp.Expr) -> None:
        """A NULL where a BOOLEAN is needed is the unknown truth value."""
        span, source = self.binder.span(node), self.binder.source
        inside = [r for r in self.replacements if span[0] <= r.span[0] and r.span[1] <= span[1]]
        self.replacements = [r for r in self.replacements if r not in inside]
        text = typed(Expr(source.splice(span, inside)), "boolean").sql
        self.replacements.append(Replacement(span, text))
        self.types[id(node)] = "boolean"

    def _check_literal(self, node: exp.Expr) -> None:
        span = span_of(node) if isinstance(node, exp.Literal | exp.Cast | exp.Interval) else None
        if span is not None:
            source = self.binder.source
            fault = literal_checks.fault(node, source.text[span[0] : span[1]], source.place(span[0]))
            if fault is not None:
                raise fault

    def _handler(self, node: exp.Expr) -> Callable[[exp.Expr], None] | None:
        for kind, handler in (
            (exp.Column, self._column),
            (exp.Anonymous, self._function),
            (exp.Window, self._over),
            (exp.Filter, self._call),
            (exp.WithinGroup, self._call),
            (exp.IgnoreNulls, self._call),
            (exp.RespectNulls, self._call),
            (exp.Query, self._subquery),
            (exp.Exists, self._exists),
            (exp.Not, self._not),
            (exp.Neg | exp.BitwiseNot, self._unary),
            (exp.Bracket, self._bracket),
            (exp.Any | exp.All, self._quantified),
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
            (exp.Connector, self._operation),
            (exp.Between, self._beside),
            (exp.Case, self._beside),
            (exp.Func, self._own_function),
            (exp.Binary, self._operation),
        ):
            if isinstance(node, kind):
                return handler
        return None

    def _children(self, node: exp.Expr) -> None:
        self._each(node.iter_expressions(), self.visit)

    def _each(self, nodes: Iterable[exp.Expr], visit: Callable[[exp.Expr], None]) -> None:
        """Visits parts that stand side by side, and raises the faults of all of them."""
        faults: list[SweepAreaError] = []
        for node in nodes:
            try:
                visit(node)
            except SweepAreaError as error:
                faults.append(error)
        raise_all(faults)

    def _replace(self, node: exp.Expr, span: Span, column: Column) -> None:
        self.replacements.append(Replacement(span, quoted(column)))
        self.used.add(column.id)
        self.types[id(node)] = column.type
        if column.char is not None:
            self.chars[id(node)] = column.char

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
        if span is None or self._longer(span, max(len(canonical) for _, _, canonical in grouping.keys)):
            return False
        canonical = self.binder.canonical(node)
        key = grouping.key_of(canonical) if canonical else None
        if key is None or isinstance(node, exp.Literal):
            return False
        self._replace(node, span, key)
        return True

    def _longer(self, span: Span, pieces: int) -> bool:
        """Whether a text is certain to have more pieces in its canonical form than these: whoever compares each part of
        a long chain with a key would read the chain as often as it has parts."""
        source = self.binder.source
        count = source.count(span)
        if count <= pieces:
            return False
        return count - 2 * source.opened(span) > pieces * _TOKENS_OF_A_COLUMN

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
        if binder.aliases_first and self._alias(node, parts):
            return
        try:
            if binder.outer is not None and not binder.scope.has(names) and binder.outer.knows(names):
                raise BindError(f"column {'.'.join(names)} is one of the query around", place)
            column, used = binder.scope.resolve(names, place)
        except BindError as error:
            if self._alias(node, parts):
                return
            if binder.outer is None or binder.scope.has(names):
                raise error
            if not binder.outer.knows(names):
                raise binder.scope.unknown(names, place, binder.outer.scopes()) from None
            column, used = binder.outer.resolve(names, place)
            self._replace(node, _span_of_parts(node, parts[:used], binder), column)
            self._field(node, column, parts[used:])
            self.outer.add(id(node))
            return
        grouping = binder.grouping
        if grouping is None:
            self._replace(node, _span_of_parts(node, parts[:used], binder), column)
            self._field(node, column, parts[used:])
            return
        key = grouping.key_of_column(column)
        if key is None and used < len(parts):
            canonical = binder.canonical(node)
            whole = grouping.key_of(canonical) if canonical else None
            if whole is not None:
                self._replace(node, _span_of_parts(node, parts, binder), whole)
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
        self._replace(node, _span_of_parts(node, parts[:used], binder), key)
        self._field(node, key, parts[used:])

    def _field(self, node: exp.Expr, column: Column, parts: list[exp.Identifier]) -> None:
        """The type of a field of a struct column."""
        type_ = column.type
        if parts:
            self.chars.pop(id(node), None)
        for part in parts:
            if type_ is not None and not type_.startswith(("struct", "array", "map", "variant")):
                raise BindError(
                    f"{column.label} is of type {type_.upper()} and has no field {part.name}",
                    self.binder.place(node),
                    f"Write {column.label} alone",
                )
            type_ = types.field_type(type_, part.name)
        self.types[id(node)] = type_

    def _alias(self, node: exp.Column, parts: list[exp.Identifier]) -> bool:
        bound = self.binder.aliases.get(parts[0].name.lower())
        if bound is None:
            return False
        self.replacements.append(Replacement(_span_of_parts(node, parts[:1], self.binder), f"({bound.expr.sql})"))
        self.used |= bound.expr.columns
        self.types[id(node)] = bound.type if len(parts) == 1 else None
        if bound.char is not None and len(parts) == 1:
            self.chars[id(node)] = bound.char
        return True

    # -- functions ---------------------------------------------------------------------------------------------------

    def _function(self, node: exp.Expr) -> None:
        if not isinstance(node, exp.Anonymous):
            return
        name = node.name.upper()
        if name in functions.WINDOW_BOUNDS:
            self._window_bound(node)
            return
        if is_aggregate(node):
            self._aggregate(node)
            return
        if node.meta.get("user") is not None:
            node.meta["bound"] = True
        else:
            self._check_name(name, node)
        arguments = node.expressions
        if name in functions.UNIT_FIRST and len(arguments) == 3:
            arguments = arguments[1:]
        position = {id(argument): i for i, argument in enumerate(arguments, 1)}

        def visit(argument: exp.Expr) -> None:
            if isinstance(argument, exp.Distinct):
                raise ParseError(f"DISTINCT belongs to aggregates, and {name} is none", self.binder.place(node))
            if is_star(argument):
                self._expand(argument, named=name == "STRUCT")
            else:
                self.visit(argument)
                if name == "STRUCT":
                    self._keep_field_name(argument, position[id(argument)])

        self._each(arguments, visit)
        self.checks.call(node, name)
        self._pad_call(node, name)

    def _operation(self, node: exp.Expr) -> None:
        if membership_of(node) is not None:
            self._subquery(node)
            return
        self._children(node)
        if isinstance(node, char_padding.COMPARISONS):
            sides = self._sides([node.this, node.expression])
            self._pad(char_padding.comparison(*sides) if sides else ())
        self.checks.operation(node)

    def _beside(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Case) and node.args.get("this") is None:
            self.conditions |= {id(branch.this) for branch in node.args.get("ifs") or []}
        self._children(node)
        if isinstance(node, exp.In):
            sides = self._sides([node.this, *node.expressions])
            self._pad(char_padding.member(sides[0], sides[1:]) if sides else ())
        elif isinstance(node, exp.Case) and node.this is not None:
            self._pad_cases(node)
        self.checks.beside(node)

    # -- CHAR(n) -----------------------------------------------------------------------------------------------------

    def char_of(self, node: exp.Expr) -> tuple[str | None, bool]:
        """The declared type of an expression that is just a column which holds CHAR values, else None; and whether it
        is one of the query around.
        """
        while id(node) not in self.chars and isinstance(node, exp.Paren):
            node = node.this
        return self.chars.get(id(node)), id(node) in self.outer

    def _sides(self, nodes: list[exp.Expr]) -> list[char_padding.Compared]:
        """What is known of the sides of a comparison; nothing where none of them holds CHAR values."""
        return [self._compared(n) for n in nodes] if self.chars and any(self.char_of(n)[0] for n in nodes) else []

    def _compared(self, node: exp.Expr) -> char_padding.Compared:
        span, (declared, outer) = span_of(node), self.char_of(node)
        text = self.binder.source.splice(span) if span is not None else ""
        return char_padding.Compared(span, text, declared, declared is None and self._constant(node, text), outer)

    def _constant(self, node: exp.Expr, text: str) -> bool:
        """Whether what a CHAR(n) is compared with is a constant text; RefusedError where its type is not known."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.RawString):
            return True
        kind = types.of(node, self.types)
        if kind not in (None, "string") or isinstance(node, exp.HexString) or not char_padding.is_constant(node):
            return False
        if any(isinstance(part, exp.Anonymous) and is_aggregate(part) for part in node.walk()):
            return False
        if kind is None:
            raise RefusedError(
                f"{text} is compared with a column of CHAR(n), to which Spark would pad it if it is a text",
                self.binder.place(node),
                f"Write the text itself, or CAST({text} AS STRING)",
            )
        return True

    def _pad(self, padded: Iterable[char_padding.Padding]) -> None:
        """Puts padding around sides of a comparison."""
        for span, pattern in padded:
            self._exchange(span, pattern.replace(char_padding.SIDE, self._bound_text(span)))

    def _bound_text(self, span: Span) -> str:
        return self.binder.source.splice(span, [r for r in self.replacements if _within(r.span, span)])

    def _exchange(self, span: Span, text: str) -> None:
        self.replacements = [r for r in self.replacements if not _within(r.span, span)]
        self.replacements.append(Replacement(span, text))

    def _each_padded(self, subject: exp.Expr, others: list[exp.Expr], word: str) -> list[str]:
        """``subject word other`` for each of ``others``, padded as it needs; nothing where no padding is needed."""
        texts, needed = [], False
        for other in others:
            sides = self._sides([subject, other])
            patterns = dict(char_padding.comparison(*sides)) if sides else {}
            needed |= bool(patterns)
            spans = self.binder.span(subject), self.binder.span(other)
            parts = [patterns.get(s, f"({char_padding.SIDE})") for s in spans]
            filled = [p.replace(char_padding.SIDE, self._bound_text(s)) for p, s in zip(parts, spans, strict=True)]
            texts.append(f" {word} ".join(filled))
        return texts if needed else []

    def _pad_cases(self, node: exp.Case) -> None:
        """``CASE c WHEN 'ab' ..`` compares c with each in turn, so it becomes ``CASE WHEN c = 'ab   ' ..``."""
        whens = [when.this for when in node.args.get("ifs") or []]
        conditions = self._each_padded(node.this, whens, "=")
        if conditions:
            for when, text in zip(whens, conditions, strict=True):
                self._exchange(self.binder.span(when), text)
            self._exchange(self.binder.span(node.this), "")

    def _pad_call(self, node: exp.Anonymous, name: str) -> None:
        """EQUAL_NULL and DECODE compare their arguments as ``<=>`` does."""
        arguments = node.expressions
        if name == "EQUAL_NULL" and len(arguments) == 2:
            sides = self._sides(arguments)
            self._pad(char_padding.comparison(*sides) if sides else ())
        elif name == "DECODE" and len(arguments) > 2:
            searched = arguments[1:-1:2] if len(arguments) % 2 == 0 else arguments[1::2]
            conditions = self._each_padded(arguments[0], searched, "<=>")
            if conditions:
                values = [f"({self._bound_text(self.binder.span(a))})" for a in arguments]
                results, rest = values[2::2], values[-1] if len(values) % 2 == 0 else "NULL"
                whens = " ".join(f"WHEN {c} THEN {r}" for c, r in zip(conditions, results, strict=True))
                self._exchange(self.binder.span(node), f"CASE {whens} ELSE {rest} END")

    def _unary(self, node: exp.Expr) -> None:
        self._children(node)
        self.checks.unary(node)

    def _bracket(self, node: exp.Expr) -> None:
        self._children(node)
        self.checks.subscript(node)

    def _window_bound(self, node: exp.Anonymous) -> None:
        binder = self.binder
        span, place = binder.span(node), binder.place(node)
        column = bound_column(node, binder.scope, place)
        if binder.grouping is not None:
            key = binder.grouping.key_of_column(column)
            if key is None:
                text = binder.source.splice(span)
                raise BindError(f"{text} is neither grouped nor inside an aggregate", place, f"Add {text} to GROUP BY")
            column = key
        self._replace(node, span, column)

    def _tuple(self, node: exp.Expr) -> None:
        """``(a, b)`` is a struct too."""
        position = {id(part): i for i, part in enumerate(node.expressions, 1)}

        def visit(part: exp.Expr) -> None:
            self.visit(part)
            self._keep_field_name(part, position[id(part)])

        self._each(node.expressions, visit)

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
        functions.refuse_non_deterministic(name, len(node.expressions), place)
        functions.refuse_collation(name, place)
        functions.refuse_random_iv(
            name, [a.name if isinstance(a, exp.Literal) else None for a in node.expressions], place
        )
        if name in functions.WINDOW_ONLY:
            raise TypeError_(f"{name} needs OVER", place, f"Write {name}(..) OVER (PARTITION BY a ORDER BY b)")
        if name in functions.GENERATORS:
            raise TypeError_(
                f"{name} makes rows, so it stands alone in the select list, not inside {self.binder.where}",
                place,
                f"Write LATERAL VIEW {name.lower()}(..) t AS x, and use its columns",
            )
        if name in functions.SPARK_STREAMING:
            raise self._refuse(f"Spark's {name.lower()}(..)", node, functions.SPARK_STREAMING[name])
        if name == "EXISTS" and not node.expressions:
            raise ParseError("EXISTS holds no query", place, "Write EXISTS (SELECT ..)")
        if name == "ARRAYS_ZIP":
            raise RefusedError(
                "arrays_zip is not offered: it names its fields after columns, which have other names inside",
                place,
                "Write zip_with(a, b, (x, y) -> struct(x AS a, y AS b))",
            )
        if name.lower() not in functions.spark_functions():
            hint = foreign_words.FUNCTIONS.get(name) or nearest(name, functions.spark_functions())
            raise BindError(f"there is no function {node.name}", place, hint)

    def _own_function(self, node: exp.Expr) -> None:
        """Functions that sqlglot makes a class of its own even so: CURRENT_DATE without parentheses, TRIM, EXTRACT,
        .."""
        names = list(node.sql_names()) if isinstance(node, exp.Func) else []
        name = names[0].upper() if names else ""
        functions.refuse_non_deterministic(name, len(list(node.iter_expressions())), self.binder.place(node))
        self._children(node)
        self.checks.own_call(node)

    def _call(self, node: exp.Expr) -> None:
        """What stands around a call: FILTER, WITHIN GROUP, IGNORE NULLS."""
        call = take_apart(node)
        if call is None or not is_aggregate(call.function):
            what = node.key.upper() if call is None else call.function.name
            raise TypeError_(
                f"{what} is no aggregate, so it takes no FILTER, WITHIN GROUP or IGNORE NULLS",
                self.binder.place(node),
                "Leave it out",
            )
        self._aggregate(node)

    def _aggregate(self, node: exp.Expr) -> None:
        binder, grouping, place = self.binder, self.binder.grouping, self.binder.place(node)
        call = take_apart(node)
        assert call is not None
        call.function.meta["bound"] = True
        if call.function.meta.get("user") is None:
            functions.refuse_aggregate(call.name, place)
        if call.name in GROUPING:
            self._grouping(node, call.arguments, call.name)
            return
        if grouping is None:
            around = binder.outer.aggregate(node) if binder.outer is not None else None
            if around is not None:
                self._put(node, around)
                return
            raise BindError(
                f"the aggregate {call.name} cannot stand in {binder.where}",
                place,
                "Write a IN (1, 2), or a = ANY (SELECT ..)"
                if call.name in ("ANY", "SOME", "ALL", "EVERY")
                else "Use HAVING for conditions on aggregates"
                if binder.where == "WHERE"
                else "Aggregate in a subquery first",
            )
        inner = binder.derived(f"the argument of {call.name}", grouping=None, windows=None, aliases={})
        try:
            found = bind_aggregate(call, inner)
        except SweepAreaError as error:
            parts = [*call.arguments, call.filter, *(key.this for key in call.order)]
            raise_all(beside(error, inner.faults(parts)))
            raise
        if found.key not in grouping.calls:
            label = binder.source.splice(binder.span(node)).lower()
            grouping.calls[found.key] = (binder.new_column(label, found.type), found.call)
        self._replace(node, binder.span(node), grouping.calls[found.key][0])

    def _grouping(self, node: exp.Expr, arguments: list[exp.Expr], name: str) -> None:
        """GROUPING(a), GROUPING_ID(a, b): whether the row's grouping set leaves a key out."""
        binder, grouping, place = self.binder, self.binder.grouping, self.binder.place(node)
        if grouping is None or grouping.sets is None or grouping.id is None:
            raise TypeError_(
                f"{name} needs GROUP BY with GROUPING SETS, ROLLUP or CUBE", place, "Otherwise every key is grouped"
            )
        if name == "GROUPING" and len(arguments) != 1:
            raise TypeError_(f"GROUPING takes one argument, found {len(arguments)}", place, "Write GROUPING(a)")
        at = []
        for argument in arguments:
            canonical = binder.canonical(argument)
            position = grouping.position(canonical) if canonical else None
            if position is None:
                raise BindError(
                    f"{name} takes expressions of GROUP BY, and {binder.source.splice(binder.span(argument))} is none",
                    binder.place(argument),
                    f"They are {', '.join(c.label for c, _, _ in grouping.keys)}",
                )
            at.append(position)
        count = len(grouping.keys)
        sql, type_ = f"`{grouping.id.id}`", "bigint"
        if name == "GROUPING":
            sql, type_ = f"CAST(shiftright({sql}, {count - 1 - at[0]}) & 1L AS TINYINT)", "tinyint"
        elif at and at != list(range(count)):
            bits = [f"(shiftright({sql}, {count - 1 - p}) & 1L) * {1 << (len(at) - 1 - i)}L" for i, p in enumerate(at)]
            sql = f"({' + '.join(bits)})"
        self._put(node, Bound(Expr(sql, name, frozenset({grouping.id.id})), type_))

    def _put(self, node: exp.Expr, bound: Bound) -> None:
        """An expression in place of a whole part of the tree."""
        self.replacements.append(Replacement(self.binder.span(node), bound.expr.sql))
        self.used |= bound.expr.columns
        self.types[id(node)] = bound.type

    def _expand(self, argument: exp.Expr, named: bool) -> None:
        """``struct(*)`` and ``hash(t.*)``: a star among arguments stands for its columns."""
        columns = star_columns(self.binder.scope, argument, self.binder.place)
        if self.binder.grouping is not None:
            raise self._refuse("* inside a function above GROUP BY", argument)
        span = span_of(argument)
        if span is None:
            raise ParseError("* cannot be read here", self.binder.place(argument))
        texts = [f"{quoted(c)} AS {_named(c.label)}" if named else quoted(c) for c in columns]
        self.replacements.append(Replacement(span, ", ".join(texts)))
        self.used |= {c.id for c in columns}

    def _over(self, node: exp.Expr) -> None:
        from sweeparea.cql.binding.expressions.window_functions import bind_over

        assert isinstance(node, exp.Window)
        try:
            self._put(node, bind_over(self.binder, node))
        except SweepAreaError as error:
            if self.binder.windows is None:
                raise  # what stands in a call that stands wrongly is no matter
            call, order = take_apart(node.this), node.args.get("order")
            parts = [*(call.arguments if call is not None else ()), *(node.args.get("partition_by") or ())]
            parts += [key.this for key in (order.expressions if order is not None else ())]
            raise_all(beside(error, self.binder.derived("OVER", windows=None).faults(parts)))
            raise

    # -- the rest ----------------------------------------------------------------------------------------------------

    def _subquery(self, node: exp.Expr) -> None:
        """A scalar subquery, EXISTS (..) or IN (..): a value that is put beside the rows."""
        binder = self.binder
        if binder.subqueries is None:
            raise RefusedError(
                f"a subquery in {binder.where} is not offered: it would need other rows than the one at hand",
                binder.place(node),
                "Compute it in the query, or join it in FROM",
            )
        self._put(node, binder.subqueries.value(binder, node))

    def _exists(self, node: exp.Expr) -> None:
        if isinstance(node.this, exp.Query):
            self._subquery(node)
        else:
            self._children(node)

    def _in(self, node: exp.Expr) -> None:
        if membership_of(node) is not None:
            self._subquery(node)
        elif not node.args.get("expressions"):
            raise ParseError("IN holds no value", self.binder.place(node), "Write a IN (1, 2), or a IN (SELECT ..)")
        else:
            self._beside(node)

    def _quantified(self, node: exp.Expr) -> None:
        if isinstance(node.this, exp.Query):
            word = "ALL" if isinstance(node, exp.All) else "ANY"
            raise TypeError_(
                f"{word} of a subquery belongs right of a comparison",
                self.binder.place(node),
                f"Write a > {word} (SELECT ..); for LIKE and others write EXISTS (SELECT .. WHERE ..)",
            )
        self._children(node)

    def _not(self, node: exp.Expr) -> None:
        inner = node.this
        if not isinstance(inner, exp.In) or inner.args.get("query") is None:
            self._children(node)
            self.checks.condition(inner, "NOT")
            return
        # of a NOT IN (..) the characters of IN hold the NOT as well
        self._subquery(inner)
        found = self.replacements.pop()
        self.replacements.append(Replacement(self.binder.span(node), f"(NOT {found.text})"))

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
        self.visit(node.this)
        self.checks.cast(node)

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


def star_columns(scope: Scope, node: exp.Expr, place_of: Callable[[exp.Expr], Place]) -> list[Column]:
    """The columns of ``*``, ``t.*`` or ``* EXCEPT (a)``."""
    place = place_of(node)
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
    for excluded in star.args.get("except_") or []:
        name = excluded.name
        kept = [c for c in columns if c.label.lower() != name.lower()]
        if len(kept) == len(columns):
            labels = [c.label for c in columns]
            raise BindError(
                f"EXCEPT names {name}, which * does not have",
                place_of(excluded),
                nearest(name, labels) or f"It has {listing(labels)}",
            )
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
