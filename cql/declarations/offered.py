"""Clauses and statements that the language has and the engine cannot do yet, told where an application is loaded.

The parser reads all of the language; binding refuses nothing for the engine's sake either: a plan without an
incremental form runs by snapshot expansion (``operators/plan/lowering.py``). Offering a clause means removing its line
here.
"""

from __future__ import annotations

from collections.abc import Iterator

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.source_formats import format_faults
from sweeparea.cql.text.errors import BindError, RefusedError, not_offered


def not_offered_statements(statement: st.Statement) -> list[RefusedError | BindError]:
    """What of a statement cannot be done by this version: one refusal with its place for each clause."""
    if isinstance(statement, st.CreateStream | st.CreateRelation):
        return list(_source(statement))
    if isinstance(statement, st.CreateQuery):
        return list(_query(statement))
    return []


def _source(statement: st.CreateStream | st.CreateRelation) -> Iterator[RefusedError | BindError]:
    yield from format_faults(statement)


def _query(statement: st.CreateQuery) -> Iterator[RefusedError]:
    for constraint in statement.constraints:
        if constraint.on_violation == "quarantine":
            yield not_offered(
                f"query {statement.name}: constraint {constraint.name}: ON VIOLATION QUARANTINE ROW (the default) on a"
                " query",
                constraint.place,
                "Write ON VIOLATION FAIL UPDATE or WARN, or put the condition into WHERE or HAVING",
            )
