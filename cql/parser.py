"""Text to statements: the grammar of ``docs/grammar.ebnf`` above the level of SELECT, which ``dialect.py`` reads.

Each statement is read on its own, so that one fault does not hide the faults of the others. A new statement or clause
is a new method here and a new entry of the table that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from sweeparea.cql import statements as st
from sweeparea.cql.dialect import Cql, CqlParser, tokenize
from sweeparea.cql.durations import DurationText, parse_duration, parse_instant
from sweeparea.cql.errors import ParseError, Place, nearest, not_offered, raise_all
from sweeparea.cql.source_text import SourceText, Span
from sweeparea.cql.tokens import Token, TokenType
from sweeparea.infra.errors import SweepAreaError

_KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "UNION", "JOIN", "INNER", "LEFT", "CROSS",
    "ON", "USING",
    "CREATE", "STREAM", "RELATION", "CONTINUOUS", "QUERY", "TIMESTAMP", "CHRONON", "SEQUENCE", "HEARTBEAT",
    "RETAIN", "CONSTRAINT",
    "MATERIALIZE", "START", "WITH", "DISTINCT", "INTERSECT", "EXCEPT", "EXPECT", "VIOLATION",
)  # fmt: skip


def parse(text: str, filename: str) -> list[st.Statement]:
    """All statements of a text; raises ``CqlErrors`` (or the one error) after every statement was tried."""
    parsed: list[st.Statement] = []
    errors: list[SweepAreaError] = []
    for chunk in _split(tokenize(text, filename)):
        try:
            parsed.append(_guarded(text, filename, chunk, StatementParser.statement))
        except SweepAreaError as error:
            errors.append(error)
    raise_all(errors)
    return parsed


def parse_query_text(text: str, filename: str = "<query>") -> tuple[exp.Expr, SourceText]:
    """One SELECT (or ISTREAM(..), WITH ..) without a statement around it, as ``replay`` and EXPLAIN take it."""
    chunks = _split(tokenize(text, filename))
    if not chunks:
        raise ParseError("the query is empty", SourceText(text, filename).place(0), "Write SELECT .. FROM ..")
    if len(chunks) > 1:
        place = SourceText(text, filename).place(chunks[1][0].start)
        raise ParseError("one query is expected, but a second statement begins here", place)
    return _guarded(text, filename, chunks[0], StatementParser.only_query)


def _split(tokens: list[Token]) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [c for c in chunks if c]


def _guarded(text: str, filename: str, chunk: list[Token], read: Callable[[StatementParser], Any]) -> Any:
    source = SourceText(text, filename, chunk)
    parser = StatementParser(source, chunk)
    try:
        return read(parser)
    except SqlglotError as error:
        raise _translated(error, source, parser) from None
    except RecursionError:
        place = source.place(chunk[0].start)
        raise ParseError(
            "this statement nests too deeply to be read", place, "Take parts of it into queries of their own"
        ) from None
    except SweepAreaError:
        raise
    except Exception as error:
        # sqlglot's parser trusts its input in places; whatever it trips over is still a fault of the text
        place = source.place(parser.position())
        raise ParseError("this statement cannot be read near here", place) from error


def _translated(error: SqlglotError, source: SourceText, parser: StatementParser) -> ParseError:
    details = (getattr(error, "errors", None) or [{}])[0]
    message = str(details.get("description") or str(error).splitlines()[0]).rstrip(".")
    place = source.place(parser.position())
    found = parser.found()
    if message.startswith("Invalid expression / Unexpected token"):
        message = f"{found} is not expected here"
    elif message.startswith("Required keyword: "):
        message = f"something is missing before {found}"
    elif message.startswith("Expecting ") or message.startswith("Expected "):
        wanted = message.split(" ", 1)[1].split(" but got ")[0].removeprefix("table name")
        wanted = wanted or "the name of a stream, relation or query"
        message = (
            f"{wanted!r} is expected, found {found}" if len(wanted) <= 2 else f"{wanted} is expected, found {found}"
        )
    else:
        message = f"{message[:1].lower()}{message[1:]}, at {found}"
    return ParseError(message, place, parser.near_keyword())


class StatementParser(CqlParser):
    """Reads one statement from its tokens."""

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        super().__init__(dialect=Cql(), error_level=ErrorLevel.IMMEDIATE)
        self.reset()
        self.sql = source.text
        self.source = source
        self._chunks = [tokens]
        self._advance_chunk()

    # -- tokens ------------------------------------------------------------------------------------------------------

    def word(self) -> str:
        if not self._curr or self._curr.token_type in (TokenType.STRING, TokenType.NUMBER):
            return ""
        return self._curr.text.upper()

    def position(self) -> int:
        if self._curr:
            return self._curr.start
        return self._tokens[-1].end if self._tokens else 0

    def found(self) -> str:
        return f"'{self._curr.text}'" if self._curr else "the end of the statement"

    def near_keyword(self) -> str:
        """The keyword that this word or, where a misspelt keyword was taken for an alias, the one before resembles."""
        before = self._prev.text.upper() if self._prev and self._prev.token_type == TokenType.VAR else ""
        return nearest(self.word(), _KEYWORDS) or nearest(before, _KEYWORDS)

    def here(self) -> Place:
        return self.source.place(self.position())

    def fail(self, wanted: str, *known: str, hint: str = "") -> ParseError:
        return ParseError(
            f"{wanted} is expected, found {self.found()}", self.here(), hint or nearest(self.word(), known)
        )

    def take(self, *words: str) -> bool:
        return self._match_text_seq(*words)

    def need(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.fail(word, word)

    def name(self, what: str) -> str:
        token = self._curr
        if (
            not token
            or token.token_type in (TokenType.STRING, TokenType.NUMBER)
            or not (token.token_type == TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum())
        ):
            raise self.fail(what, hint="Names are letters, digits and _, or anything between backticks")
        self._advance()
        return token.text

    def duration(self, what: str) -> int:
        value, index = parse_duration(self.source, self._tokens, self._index, what)
        self._retreat(index)
        return value.in_micros(what)

    def span_from(self, first: int) -> Span:
        return self._tokens[first].start, self._tokens[self._index - 1].end + 1

    def expression_here(self, what: str) -> st.SourceExpression:
        first = self._index
        tree = self._parse_disjunction()
        if tree is None or self._index == first:
            raise self.fail(f"an expression for {what}")
        return st.SourceExpression(tree, self.span_from(first), self.source)

    def end(self) -> None:
        if self._curr:
            raise ParseError(f"{self.found()} is not expected here", self.here(), self.near_keyword())

    # -- statements --------------------------------------------------------------------------------------------------

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
            "RESUME": self._pause,
        }
        start = starts.get(self.word())
        if start is None:
            if self.word() in ("SELECT", "WITH", "ISTREAM", "DSTREAM", "RSTREAM"):
                raise ParseError(
                    "a bare query is no statement",
                    self.at,
                    "Write CREATE CONTINUOUS QUERY name AS SELECT .., or EXPLAIN SELECT ..",
                )
            raise self.fail(
                "a statement", *starts, hint=nearest(self.word(), starts) or f"Statements: {', '.join(starts)}"
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
            raise not_offered(f"CREATE {self.word()}", self.here())
        kinds = ("STREAM", "RELATION", "CONTINUOUS QUERY")
        raise self.fail("STREAM, RELATION or CONTINUOUS QUERY", *kinds)

    def _source(self) -> st.SourceSpec:
        self.need("FROM")
        if self.word() == "FORMAT":
            raise not_offered("FROM FORMAT", self.here(), "Land the data in a Delta table and write FROM DELTA 'path'")
        self.need("DELTA")
        token = self._curr
        if token and token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            self._advance()
            if not token.text.strip():
                raise ParseError("the path of the Delta table is empty", self.source.place(token.start))
            return st.SourceSpec("delta", token.text)
        parts = [self.name("a path in quotes, or catalog.schema.table")]
        while self._match(TokenType.DOT):
            parts.append(self.name("a name"))
        return st.SourceSpec("delta", ".".join(parts))

    # each clause: its first words, and the method that reads what follows them into the field
    def _clauses(self, allowed: dict[str, tuple[tuple[str, ...], Callable[[], Any]]], what: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        constraints: list[st.ConstraintSpec] = []
        while self._curr:
            here = self.here()
            if self.take("CONSTRAINT"):
                constraints.append(self._constraint(here, constraints))
                continue
            for field, (words, read) in allowed.items():
                if self.take(*words):
                    if field in found:
                        raise ParseError(f"{' '.join(words)} is given twice", here, "Keep one of them")
                    found[field] = read()
                    break
            else:
                known = [" ".join(words) for words, _ in allowed.values()] + ["CONSTRAINT"]
                raise ParseError(
                    f"{self.found()} begins no clause of {what}",
                    here,
                    nearest(self.word(), [w.split()[0] for w in known]) or f"Clauses: {', '.join(known)}",
                )
        found["constraints"] = tuple(constraints)
        return found

    def _stream(self, replace: bool) -> st.CreateStream:
        name = self.name("the stream's name")
        source = self._source()
        found = self._clauses(
            {
                "timestamp_by": (("TIMESTAMP", "BY"), lambda: self.name("a column")),
                "chronon_us": (("CHRONON",), lambda: self._positive("CHRONON")),
                "sequence_by": (("SEQUENCE", "BY"), lambda: self.name("a column")),
                "deduplicate": (("DEDUPLICATE", "BY"), self._refuse("DEDUPLICATE BY")),
                "heartbeat": (("HEARTBEAT",), self._heartbeat),
                "max_ahead": (("MAX", "AHEAD"), lambda: self._positive("MAX AHEAD")),
                "late": (("LATE",), self._late),
                "on_source_change": (("ON", "SOURCE", "CHANGE"), self._source_change),
                "retain": (("RETAIN",), lambda: self._positive("RETAIN")),
            },
            "CREATE STREAM",
        )
        if "timestamp_by" not in found:
            raise ParseError(
                f"stream {name} has no TIMESTAMP BY",
                self.at,
                "Name the column that holds each element's time: TIMESTAMP BY departed",
            )
        return st.CreateStream(self.at, self.whole, name=name, source=source, replace=replace, **found)

    def _relation(self, replace: bool) -> st.CreateRelation:
        name = self.name("the relation's name")
        source = self._source()
        found = self._clauses(
            {
                "contents": (("STATIC",), lambda: "static"),
                "history": (("HISTORY", "BY"), self._refuse("HISTORY BY")),
                "changes": (("CHANGES", "BY"), self._refuse("CHANGES BY")),
                "feed": (("CHANGE", "DATA", "FEED"), self._refuse("CHANGE DATA FEED")),
                "key": (("KEY",), self._refuse("KEY")),
                "heartbeat": (("HEARTBEAT",), self._heartbeat),
                "retroactive": (("NON", "RETROACTIVE"), self._refuse("NON RETROACTIVE")),
                "late": (("LATE",), self._late),
                "retain": (("RETAIN",), self._refuse("RETAIN on a relation")),
            },
            "CREATE RELATION",
        )
        return st.CreateRelation(self.at, self.whole, name=name, source=source, replace=replace, **found)

    def _refuse(self, what: str) -> Callable[[], Any]:
        place = self.source

        def read() -> Any:
            raise not_offered(what, place.place(self._prev.start))

        return read

    def _positive(self, what: str) -> int:
        here = self.here()
        value = self.duration(what)
        if value <= 0:
            raise ParseError(f"{what} must be longer than zero", here)
        return value

    def _late(self) -> str:
        if self.take("REJECT"):
            return "reject"
        if self.word() == "REPAIR":
            raise not_offered("LATE REPAIR", self.here(), "Leave it out: late elements then go to quarantine")
        raise self.fail("REJECT or REPAIR", "REJECT", "REPAIR")

    def _source_change(self) -> str:
        if self.take("FAIL"):
            return "fail"
        if self.take("IGNORE"):
            return "ignore"
        if self.word() == "CORRECT":
            raise not_offered("ON SOURCE CHANGE CORRECT", self.here(), "Offered are FAIL (the default) and IGNORE")
        raise self.fail("FAIL, IGNORE or CORRECT", "FAIL", "IGNORE", "CORRECT")

    def _heartbeat(self) -> st.HeartbeatSpec:
        here = self.source.place(self._prev.start)
        if self.take("EACH", "BATCH"):
            return st.HeartbeatSpec("each_batch", place=here)
        if self.take("MANUAL"):
            return st.HeartbeatSpec("manual", place=here)
        if self.take("FROM", "COLUMN"):
            return st.HeartbeatSpec("column", column=self.name("a column"), place=here)
        if self.take("FROM", "CLOCK"):
            lag = 0
            if self.take("LAG"):
                lag = self.duration("LAG")
            return st.HeartbeatSpec("clock", lag=lag, place=here)
        if self.take("FOR"):
            column = self.name("a column")
            self.need("AS")
            return st.HeartbeatSpec("for", column=column, expression=self.expression_here("the heartbeat"), place=here)
        if self.word() in ("PER", "POLICY"):
            raise not_offered(f"HEARTBEAT {self.word()}", self.here())
        raise self.fail(
            "FOR, EACH BATCH, FROM COLUMN, FROM CLOCK or MANUAL", "FOR", "EACH", "FROM", "MANUAL",
            hint="Write HEARTBEAT FOR departed AS departed - INTERVAL 30 MINUTES",
        )  # fmt: skip

    def _constraint(self, here: Place, before: list[st.ConstraintSpec]) -> st.ConstraintSpec:
        name = self.name("the constraint's name")
        if any(c.name.lower() == name.lower() for c in before):
            raise ParseError(f"constraint {name} is given twice", here, "Give each constraint a name of its own")
        self.need("EXPECT")
        if self.word() == "GX":
            raise not_offered("EXPECT gx.", self.here(), "Write a condition in parentheses: EXPECT (a > 0)")
        if not self._match(TokenType.L_PAREN):
            raise self.fail("'('", hint="Write EXPECT (a > 0)")
        expression = self.expression_here("the constraint")
        if not self._match(TokenType.R_PAREN):
            raise self.fail("')'")
        violation = "quarantine"
        if self.take("ON", "VIOLATION"):
            if self.take("QUARANTINE"):
                self.take("ROW")
            elif self.take("FAIL"):
                self.take("UPDATE")
                violation = "fail"
            elif self.take("WARN"):
                violation = "warn"
            else:
                raise self.fail("QUARANTINE ROW, FAIL UPDATE or WARN", "QUARANTINE", "FAIL", "WARN")
        return st.ConstraintSpec(name, expression, violation, here)

    # -- queries -----------------------------------------------------------------------------------------------------

    def _query(self, replace: bool) -> st.CreateQuery:
        name = self.name("the query's name")
        start: DurationText | None = None
        materialize: tuple[tuple[str, DurationText | None], ...] = ()
        constraints: list[st.ConstraintSpec] = []
        settings: dict[str, str] = {}
        places: dict[str, Place] = {}
        seen: set[str] = set()
        while not self.take("AS"):
            here, clause = self.here(), self.word()
            if clause in seen and clause != "CONSTRAINT":
                raise ParseError(f"{clause} is given twice", here, "Keep one of them")
            seen.add(clause)
            if self.take("START", "AT"):
                start, index = parse_instant(self.source, self._tokens, self._index, "START AT")
                self._retreat(index)
            elif self.take("MATERIALIZE"):
                materialize = self._materialize()
            elif self.take("CONSTRAINT"):
                constraints.append(self._constraint(here, constraints))
            elif self.take("WITH"):
                settings, places = self._settings()
            else:
                known = ("START AT", "MATERIALIZE", "CONSTRAINT", "WITH", "AS")
                raise self.fail(
                    "START AT, MATERIALIZE, CONSTRAINT, WITH or AS",
                    hint=nearest(self.word(), [k.split()[0] for k in known]),
                )
        select = self._whole_query()
        return st.CreateQuery(
            self.at,
            self.whole,
            name=name,
            select=select,
            source=self.source,
            start_at=start,
            materialize=materialize,
            constraints=tuple(constraints),
            settings=tuple(settings.items()),
            settings_places=places,
            replace=replace,
        )

    def _materialize(self) -> tuple[tuple[str, DurationText | None], ...]:
        found: list[tuple[str, DurationText | None]] = []
        while True:
            kind = self.word().lower()
            if kind not in ("relation", "istream", "dstream", "rstream"):
                raise self.fail("RELATION, ISTREAM, DSTREAM or RSTREAM", "RELATION", "ISTREAM", "DSTREAM", "RSTREAM")
            if kind == "rstream":
                raise not_offered("MATERIALIZE RSTREAM", self.here())
            if any(kind == k for k, _ in found):
                raise ParseError(f"{kind.upper()} is given twice", self.here(), "Keep one of them")
            self._advance()
            found.append((kind, None))
            if not self._match(TokenType.COMMA):
                return tuple(found)

    def _settings(self) -> tuple[dict[str, str], dict[str, Place]]:
        settings: dict[str, str] = {}
        places: dict[str, Place] = {}
        if not self._match(TokenType.L_PAREN):
            raise self.fail("'('", hint="Write WITH (range_bounds = 'exclusive')")
        while True:
            here = self.here()
            name = self._setting_name()
            if name in settings:
                raise ParseError(f"setting {name} is given twice", here, "Keep one of them")
            if not self._match(TokenType.EQ):
                raise self.fail("'='")
            settings[name] = self._setting_value()
            places[name] = here
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_PAREN):
            raise self.fail("',' or ')'")
        return settings, places

    def _setting_name(self) -> str:
        name = self.name("a setting's name").lower()
        while self._match(TokenType.DOT):
            name += "." + self.name("a setting's name").lower()
        return name

    def _setting_value(self) -> str:
        sign = "-" if self._match(TokenType.DASH) else ""
        token = self._curr
        if not token or token.token_type in (TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN):
            raise self.fail("a value")
        self._advance()
        quoted = token.token_type in (TokenType.STRING, TokenType.RAW_STRING)
        return sign + (token.text if quoted else token.text.lower())

    def _whole_query(self) -> exp.Expr:
        first = self._index
        if not self._curr:
            raise self.fail("a query", hint="Write SELECT .. FROM ..")
        query = self._parse_select(nested=True)
        if query is not None:
            query = self._parse_query_modifiers(self._parse_set_operations(query))
        if query is None or self._index == first:
            raise self.fail("SELECT", "SELECT", "WITH", "ISTREAM", "DSTREAM")
        if not isinstance(query, exp.Query):
            raise ParseError(
                "a query is expected here", self.source.place(self._tokens[first].start), "Write SELECT .. FROM .."
            )
        query.meta.setdefault("span", self.span_from(first))
        return query

    def only_query(self) -> tuple[exp.Expr, SourceText]:
        query = self._whole_query()
        self.end()
        return query, self.source

    # -- small statements --------------------------------------------------------------------------------------------

    def _kind(self) -> str:
        if self.take("STREAM"):
            return "stream"
        if self.take("RELATION"):
            return "relation"
        if self.take("CONTINUOUS", "QUERY"):
            return "query"
        raise self.fail("STREAM, RELATION or CONTINUOUS QUERY", "STREAM", "RELATION", "CONTINUOUS")

    def _drop(self) -> st.Drop:
        kind = self._kind()
        name = self.name("a name")
        return st.Drop(self.at, self.whole, kind=kind, name=name, purge=self.take("PURGE"))

    def _set(self) -> st.SetSetting:
        name = self._setting_name()
        if not self._match(TokenType.EQ):
            raise self.fail("'='", hint="Write SET range_bounds = 'exclusive'")
        return st.SetSetting(self.at, self.whole, name=name, value=self._setting_value())

    def _refresh(self) -> st.RefreshRelation:
        self.need("RELATION")
        return st.RefreshRelation(self.at, self.whole, name=self.name("the relation's name"))

    def _explain(self) -> st.Explain:
        if self.take("CONTINUOUS", "QUERY"):
            return st.Explain(self.at, self.whole, name=self.name("the query's name"))
        query = st.CreateQuery(self.at, self.whole, name="query", select=self._whole_query(), source=self.source)
        return st.Explain(self.at, self.whole, query=query)

    def _show(self) -> st.Show:
        if self.take("STREAMS"):
            return st.Show(self.at, self.whole, kind="stream")
        if self.take("RELATIONS"):
            return st.Show(self.at, self.whole, kind="relation")
        if self.take("CONTINUOUS", "QUERIES"):
            return st.Show(self.at, self.whole, kind="query")
        raise self.fail("STREAMS, RELATIONS or CONTINUOUS QUERIES", "STREAMS", "RELATIONS", "CONTINUOUS")

    def _describe(self) -> st.Describe:
        return st.Describe(self.at, self.whole, name=self.name("a name"))

    def _pause(self) -> st.Statement:
        raise not_offered(f"{self._prev.text.upper()} CONTINUOUS QUERY", self.source.place(self._prev.start))
