"""Clauses and statements that the language has and the engine cannot do yet, told where an application is loaded.

The parser reads all of the language; binding refuses nothing for the engine's sake either (``operators/support.py``
does that for plans). Offering a clause means removing its line here.
"""

from __future__ import annotations

from collections.abc import Iterator

from sweeparea.cql import statements as st
from sweeparea.cql.errors import RefusedError, not_offered


def not_offered_statements(statement: st.Statement) -> list[RefusedError]:
    """What of a statement cannot be done by this version: one refusal with its place for each clause."""
    if isinstance(statement, st.CreateStream | st.CreateRelation):
        return list(_source(statement))
    if isinstance(statement, st.CreateQuery):
        return list(_query(statement))
    return []


def _source(statement: st.CreateStream | st.CreateRelation) -> Iterator[RefusedError]:
    places = statement.places
    if statement.source.kind == "format":
        yield not_offered("FROM FORMAT", statement.place, "Land the data in a Delta table and write FROM DELTA 'path'")
    if statement.late == "repair":
        yield not_offered("LATE REPAIR", places.get("late"), "Leave it out: late elements then go to quarantine")
    spec = statement.heartbeat
    if spec is not None and spec.kind in ("per", "policy"):
        yield not_offered(f"HEARTBEAT {spec.kind.upper()}", spec.place)
    if isinstance(statement, st.CreateStream):
        yield from _stream(statement)
    else:
        yield from _relation(statement)
    for expectation in statement.expectations:
        yield _expectation(expectation)


def _stream(statement: st.CreateStream) -> Iterator[RefusedError]:
    if statement.deduplicate is not None:
        yield not_offered("DEDUPLICATE BY", statement.deduplicate.place)
    if statement.on_source_change == "correct":
        yield not_offered(
            "ON SOURCE CHANGE CORRECT",
            statement.places.get("on_source_change"),
            "Offered are FAIL (the default) and IGNORE",
        )


def _relation(statement: st.CreateRelation) -> Iterator[RefusedError]:
    clauses = {"history": "HISTORY BY", "changes": "CHANGES BY", "feed": "CHANGE DATA FEED"}
    if statement.contents in clauses:
        yield not_offered(clauses[statement.contents], statement.places.get(statement.contents))


def _query(statement: st.CreateQuery) -> Iterator[RefusedError]:
    for constraint in statement.constraints:
        if constraint.on_violation == "quarantine":
            yield not_offered(
                f"query {statement.name}: constraint {constraint.name}: ON VIOLATION QUARANTINE ROW (the default) on a"
                " query",
                constraint.place,
                "Write ON VIOLATION FAIL UPDATE or WARN, or put the condition into WHERE or HAVING",
            )
    for expectation in statement.expectations:
        yield _expectation(expectation)


def _expectation(expectation: st.ExpectationSpec) -> RefusedError:
    return not_offered("EXPECT gx.", expectation.place, "Write a condition in parentheses: EXPECT (a > 0)")
