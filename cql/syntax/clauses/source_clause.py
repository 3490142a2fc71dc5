"""``FROM DELTA ..`` and ``FROM FORMAT ..``: where a stream's or relation's data comes from."""

from __future__ import annotations

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.clauses.words import STRINGS, Words
from sweeparea.cql.syntax.statements import SourceKind
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.tokens import TokenType


class SourceClause(Words):
    """Reads what follows FROM."""

    def source_clause(self) -> st.SourceSpec:
        if not self.take("FROM"):
            raise self.fail("FROM", "FROM", hint=misspelt(self.word(), ("FROM",)) or self._instead_of_from())
        if self.take("FORMAT"):
            return self._format()
        if not self.take("DELTA"):
            raise self.fail("DELTA or FORMAT", "DELTA", "FORMAT", hint=self._delta())
        if self._curr and self._curr.token_type in STRINGS:
            return st.SourceSpec(
                SourceKind.DELTA, self.string("the path of the Delta table", "FROM DELTA 'data/flights'")
            )
        parts = [self.name("a path in quotes, or catalog.schema.table")]
        while self._match(TokenType.DOT):
            parts.append(self.name("a name"))
        return st.SourceSpec(SourceKind.DELTA, ".".join(parts))

    def _instead_of_from(self) -> str:
        if self._curr and self._curr.token_type == TokenType.L_PAREN:
            return "Leave the columns out: they are those of the source, FROM DELTA 'path'"
        if self.word() == "AS":
            return "What a query makes is declared by CREATE CONTINUOUS QUERY name AS SELECT .."
        return "Write FROM DELTA 'path'"

    def _delta(self) -> str:
        """How a source is written where a path or a format of files stands instead of DELTA."""
        near = misspelt(self.word(), ("DELTA", "FORMAT"))
        path = self._curr if self._curr and self._curr.token_type in STRINGS else self._next
        if near or not path or path.token_type not in STRINGS:
            return near or "Write FROM DELTA 'path' or FROM DELTA catalog.schema.table"
        if path is self._curr:
            return f"Write FROM DELTA '{path.text}'"
        return "Sources are Delta tables: land the files in one and write FROM DELTA 'path'"

    def _format(self) -> st.SourceSpec:
        name = self.string("the name of a Spark source", "FROM FORMAT 'json' PATH 'dir'")
        path, options, schema = "", (), ()
        seen: set[str] = set()
        while self.word() in ("PATH", "OPTIONS", "SCHEMA"):
            here, clause = self.here(), self.word()
            if clause in seen:
                raise ParseError(f"{clause} is given twice", here, "Keep one of them")
            seen.add(clause)
            self._advance()
            if clause == "PATH":
                path = self.string("a path", "PATH 'dir'")
            elif clause == "OPTIONS":
                options = self._options()
            else:
                schema = self._columns()
        return st.SourceSpec(SourceKind.FORMAT, path, name, options, schema)

    def _options(self) -> tuple[tuple[str, str], ...]:
        self.open("OPTIONS (multiLine = true)")
        found: dict[str, str] = {}
        while True:
            here = self.here()
            if self._curr and self._curr.token_type in STRINGS:
                name = self.string("an option's name", "OPTIONS ('multiLine' = true)")
            else:
                name = self.name("an option's name")
                while self._match(TokenType.DOT):
                    name += "." + self.name("an option's name")
            if name.lower() in (n.lower() for n in found):
                raise ParseError(f"option {name} is given twice", here, "Keep one of them")
            self._match(TokenType.EQ)  # Spark lets the sign be left out
            found[name] = self.value()
            if not self._match(TokenType.COMMA):
                break
        self.close("',' or ')'")
        return tuple(found.items())

    def _columns(self) -> tuple[tuple[str, str], ...]:
        """``(name type, ..)``, with types as Spark writes them; they are checked where the source is read."""
        self.open("SCHEMA (id BIGINT, at TIMESTAMP)")
        found: dict[str, str] = {}
        while True:
            here, name = self.here(), self.name("a column")
            if name.lower() in (n.lower() for n in found):
                raise ParseError(f"column {name} is given twice", here, "Keep one of them")
            first = self._index
            kind = self._parse_types(check_func=False, allow_identifiers=False)
            if kind is None or self._index == first:
                raise self.fail(f"the type of column {name}", hint="Write SCHEMA (id BIGINT, at TIMESTAMP)")
            found[name] = self.source.splice(self.span_from(first)).lower()
            if not self._match(TokenType.COMMA):
                break
        self.close("',' or ')'")
        return tuple(found.items())
