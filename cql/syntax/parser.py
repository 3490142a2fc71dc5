"""Text to statements: the grammar of ``docs/grammar.ebnf`` above the level of SELECT, which ``dialect.py`` reads.

Each statement is read on its own, so that one fault does not hide the faults of the others. A new statement is a new
method here and a new entry of the table that names it; the long ones are in ``source_statements.py`` and
``query_statement.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sweeparea.cql.syntax import recovery
from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.dialect.tokenizing import tokenize
from sweeparea.cql.syntax.query_statement import QueryStatement
from sweeparea.cql.syntax.settings import fault_of
from sweeparea.cql.text import foreign_words
from sweeparea.cql.text.errors import ParseError, RefusedError, nearest, not_offered, raise_all
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType
from sweeparea.infra.deep_stack import deep
from sweeparea.infra.errors import SweepAreaError

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


def parse_text(text: str, filename: str = "<text>") -> list[st.Statement]:
    """The statements of a text. Raises one error or ``CqlErrors`` with at most one error a statement."""
    return parse(text, filename)


def read_file(path: str | Path) -> str:
    """The text of a file of statements."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8 text (byte {error.start})", None, "Save the file as UTF-8") from None
    except OSError as error:
        raise ParseError(
            f"{path} cannot be read: {error.strerror}", None, "Remove it, or make it a readable file"
        ) from None


def parse(text: str, filename: str) -> list[st.Statement]:
    """All statements of a text; raises ``CqlErrors`` (or the one error) after every statement was tried."""
    parsed, errors, _ = parse_leniently(text, filename)
    raise_all(errors)
    return parsed


@deep
def parse_leniently(
    text: str, filename: str
) -> tuple[list[st.Statement], list[SweepAreaError], dict[str, SweepAreaError]]:
    """The statements of a text that can be read, the faults of the others, and for the names that these were to
    declare, in lower case, why they are not."""
    swallowing = False
    try:
        chunks, faults = recovery.split(tokenize(text, filename)), []
        swallowing = recovery.swallows(text, chunks)
    except ParseError:
        chunks, faults = recovery.readable(text, filename)
    read = _read(text, filename, chunks, faults)
    if swallowing and read[1]:
        return _read(text, filename, *recovery.readable(text, filename))
    return read


def _read(
    text: str, filename: str, chunks: list[list[Token]], faults: list[tuple[str, ParseError]]
) -> tuple[list[st.Statement], list[SweepAreaError], dict[str, SweepAreaError]]:
    parsed: list[st.Statement] = []
    errors: list[SweepAreaError] = []
    unread: dict[str, SweepAreaError] = {}

    def failed(statement: str, error: SweepAreaError) -> None:
        errors.append(error)
        name = recovery.declared(statement)
        if name is not None:
            unread.setdefault(name.lower(), error)

    for statement, error in faults:
        failed(statement, error)
    for chunk in chunks:
        try:
            parsed.append(_guarded(text, filename, chunk, StatementParser.statement))
        except SweepAreaError as error:
            failed(text[chunk[0].start : chunk[-1].end + 1], error)
    return parsed, errors, unread


@deep
def parse_query_text(text: str, filename: str = "<query>") -> tuple[exp.Expr, SourceText]:
    """One SELECT (or ISTREAM(..), WITH ..) without a statement around it, as ``replay`` and EXPLAIN take it."""
    chunks = recovery.split(tokenize(text, filename))
    if not chunks:
        raise ParseError("the query is empty", SourceText(text, filename).place(0), "Write SELECT .. FROM ..")
    if len(chunks) > 1:
        place = SourceText(text, filename).place(chunks[1][0].start)
        raise ParseError("one query is expected, but a second statement begins here", place)
    return _guarded(text, filename, chunks[0], StatementParser.only_query)


LEVELS = 1_000
"""Levels of nesting that are read, on any machine."""


def _levels(chunk: list[Token]) -> list[int]:
    """How many parentheses, brackets and CASEs are open at each token, it included."""
    found: list[int] = []
    depth = 0
    for token in chunk:
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
        found.append(depth)
        depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
    return found


def _guarded(text: str, filename: str, chunk: list[Token], read: Callable[[StatementParser], Any]) -> Any:
    source = SourceText(text, filename, chunk)
    parser = StatementParser(source, chunk)
    level = _levels(chunk)
    if max(level, default=0) > LEVELS:
        raise ParseError(
            f"this statement nests too deeply to be read: parentheses, brackets and CASE stand {max(level):,} inside"
            f" one another, and {LEVELS:,} may",
            source.place(chunk[next(i for i, depth in enumerate(level) if depth > LEVELS)].start),
            "Take parts of it into queries of their own",
        )
    try:
        return read(parser)
    except SqlglotError as error:
        foreign = _foreign(source, chunk, parser.position())
        raise foreign or _translated(error, source, parser) from None
    except ParseError as error:
        offset = _offset(chunk, source, error)
        if _in_window(chunk, offset) or not any(words in error.message for words in _NOT_EXPECTED):
            raise  # it says more than that a word is not expected
        raise _foreign(source, chunk, offset) or error from None
    except RecursionError:
        raise ParseError(
            "this statement nests too deeply to be read",
            source.place(chunk[level.index(max(level))].start),
            "Take parts of it into queries of their own",
        ) from None
    except SweepAreaError:
        raise
    except Exception as error:
        # sqlglot's parser trusts its input in places; whatever it trips over is still a fault of the text
        place = source.place(parser.position())
        raise ParseError("this statement cannot be read near here", place) from error


def _offset(chunk: list[Token], source: SourceText, error: ParseError) -> int:
    """Where in the text an error is placed; behind all of it where it has no place."""
    at = error.place
    behind = (t.start for t in chunk if at is not None and source.place(t.start) == at)
    return next(behind, chunk[-1].end)


_NOT_EXPECTED = ("is expected, found", "is not expected here", "begins no clause of", "a window stands in brackets")


def _in_window(chunk: list[Token], offset: int) -> bool:
    """Whether a bracket is open before a character."""
    kinds = [t.token_type for t in chunk if t.start < offset]
    return kinds.count(TokenType.L_BRACKET) > kinds.count(TokenType.R_BRACKET)


def _foreign(source: SourceText, chunk: list[Token], offset: int) -> RefusedError | None:
    """The refusal of what another system has before a place at which a text could not be read."""
    found = foreign_words.recognized(chunk, offset)
    return None if found is None else not_offered(found.what, source.place(found.start), found.hint)


_TYPES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "interval", "array", "map", "struct", "variant"),
)
_OTHER_TYPES = {"integer": "INT", "text": "STRING", "varchar2": "STRING", "number": "DECIMAL", "datetime": "TIMESTAMP"}


def _near_type(word: str) -> str:
    known = {t: t.upper() for t in _TYPES} | _OTHER_TYPES
    close = nearest(word, known)
    return f"Did you mean {known[close.removeprefix('Did you mean ').rstrip('?')]}?" if close else ""


def _wanted_type(parser: StatementParser) -> Token | None:
    """The word that stands where ``array<`` or the like wants a type."""
    depth = 0
    before = parser.before(20)
    for i in range(len(before) - 1, 0, -1):
        depth += (before[i].text == ">") - (before[i].text == "<")
        if depth < 0:
            kind = before[i - 1].text.upper()
            words = [t for t in parser.behind(2) if t.token_type == TokenType.VAR]
            wanted = words[1:] if kind == "STRUCT" else words
            return wanted[0] if kind in ("ARRAY", "MAP", "STRUCT") and wanted else None
    return None


def _translated(error: SqlglotError, source: SourceText, parser: StatementParser) -> ParseError:
    details = (getattr(error, "errors", None) or [{}])[0]
    message = str(details.get("description") or str(error).splitlines()[0]).rstrip(".")
    place = source.place(parser.position())
    found = parser.found()
    wanted = _wanted_type(parser)
    if "TYPE after CAST" in message or message.startswith("Expected type") or wanted is not None:
        word = parser.word().lower() if wanted is None else wanted.text.lower()
        return ParseError(
            f"a type is expected, found {found if wanted is None else repr(wanted.text)}",
            place if wanted is None else source.place(wanted.start),
            _near_type(word) or f"Types are {', '.join(t.upper() for t in _TYPES)}",
        )
    if message.startswith("Invalid expression / Unexpected token"):
        message = f"{found} is not expected here"
    elif message.startswith("Required keyword: "):
        if found == "'>'" and [t.text for t in parser.before(2)] == [">", ">"]:
            return ParseError(">>> is not offered by this version", place, "Write shiftrightunsigned(a, n)")
        message = f"something is missing before {found}"
    elif message.startswith("Expecting ") or message.startswith("Expected "):
        what = message.split(" ", 1)[1].split(" but got ")[0].removeprefix("table name")
        what = what or "the name of a stream, relation or query"
        message = f"{what!r} is expected, found {found}" if len(what) <= 2 else f"{what} is expected, found {found}"
    else:
        message = f"{message[:1].lower()}{message[1:]}, at {found}"
    unfinished = "beside the comma" in message or "behind the comma" in message
    return ParseError(message, place, "" if unfinished else parser.near_keyword())


class StatementParser(QueryStatement):
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
            return self._stream(replace)
        if self.take("RELATION"):
            return self._relation(replace)
        if self.take("CONTINUOUS", "QUERY"):
            return self._query(replace)
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
        kind = self.word().lower()
        self._advance()
        name = self.name(f"the {kind}'s name")
        self.need("AS")
        example = f"CREATE {kind.upper()} {name} AS 'package.module:object'"
        place, target = self.here(), self.string("module:object", example)
        if not _TARGET.fullmatch(target):
            raise ParseError(f"'{target}' does not name an object of a Python module", place, f"Write {example}")
        return st.CreateFunction(self.at, self.whole, kind=kind, name=name, target=target, replace=replace)

    # -- small statements --------------------------------------------------------------------------------------------

    def _kind(self) -> str:
        if self.take("STREAM"):
            return "stream"
        if self.take("RELATION"):
            return "relation"
        if self.take("CONTINUOUS", "QUERY"):
            return "query"
        hint = self._continuous("DROP")
        raise self.fail("STREAM, RELATION or CONTINUOUS QUERY", "STREAM", "RELATION", "CONTINUOUS", hint=hint)

    def _drop(self) -> st.Drop:
        kind = self._kind()
        name = self.name("a name")
        return st.Drop(self.at, self.whole, kind=kind, name=name, purge=self.take("PURGE"))

    def _set(self) -> st.SetSetting:
        place, name = self.here(), self._setting_name()
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
        query = st.CreateQuery(self.at, self.whole, name="query", select=self._whole_query(), source=self.source)
        return st.Explain(self.at, self.whole, query=query)

    def _show(self) -> st.Show:
        if self.take("STREAMS"):
            return st.Show(self.at, self.whole, kind="stream")
        if self.take("RELATIONS"):
            return st.Show(self.at, self.whole, kind="relation")
        if self.take("CONTINUOUS", "QUERIES"):
            return st.Show(self.at, self.whole, kind="query")
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
