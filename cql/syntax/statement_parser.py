"""One statement from its tokens, by its first words. A new statement is a new method here and a new entry of the table
that names it; the long ones are in ``source_statements.py`` and ``query_statement.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.query_statement import QueryStatement
from sweeparea.cql.syntax.settings import fault_of
from sweeparea.cql.syntax.source_statements import SourceStatements
from sweeparea.cql.syntax.statements import DeclaredKind
from sweeparea.cql.text.errors import ParseError, RefusedError
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.tokens import TokenType
from sweeparea.operators.plan.plan import UserKind

_WRITING = (
    *("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "ALTER", "COPY", "LOAD", "UPSERT", "REPLACE", "OPTIMIZE"),
    *("VACUUM", "GRANT", "REVOKE", "ANALYZE", "MSCK", "CACHE"),
)
"""Statements of SQL that change tables or what belongs to them."""
_OTHER_STATEMENTS = {
    **dict.fromkeys(
        ("SUBSCRIBE", "TAIL", "LISTEN", "PRINT"),
        "Results are tables: read them with `sweeparea sql`, or add ISTREAM to MATERIALIZE for a table of what begins",
    ),
    **dict.fromkeys(("USE", "CONNECT"), "An application is a folder of .cql files, named on the command line"),
    **dict.fromkeys(("BEGIN", "COMMIT", "ROLLBACK"), "Leave it out: each slice is committed as a whole"),
    **dict.fromkeys(("TERMINATE", "STOP", "KILL"), "Write PAUSE CONTINUOUS QUERY name, or DROP CONTINUOUS QUERY name"),
    "LIST": "Write SHOW STREAMS, SHOW RELATIONS or SHOW CONTINUOUS QUERIES",
}
"""Statements of other systems, and what to do instead."""
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class StatementParser(SourceStatements, QueryStatement):
    """Reads one statement from its tokens."""

    def statement(self) -> st.Statement:
        first = self._curr
        self.at = self.source.place(first.start)
        self.whole = self.source.splice((first.start, self._tokens[-1].end + 1))
        starts: dict[str, Callable[[], st.Statement]] = {
            "CREATE": self._create,
            "DROP": self._drop,
            "SET": self._set,
            "REFRESH": self._refresh,
            "EXPLAIN": self._explain,
            "SHOW": self._show,
            "DESCRIBE": self._describe,
            "DESC": self._describe,
            "PAUSE": self._pause,
            "RESUME": lambda: self._pause(True),
        }
        start = starts.get(self.word())
        if start is None:
            if self.word() in ("SELECT", "WITH", "ISTREAM", "DSTREAM", "RSTREAM", "VALUES", "FROM"):
                raise ParseError(
                    "a bare query is no statement",
                    self.at,
                    "Write CREATE CONTINUOUS QUERY name AS SELECT .., or EXPLAIN SELECT .. to see its plan; "
                    "`sweeparea sql` reads the tables of results",
                )
            if self.word() in _WRITING:
                raise RefusedError(
                    f"SweepArea only reads the tables of sources, so there is no {self.word()}",
                    self.at,
                    "Change a source's table with Spark or another writer of Delta: its stream takes over what is new",
                )
            raise self.fail(
                "a statement",
                *starts,
                hint=_OTHER_STATEMENTS.get(self.word(), "")
                or misspelt(self.word(), starts)
                or f"Statements: {', '.join(starts)}",
            )
        self._advance()
        result = start()
        self.end()
        return result

    def _create(self) -> st.Statement:
        replace = self.take("OR", "REPLACE")
        if self.take("STREAM"):
            return self.stream(replace)
        if self.take("RELATION"):
            return self.relation(replace)
        if self.take("CONTINUOUS", "QUERY"):
            return self.query(replace)
        if self.word() in ("FUNCTION", "AGGREGATE", "WINDOW"):
            return self._function(replace)
        kinds = ("STREAM", "RELATION", "CONTINUOUS QUERY", "FUNCTION", "AGGREGATE", "WINDOW")
        hint = {
            "TABLE": "SweepArea only reads tables: write CREATE STREAM name FROM DELTA 'path' TIMESTAMP BY column",
            **dict.fromkeys(
                ("VIEW", "MATERIALIZED", "LIVE", "SINK"), "Write CREATE CONTINUOUS QUERY name AS SELECT .."
            ),
            **dict.fromkeys(
                ("SOURCE", "EXTERNAL", "STREAMING"),
                "Write CREATE STREAM name FROM DELTA 'path' TIMESTAMP BY column for what comes in, and CREATE"
                " CONTINUOUS QUERY name AS SELECT .. for what is computed",
            ),
            "CONTINUOUS": "Write CREATE CONTINUOUS QUERY name AS SELECT ..",
            "INDEX": "Leave it out: how state and results are laid out is the engine's matter",
            **dict.fromkeys(("SCHEMA", "DATABASE", "CATALOG"), "An application is a folder of .cql files"),
            "TEMPORARY": "Write WITH name AS (SELECT ..) inside a query",
        }.get(self.word(), self._continuous("CREATE"))
        raise self.fail("STREAM, RELATION, CONTINUOUS QUERY, FUNCTION, AGGREGATE or WINDOW", *kinds, hint=hint)

    def _continuous(self, verb: str) -> str:
        """Advice where QUERY stands without CONTINUOUS."""
        return f"Write {verb} CONTINUOUS {self.word()}" if self.word() in ("QUERY", "QUERIES") else ""

    def _function(self, replace: bool) -> st.CreateFunction:
        kind = UserKind(self.word().lower())
        self._advance()
        name = self.name(f"the {kind}'s name")
        self.need("AS")
        example = f"CREATE {kind.upper()} {name} AS 'package.module:object'"
        place, target = self.here(), self.string("module:object", example)
        if not _TARGET.fullmatch(target):
            raise ParseError(f"'{target}' does not name an object of a Python module", place, f"Write {example}")
        return st.CreateFunction(self.at, self.whole, kind=kind, name=name, target=target, replace=replace)

    # -- small statements --------------------------------------------------------------------------------------------

    def _kind(self) -> DeclaredKind:
        if self.take("STREAM"):
            return DeclaredKind.STREAM
        if self.take("RELATION"):
            return DeclaredKind.RELATION
        if self.take("CONTINUOUS", "QUERY"):
            return DeclaredKind.QUERY
        hint = self._continuous("DROP")
        raise self.fail("STREAM, RELATION or CONTINUOUS QUERY", "STREAM", "RELATION", "CONTINUOUS", hint=hint)

    def _drop(self) -> st.Drop:
        kind = self._kind()
        name = self.name("a name")
        return st.Drop(self.at, self.whole, kind=kind, name=name, purge=self.take("PURGE"))

    def _set(self) -> st.SetSetting:
        place, name = self.here(), self.setting_name()
        if not self._match(TokenType.EQ):
            raise self.fail("'='", hint="Write SET range_bounds = 'exclusive'")
        value = self.value()
        fault = fault_of(name, value, place)
        if fault is not None:
            raise fault
        return st.SetSetting(self.at, self.whole, name=name, value=value)

    def _refresh(self) -> st.RefreshRelation:
        self.need("RELATION")
        return st.RefreshRelation(self.at, self.whole, name=self.name("the relation's name"))

    def _explain(self) -> st.Explain:
        if self.take("CONTINUOUS", "QUERY"):
            return st.Explain(self.at, self.whole, name=self.name("the query's name"))
        if self.word() == "QUERY":
            raise self.fail("CONTINUOUS QUERY or SELECT", hint=self._continuous("EXPLAIN"))
        query = st.CreateQuery(self.at, self.whole, name="query", select=self.whole_query(), source=self.source)
        return st.Explain(self.at, self.whole, query=query)

    def _show(self) -> st.Show:
        if self.take("STREAMS"):
            return st.Show(self.at, self.whole, kind=DeclaredKind.STREAM)
        if self.take("RELATIONS"):
            return st.Show(self.at, self.whole, kind=DeclaredKind.RELATION)
        if self.take("CONTINUOUS", "QUERIES"):
            return st.Show(self.at, self.whole, kind=DeclaredKind.QUERY)
        if self.take("CONTINUOUS"):
            raise self.fail("QUERIES", "QUERIES", hint="Write SHOW CONTINUOUS QUERIES")
        hint = self._continuous("SHOW") or (
            "Write SHOW STREAMS, SHOW RELATIONS or SHOW CONTINUOUS QUERIES" if self.word() == "TABLES" else ""
        )
        raise self.fail("STREAMS, RELATIONS or CONTINUOUS QUERIES", "STREAMS", "RELATIONS", "CONTINUOUS", hint=hint)

    def _describe(self) -> st.Describe:
        return st.Describe(self.at, self.whole, name=self.name("a name"))

    def _pause(self, resume: bool = False) -> st.Pause:
        if self.word() == "QUERY":
            raise self.fail("CONTINUOUS QUERY", hint=self._continuous("RESUME" if resume else "PAUSE"))
        self.need("CONTINUOUS", "QUERY")
        return st.Pause(self.at, self.whole, name=self.name("the query's name"), resume=resume)
