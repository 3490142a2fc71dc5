"""Explain for an application: a query's plan, what it was chosen by, and what it shares with other queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sweeparea.cql.declarations.offered import not_offered_statements
from sweeparea.cql.explain import explain
from sweeparea.cql.rewrites import MeasuredInput
from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.parser import parse_query_text, parse_text
from sweeparea.cql.text.errors import BindError, ParseError, raise_all
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.operators.plan.plan import Plan
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.deployment.declared_rows import kind_of
from sweeparea.spark_jobs.deployment.input_sizes import before_start
from sweeparea.spark_jobs.deployment.rates import measured
from sweeparea.tables.publication.name_kinds import NameKind


def explained(application: Application, name: str, form: str = "tree") -> str:
    """How a query, declared or hidden, is run. BindError for another kind of name, which is not run."""
    other = {k: v for k, v in application.catalog.declared().items() if k not in application.catalog.queries}
    found = next((known for known in other if known.lower() == name.lower()), None)
    if found is not None:
        kind = kind_of(other[found])
        if kind != NameKind.FUNCTION:
            show = application.command("run", "-c", f"DESCRIBE {found}")
            hint = f"DESCRIBE shows its declaration, columns and heartbeat: {show}"
            did = "its rows are admitted as they are"
        else:
            readers_ = ", ".join(q for q in application.catalog.queries if found in application.catalog.functions_of(q))
            did, hint = "queries call it", f"Explain a query that does: {readers_ or 'there is none'}"
        raise BindError(f"{found} is a {kind}, not a continuous query: {did}, so there is no plan", None, hint)
    plan = application.plans.plan(name)
    shown = explain(plan, application.unchanging(), form)
    if form != "tree":
        return shown
    registered = name in application.registry.deployed.rows()
    since = "when it was registered" if registered else "now; its registration will fix them"
    rates = {} if is_hidden(name) else application.plans.rates_of(name)
    left_out = before_start(application, plan)
    shown += _section("Admitted, but not read", [left_out] if left_out else [])
    return shown + _section("Shared with other queries", _shared(application, plan)) + rates_text(rates, since)


def explained_text(application: Application, text: str, form: str = "tree") -> str:
    """As ``explained``, of a text: a query's name, a query, EXPLAIN of either, or CREATE CONTINUOUS QUERY, of which
    nothing is registered.
    """
    text = text.strip().rstrip(";").rstrip()
    word = text.split(maxsplit=1)[0].upper() if text else ""
    if text.isidentifier():
        return explained(application, text, form)
    if word not in ("EXPLAIN", "CREATE"):
        tree, source = parse_query_text(text)
        place = source.place(source.tokens[0].start)
        return explained_query(application, st.CreateQuery(place, text, "query", tree, source), form)
    match parse_text(text, "<query>"):
        case [st.Explain(name=str(name))]:
            return explained(application, name, form)
        case [st.Explain(query=st.CreateQuery() as query)] | [st.CreateQuery() as query]:
            return explained_query(application, query, form)
    raise ParseError("this is no query to explain", None, "Give a query's name, a SELECT, or one CREATE of a query")


def explained_query(application: Application, query: st.CreateQuery, form: str = "tree") -> str:
    """How a query that is not declared would be run."""
    raise_all([*not_offered_statements(query)])
    rates = measured(application, application.plans.result_table, application.catalog.inputs(query)) or {}
    plan = application.plans.bind(query, application.catalog.settings, rates)
    shown = explain(plan, application.unchanging(), form)
    return shown + rates_text({n: rates[n] for n in rates if n in plan.inputs}, "now") if form == "tree" else shown


def rates_text(rates: Mapping[str, MeasuredInput], since: str) -> str:
    """The section on measured rates; nothing where there are none."""
    lines = []
    for name, known in rates.items():
        if known.rate is not None:
            lines.append(f"{name}: {known.rate:g} rows a tick")
        elif known.rows is not None:
            lines.append(f"{name}: {known.rows:,.0f} rows, never changing")
    return _section(f"Rates the order of joins was chosen by (measured {since})", lines)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join(["", title, *(f"  {line}" for line in lines), ""]) if lines else ""


def _shared(application: Application, plan: Plan) -> list[str]:
    if is_hidden(plan.name):
        return [f"read by {', '.join(readers(application, plan.name))}"]
    return list(_hidden_inputs(application, plan))


def _hidden_inputs(application: Application, plan: Plan) -> Iterator[str]:
    for hidden in dict.fromkeys(n for n in plan.inputs if is_hidden(n)):
        own = application.plans.plan(hidden)
        others = [query for query in readers(application, hidden) if query != plan.name]
        over = ", ".join(own.inputs)
        what = own.root.inputs[0].words(own.time)
        with_ = f"with {', '.join(others)}" if others else "with no other query yet"
        yield (
            f"{hidden}: {what}, over {over}; {with_}. It is computed once, before its readers:"
            f" `{application.command('explain', hidden)}`"
        )


def readers(application: Application, hidden: str) -> list[str]:
    """The queries that read a hidden query as they are registered, or would be now."""
    registry = application.registry
    deployed = registry.deployed.rows()
    names = [*application.catalog.queries, *(row.name for row in deployed.values() if row.kind == NameKind.QUERY)]
    return [name for name in dict.fromkeys(names) if hidden in application.plans.planned(name).shared]
