"""From a parsed query to a logical plan: names resolved, defaults applied, all faults of the query told at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sweeparea.cql.binding import strictness
from sweeparea.cql.binding.expectations import bind_expectations
from sweeparea.cql.binding.query import QueryBinder
from sweeparea.cql.binding.scope.bound import column_expr
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.inputs import InputSchema
from sweeparea.cql.binding.scope.rstream_every import every_in_ticks, every_of
from sweeparea.cql.binding.source_expressions import CONDITION, bind_over
from sweeparea.cql.binding.stored_nulls import stored
from sweeparea.cql.binding.subqueries.queries import BoundQuery
from sweeparea.cql.functions import column_types, types, user_functions
from sweeparea.cql.functions.column_types import Analyze
from sweeparea.cql.rewrites import MeasuredInput, optimize
from sweeparea.cql.syntax import foreign_syntax
from sweeparea.cql.syntax.dialect.streams import StreamOperator
from sweeparea.cql.syntax.labels import unique_labels
from sweeparea.cql.syntax.parser import parse_query_text
from sweeparea.cql.syntax.settings import SETTINGS, check_settings
from sweeparea.cql.syntax.statements import ConstraintSpec, CreateQuery
from sweeparea.cql.syntax.trees import tables_of
from sweeparea.cql.text.errors import BindError, ParseError, Place, RefusedError, TypeError_, listing, raise_all
from sweeparea.cql.text.faults import Faults
from sweeparea.infra.deep_stack import deep
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import Project
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Constraint, Plan, UserFunction
from sweeparea.operators.plan.stream_kind import ResultKind, StreamKind
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeKind

__all__ = ["InputSchema", "bind", "bind_select"]

RESERVED = ("ts", "valid_from", "valid_to")
_OWN = ("__constraint", "__reason", "__broken")
"""Columns of the quarantine of a query, and of rows that are judged."""
"""Columns that result tables add; a query's own column of such a name would clash."""


@deep
def bind(
    query: CreateQuery,
    inputs: Mapping[str, InputSchema],
    defaults: Mapping[str, str] | None = None,
    functions: Iterable[UserFunction] = (),
    analyze: Analyze | None = None,
    measured: Mapping[str, MeasuredInput] | None = None,
) -> Plan:
    """The plan of a CREATE CONTINUOUS QUERY. ``inputs`` by name (case does not matter), ``defaults`` the application's
    settings, ``functions`` what it has registered. ``analyze`` is asked once for types that only Spark knows;
    without it they stay unknown. ``measured`` are rates and sizes of inputs, for the order of joins.

    Raises ParseError, BindError, TypeError_ or RefusedError, or CqlErrors with several of them.
    """
    try:
        return _bind(query, inputs, defaults or {}, functions, analyze, measured or {})
    except RecursionError:
        raise RefusedError(
            f"query {query.name} nests too deeply to be planned",
            query.place,
            "Register parts of it as queries of their own",
        ) from None


# all that CREATE CONTINUOUS QUERY, WITH and SET would say, so it has more parameters than most
def bind_select(
    text: str,
    inputs: Mapping[str, InputSchema],
    defaults: Mapping[str, str] | None = None,
    *,
    name: str = "query",
    start: int = 0,
    filename: str = "<query>",
    functions: Iterable[UserFunction] = (),
    analyze: Analyze | None = None,
    materialize: Iterable[str] = (),
    measured: Mapping[str, MeasuredInput] | None = None,
    constraints: Iterable[ConstraintSpec] = (),
) -> Plan:
    """The plan of a bare query, for replay and EXPLAIN SELECT. ``start`` is START AT in ticks, ``materialize`` what
    is kept beside a stream, or of a relation; ``constraints`` those of its statement.
    """
    tree, source = parse_query_text(text, filename)
    place = source.place(source.tokens[0].start)
    kept = tuple((kind, None) for kind in materialize)
    conditions = tuple(constraints)
    query = CreateQuery(place, text, name=name, select=tree, source=source, materialize=kept, constraints=conditions)
    plan = bind(query, inputs, defaults, functions, analyze, measured)
    return replace(plan, start=start)


def _bind(
    query: CreateQuery,
    inputs: Mapping[str, InputSchema],
    defaults: Mapping[str, str],
    functions: Iterable[UserFunction],
    analyze: Analyze | None,
    measured: Mapping[str, MeasuredInput],
) -> Plan:
    settings = _settings(query, defaults)
    context = Context(inputs, query.source, settings, functions, analyze)
    bound, stream = _outer_stream(_query(query, context), context)
    _check_inputs(context, query.place)
    _check_labels(bound, stream, query)
    node, called = _typed(_with_unique_labels(bound, context), query, context)
    faults = Faults()
    tried = [faults.attempt(partial(_constraint, spec, node.columns, analyze)) for spec in query.constraints]
    start = faults.attempt(lambda: 0 if query.start_at is None else query.start_at.in_ticks(context.time, "START AT"))
    labels = [column.label for column in node.columns]
    expectations, wrong = bind_expectations(query.expectations, labels, context.time, of_query=True)
    faults.errors += wrong
    every = faults.attempt(lambda: _every(bound, query, context)) or (None, 0)
    faults.check()
    plan = Plan(
        name=query.name,
        root=node,
        stream=stream,
        time=context.time,
        start=start or 0,
        every=every[0],
        anchor=every[1],
        materialize=_materialize(query, stream),
        inputs=tuple(context.used),
        constraints=tuple(c for c in tried if c is not None),
        expectations=tuple(expectations),
        settings=tuple(settings.items()),
        notes=tuple(context.notes),
        functions=called,
        chars=tuple((c.label, c.char) for c in node.columns if c.char is not None),
    )
    known = {s.name: replace(measured.get(s.name, MeasuredInput()), static=s.static) for s in context.used.values()}
    plan = optimize(plan, known)
    plan = replace(plan, root=stored(plan.root))
    strictness.check(plan, query.settings_places.get("strict", query.place))
    return plan


def _query(query: CreateQuery, context: Context) -> BoundQuery:
    """The query itself, bound in a context that knows which inputs it names. Raises all faults of its text."""
    names = [name for name, _ in tables_of(query.select)]
    context.expect(names)
    if query.chronon_us is not None:
        context.declare(query.chronon_us, names, query.name, query.places.get("chronon", query.place))
    user_functions.mark(query.select, context.functions)
    context.faults += foreign_syntax.faults(query.select, context.place)
    try:
        bound = QueryBinder(context).query(query.select, {})
    except SweepAreaError as error:
        raise_all([*context.faults, error])
        raise
    raise_all(context.faults)
    return bound


def _typed(node: Node, query: CreateQuery, context: Context) -> tuple[Node, tuple[UserFunction, ...]]:
    """The plan with the types that only Spark knows, where it can be asked, and the user's functions that it calls."""
    node = column_types.filled(node, context.analyze, query.source)
    called = tuple((context.functions_used | user_functions.used(query.select)).values())
    column_types.checked(node, context.analyze, query.source, called)
    if context.analyze is not None:  # a text that is bound for its own sake is not stored
        raise_all([*_unheld(node, query)])
    return node, called


def _unheld(node: Node, query: CreateQuery) -> Iterator[TypeError_]:
    """Columns of the result that no table can hold."""
    texts = {column.id: expr.text for column, expr in node.outputs} if isinstance(node, Project) else {}
    for column in node.columns:
        if types.unheld(column.type):
            offset = query.source.expressions.get(texts.get(column.id, ""))
            yield TypeError_(
                f"column {column.label} is of type {(column.type or '').upper()}, which a result table cannot hold",
                query.place if offset is None else query.source.place(offset),
                f"CAST it to a type that can be stored, for example CAST({column.label} AS STRING)",
            )


def _settings(query: CreateQuery, defaults: Mapping[str, str]) -> dict[str, str]:
    settings = {**{k.lower(): str(v) for k, v in defaults.items()}, **dict(query.settings)}
    known = {name: value for name, value in settings.items() if name in SETTINGS}
    raise_all(list(check_settings(known, query.settings_places)))
    return {k: v.lower() if k in known and SETTINGS[k].choices else v for k, v in settings.items()}


def _outer_stream(bound: BoundQuery, context: Context) -> tuple[BoundQuery, StreamKind | None]:
    """The outermost operator, written or added by CQL's default (semantics section 6)."""
    if bound.to_stream is not None:
        return bound, StreamKind(bound.to_stream.kind.lower())
    if bound.node.monotonic:
        context.note("the query is a monotonic relation: Istream is added")
        return bound, StreamKind.ISTREAM
    return bound, None


def _check_inputs(context: Context, place: Place) -> None:
    used = list(context.used.values())
    if not used:
        raise RefusedError(
            "nothing here ever changes: the query reads no stream and no relation, so it would have no heartbeat",
            place,
            "Name one in FROM, or run it as plain SQL",
        )
    if used and all(s.static for s in used):
        raise RefusedError(
            f"nothing here ever changes: {listing(s.name for s in used)} {'is' if len(used) == 1 else 'are'} static, "
            "so the query would have no heartbeat",
            place,
            "Read a stream or a relation with a history too, or query the table with plain SQL",
        )
    kinds = {s.time.kind for s in used if not s.static}
    if len(kinds) > 1:
        a = next(s for s in used if s.time.kind == TimeKind.BIGINT and not s.static)
        b = next(s for s in used if s.time.kind != TimeKind.BIGINT and not s.static)
        raise TypeError_(
            f"{a.name} and {b.name} count time differently: BIGINT ticks and TIMESTAMP",
            place,
            "Use inputs of one kind of time",
        )


def _check_labels(bound: BoundQuery, stream: str | None, query: CreateQuery) -> None:
    errors: list[SweepAreaError] = []
    for column in bound.columns:
        if query.constraints and column.label.lower() in _OWN:
            errors.append(
                BindError(
                    f"output column {column.label} clashes with a column that constraints need",
                    _label_place(query, column.label),
                    f"Give it an alias: {column.label} AS {column.label.strip('_')}",
                )
            )
        elif column.label.lower() in RESERVED:
            what = "a stream's result" if stream else "a relation's result"
            errors.append(
                BindError(
                    f"output column {column.label} clashes with a column that result tables add ({what} has "
                    f"{'ts' if stream else 'valid_from and valid_to'}; {', '.join(RESERVED)} are all kept free)",
                    _label_place(query, column.label),
                    f"Give it an alias: {column.label} AS {column.label}_",
                )
            )
        elif not column.label.strip():
            errors.append(BindError("an output column has an empty name", query.place, "Give it an alias"))
    raise_all(errors)


def _label_place(query: CreateQuery, label: str) -> Place:
    for identifier in query.select.find_all(exp.Identifier):
        if identifier.name.lower() == label.lower() and identifier.meta.get("start") is not None:
            return query.source.place(identifier.meta["start"])
    return query.source.place(query.source.tokens[0].start)


def _with_unique_labels(bound: BoundQuery, context: Context) -> Node:
    """The plan whose columns are the query's, each of another label."""
    labels = [c.label for c in bound.columns]
    names = unique_labels(labels)
    if names == labels and bound.node.columns == bound.columns:
        return bound.node
    for old, new in zip(labels, names, strict=True):
        if old != new:
            context.note(f"output column {old} is repeated: it is named {new}")
    outputs = tuple(
        (context.new_column(n, c.type).as_of(c), column_expr(c)) for n, c in zip(names, bound.columns, strict=True)
    )
    return Project(bound.node, outputs)


def _constraint(spec: ConstraintSpec, columns: tuple[Column, ...], analyze: Analyze | None) -> Constraint:
    try:
        condition = bind_over(spec.expression, columns, None, f"constraint {spec.name}", CONDITION, analyze)
    except BindError as error:
        if "is unknown" in error.message:
            raise BindError(
                f"constraint {spec.name}: {error.message}",
                error.place,
                error.hint + " (constraints see the query's output columns)",
            ) from None
        raise
    return Constraint(spec.name, condition, spec.on_violation)


def _every(bound: BoundQuery, query: CreateQuery, context: Context) -> tuple[int | None, int]:
    """EVERY and ANCHOR of the Rstream that is kept: the query's own, or that of MATERIALIZE; they must agree."""
    own = None
    if bound.to_stream is not None:
        own = every_of(bound.to_stream, context.source, context.time)
    written = [every for kind, every in query.materialize if kind == ResultKind.RSTREAM]
    if not written:
        return own or (None, 0)
    place = query.places.get("materialize", query.place)
    is_rstream = bound.to_stream is not None and bound.to_stream.kind == StreamOperator.RSTREAM
    if written[0] is None and is_rstream:
        return own or (None, 0)
    kept = every_in_ticks(written[0], query.materialize_anchor, context.time, place)
    if is_rstream and kept != own:
        raise ParseError(
            f"query {query.name} is an RSTREAM already, and MATERIALIZE RSTREAM asks for other instants",
            place,
            "Give EVERY and ANCHOR at one of both places",
        )
    return kept


def _materialize(query: CreateQuery, stream: StreamKind | None) -> tuple[ResultKind, ...]:
    """The tables kept: those written, for a stream-valued query always the stream itself, and what constraints keep
    out of all of these.
    """
    written = tuple(ResultKind(kind) for kind, _ in query.materialize)
    if stream is not None:
        written = (ResultKind(stream), *(k for k in written if k != stream))
    kept_out = any(c.on_violation == "quarantine" for c in query.constraints)
    return (*(written or (ResultKind.RELATION,)), *([ResultKind.QUARANTINE] if kept_out else ()))
