"""A definition in the files that is not the deployed one: what differs beside its text, and the error that says
what can be done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.declarations.differences import NEUTRAL_SETTINGS, Change, DefinitionDifference
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateFunction
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.declarations.declarations import Declarations
from sweeparea.spark_jobs.deployment.declared_rows import kind_of

_CLAUSES = {"source": "FROM (environment)", "code": "Python source", "policy": "Python source of HEARTBEAT POLICY"}


class ChangedDefinition(SweepAreaError):
    """The files hold another definition than the one a name's tables were made by."""

    type = "BindError"
    exit_code = 2


def refusal(declared: Declarations, name: str, found: DefinitionDifference, below: Sequence[str]) -> ChangedDefinition:
    """The error that says what differs and what can be done; ``below`` are the queries that rest on the name."""
    statement = declared.catalog.declared()[name]
    kind = kind_of(statement).words.upper()
    write = "" if getattr(statement, "replace", False) else f"write CREATE OR REPLACE {kind} {name} and "
    also = f" and of {', '.join(below)}, which rest{'s' if len(below) == 1 else ''} on it," if below else ""
    apply, shown = declared.command("apply"), declared.command("plan")
    if isinstance(statement, CreateFunction):
        return ChangedDefinition(
            f"{statement.place}: The definition of {name} has changed since it was deployed: {found}. Results of"
            f" two definitions are never mixed, and {', '.join(below)} {'has' if len(below) == 1 else 'have'} been"
            f" computed by the old one. Either give the new one a name of its own, or {write}run `{apply}`,"
            f" which computes the results of {', '.join(below)} anew from START (`{shown}` shows it beforehand)."
            f"\n{found.diff}".rstrip()
        )
    return ChangedDefinition(
        f"{statement.place}: The definition of {name} has changed since it was deployed: {found}. Results of two"
        " definitions are never mixed. Either give the new definition a name of its own, or"
        f" {write}run `{apply}`, which computes the results of {name}{also} anew from START"
        f" (`{shown}` shows it beforehand); `{declared.command('drop', name)}` removes its tables only."
        f"\n{found.diff}".rstrip()
    )


def parsed(definition: str) -> Declared | None:
    try:
        statements = parse_text(definition, "deployed")
    except SweepAreaError:
        return None
    return statements[0] if len(statements) == 1 and isinstance(statements[0], Declared) else None


def outside_changes(before: dict[str, str], after: dict[str, str]) -> Iterable[Change]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            # one that was registered without its code's fingerprint is taken for unchanged
            rebuild = name not in NEUTRAL_SETTINGS and not (name in ("code", "policy") and before.get(name) is None)
            clause = _CLAUSES.get(name, f"SET {name} =")
            yield Change(clause, before.get(name), after.get(name), rebuild=rebuild)
