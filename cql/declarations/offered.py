"""Clauses and statements that the language has and the engine cannot do yet, told where an application is loaded.

The parser reads all of the language; binding refuses nothing for the engine's sake either: a plan without an
incremental form runs by snapshot expansion (``operators/plan/lowering.py``). Offering a clause means removing its line
here.
"""

from __future__ import annotations

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.source_formats import format_faults
from sweeparea.cql.text.errors import BindError, RefusedError


def not_offered_statements(statement: st.Statement) -> list[RefusedError | BindError]:
    """What of a statement cannot be done by this version: one refusal with its place for each clause."""
    if isinstance(statement, st.CreateStream | st.CreateRelation):
        return list(format_faults(statement))
    return []
