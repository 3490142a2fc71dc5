"""From a parsed query to a logical plan: names resolved, defaults applied, all faults of the query told at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sweeparea.cql.context import Context, InputSchema
from sweeparea.cql.errors import BindError, ParseError, Place, RefusedError, TypeError_, listing, nearest, raise_all
from sweeparea.cql.expressions import Binder, column_expr
from sweeparea.cql.labels import unique_labels
from sweeparea.cql.monotonicity import is_monotonic
from sweeparea.cql.parser import parse_query_text
from sweeparea.cql.prune import prune
from sweeparea.cql.query import BoundQuery, QueryBinder
from sweeparea.cql.scopes import Item, Scope
from sweeparea.cql.statements import ConstraintSpec, CreateQuery, SourceExpression
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.logical import Column, Constraint, Expr, Node, Plan, Project

__all__ = ["InputSchema", "bind", "bind_select", "bind_source_expression"]

RESERVED = ("ts", "valid_from", "valid_to")
"""Columns that result tables add; a query's own column of such a name would clash."""
_CHOICES = {
    "range_bounds": ("inclusive", "exclusive"),
    "strategy": ("upa", "negative", "direct"),
    "strict": ("true", "false"),
}


def bind(query: CreateQuery, inputs: Mapping[str, InputSchema], defaults: Mapping[str, str] | None = None) -> Plan:
    """The plan of a CREATE CONTINUOUS QUERY. ``inputs`` by name (case does not matter), ``defaults`` the application's
    settings.

    Raises ParseError, BindError, TypeError_ or RefusedError, or CqlErrors with several of them.
    """
    try:
        return _bind(query, inputs, defaults or {})
    except RecursionError:
        raise RefusedError(
            f"query {query.name} nests too deeply to be planned",
            query.place,
            "Register parts of it as queries of their own",
        ) from None


def bind_select(
    text: str,
    inputs: Mapping[str, InputSchema],
    defaults: Mapping[str, str] | None = None,
    *,
    name: str = "query",
    start: int = 0,
    filename: str = "<query>",
) -> Plan:
    """The plan of a bare query, for replay and EXPLAIN SELECT. ``start`` is START AT in ticks."""
    tree, source = parse_query_text(text, filename)
    place = source.place(source.tokens[0].start)
    plan = bind(CreateQuery(place, text, name=name, select=tree, source=source), inputs, defaults)
    return replace(plan, start=start)


def bind_source_expression(expression: SourceExpression, schema: InputSchema, what: str) -> Expr:
    """An expression over a source's own columns, as heartbeats and stream constraints have: Spark SQL over their
    names."""
    columns = tuple(Column(f"c{i}", n, t) for i, (n, t) in enumerate(schema.columns))
    scope = Scope.of(Item(schema.name, columns))
    binder = Binder(expression.source, scope, _no_column, what)
    bound = binder.bind(expression.tree, expression.span).expr
    sql = bound.sql
    for column in reversed(columns):  # c10 before c1
        sql = (
            sql.replace(f"`{column.id}`", "`" + column.label.replace("`", "``") + "`")
            if column.id in bound.columns
            else sql
        )
    names = frozenset(c.label for c in columns if c.id in bound.columns)
    return Expr(sql, bound.text, names)


def _no_column(label: str, type_: str | None) -> Column:
    raise BindError(f"an aggregate ({label}) cannot stand in an expression over single rows")


def _bind(query: CreateQuery, inputs: Mapping[str, InputSchema], defaults: Mapping[str, str]) -> Plan:
    settings = _settings(query, defaults)
    context = Context(inputs, query.source, settings)
    try:
        bound = QueryBinder(context).query(query.select, {})
    except SweepAreaError as error:
        raise_all([*context.faults, error])
        raise
    raise_all(context.faults)
    bound, stream = _outer_stream(bound, context)
    _check_inputs(context, query.place)
    _check_labels(bound, stream, query)
    node, columns = _with_unique_labels(bound, context)
    errors: list[SweepAreaError] = []
    constraints: list[Constraint] = []
    for spec in query.constraints:
        try:
            constraints.append(_constraint(spec, columns))
        except SweepAreaError as error:
            errors.append(error)
    start = 0
    if query.start_at is not None:
        try:
            start = query.start_at.in_ticks(context.time, "START AT")
        except SweepAreaError as error:
            errors.append(error)
    raise_all(errors)
    return Plan(
        name=query.name,
        root=prune(node),
        stream=stream,
        time=context.time,
        start=start,
        materialize=_materialize(query, stream),
        inputs=tuple(context.used),
        constraints=tuple(constraints),
        settings=tuple(settings.items()),
        notes=tuple(context.notes),
    )


def _settings(query: CreateQuery, defaults: Mapping[str, str]) -> dict[str, str]:
    settings = {**{k.lower(): str(v) for k, v in defaults.items()}, **dict(query.settings)}
    errors: list[SweepAreaError] = []
    for name, choices in _CHOICES.items():
        value = settings.get(name)
        if value is not None and value.lower() not in choices:
            errors.append(
                ParseError(
                    f"setting {name} is {' or '.join(choices)}, not {value!r}",
                    query.settings_places.get(name),
                    nearest(value, choices) or f"Write {name} = '{choices[0]}'",
                )
            )
        elif value is not None:
            settings[name] = value.lower()
    raise_all(errors)
    return settings


def _outer_stream(bound: BoundQuery, context: Context) -> tuple[BoundQuery, str | None]:
    """The outermost operator, written or added by CQL's default (semantics section 6)."""
    if bound.to_stream is not None:
        return bound, bound.to_stream.kind.lower()
    if is_monotonic(bound.node):
        context.note("the query is a monotonic relation: Istream is added")
        return bound, "istream"
    return bound, None


def _check_inputs(context: Context, place: Place) -> None:
    used = list(context.used.values())
    if used and all(s.static for s in used):
        raise RefusedError(
            f"nothing here ever changes: {listing(s.name for s in used)} {'is' if len(used) == 1 else 'are'} static, "
            "so the query would have no heartbeat",
            place,
            "Read a stream or a relation with a history too, or query the table with plain SQL",
        )
    kinds = {s.time.kind for s in used if not s.static}
    if len(kinds) > 1:
        a = next(s for s in used if s.time.kind == "BIGINT" and not s.static)
        b = next(s for s in used if s.time.kind != "BIGINT" and not s.static)
        raise TypeError_(
            f"{a.name} and {b.name} count time differently: BIGINT ticks and TIMESTAMP",
            place,
            "Use inputs of one kind of time",
        )


def _check_labels(bound: BoundQuery, stream: str | None, query: CreateQuery) -> None:
    errors: list[SweepAreaError] = []
    for column in bound.columns:
        if column.label.lower() in RESERVED:
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


def _with_unique_labels(bound: BoundQuery, context: Context) -> tuple[Node, tuple[Column, ...]]:
    labels = [c.label for c in bound.columns]
    names = unique_labels(labels)
    if names == labels and bound.node.columns == bound.columns:
        return bound.node, bound.columns
    for old, new in zip(labels, names, strict=True):
        if old != new:
            context.note(f"output column {old} is repeated: it is named {new}")
    outputs = tuple((context.new_column(n, c.type), column_expr(c)) for n, c in zip(names, bound.columns, strict=True))
    return Project(bound.node, outputs), tuple(c for c, _ in outputs)


def _constraint(spec: ConstraintSpec, columns: tuple[Column, ...]) -> Constraint:
    scope = Scope.of(Item(None, columns))
    binder = Binder(spec.expression.source, scope, _no_column, f"constraint {spec.name}")
    try:
        condition = binder.condition(spec.expression.tree)
    except BindError as error:
        if "is unknown" in error.message:
            raise BindError(
                f"constraint {spec.name}: {error.message}",
                error.place,
                error.hint + " (constraints see the query's output columns)",
            ) from None
        raise
    return Constraint(spec.name, condition, spec.on_violation)


def _materialize(query: CreateQuery, stream: str | None) -> tuple[str, ...]:
    """The tables kept: those written, and for a stream-valued query always the stream itself."""
    written = tuple(kind for kind, _ in query.materialize)
    if stream is not None:
        return (stream, *(k for k in written if k != stream))
    return written or ("relation",)
