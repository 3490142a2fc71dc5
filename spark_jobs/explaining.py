"""Explain for an application: a query's plan, what it was chosen by, and what it shares with other queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sweeparea.cql.explain import explain
from sweeparea.cql.explain.words import describe
from sweeparea.cql.hidden_names import is_hidden
from sweeparea.cql.rewrites import Input
from sweeparea.operators.logical import Plan
from sweeparea.spark_jobs.application import Application


def explained(application: Application, name: str, form: str = "tree") -> str:
    """How a query, declared or hidden, is run."""
    plan = application.plan(name)
    shown = explain(plan, tuple(application.catalog.relations), form)
    if form != "tree":
        return shown
    registered = name in application.registry.deployed.rows()
    since = "when it was registered" if registered else "now; its registration will fix them"
    rates = {} if is_hidden(name) else application.registry.rates_of(name)
    return shown + _section("Shared with other queries", _shared(application, plan)) + rates_text(rates, since)


def rates_text(rates: Mapping[str, Input], since: str) -> str:
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
        own = application.plan(hidden)
        others = [query for query in readers(application, hidden) if query != plan.name]
        over = ", ".join(own.inputs)
        what = describe(own.root.inputs[0], own.time)
        with_ = f"with {', '.join(others)}" if others else "with no other query yet"
        yield (
            f"{hidden}: {what}, over {over}; {with_}. It is computed once, before its readers:"
            f" `sweeparea explain {application.name} {hidden}`"
        )


def readers(application: Application, hidden: str) -> list[str]:
    """The queries that read a hidden query as they are registered, or would be now."""
    registry = application.registry
    deployed = registry.deployed.rows()
    names = [*application.catalog.queries, *(row.name for row in deployed.values() if row.kind == "query")]
    return [name for name in dict.fromkeys(names) if hidden in registry.planned(name).shared]
