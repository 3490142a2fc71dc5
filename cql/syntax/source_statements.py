"""``CREATE STREAM`` and ``CREATE RELATION``: where the data comes from, its time, and what is done with its faults.

A new clause is one more entry of the table in ``_stream`` or ``_relation`` and, where it is long, a method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.constraint_clauses import ConstraintClauses, Constraints
from sweeparea.cql.syntax.words import STRINGS
from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.errors import ParseError, Place
from sweeparea.cql.text.keywords import PLACES, misspelt
from sweeparea.cql.text.tokens import TokenType

Clause = tuple[tuple[str, ...], Callable[[], Any]]
"""The first words of a clause and what reads the rest."""
_NAMED = ("timestamp_by", "sequence_by")
"""Clauses that are just a column: their place is that of its name."""


class SourceStatements(ConstraintClauses):
    """Reads what follows CREATE STREAM and CREATE RELATION."""

    at: Place
    whole: str

    def _stream(self, replace: bool) -> st.CreateStream:
        name = self.name("the stream's name")
        source = self._source()
        found, places = self._clauses(
            {
                "timestamp_by": (("TIMESTAMP", "BY"), lambda: self.name("a column")),
                "chronon_us": (("CHRONON",), lambda: self.positive("CHRONON")),
                "sequence_by": (("SEQUENCE", "BY"), lambda: self.name("a column")),
                "deduplicate": (("DEDUPLICATE", "BY"), self._deduplicate),
                "heartbeat": (("HEARTBEAT",), self._heartbeat),
                "max_ahead": (("MAX", "AHEAD"), lambda: self.positive("MAX AHEAD")),
                "late": (("LATE",), self._late),
                "on_source_change": (("ON", "SOURCE", "CHANGE"), self._source_change),
                "retain": (("RETAIN",), lambda: self.positive("RETAIN")),
            },
            "CREATE STREAM",
        )
        if "timestamp_by" not in found:
            raise ParseError(
                f"stream {name} has no TIMESTAMP BY",
                self.at,
                "Name the column that holds each element's time: TIMESTAMP BY departed",
            )
        found["late"], found["late_within"] = found.get("late", ("reject", None))
        return st.CreateStream(self.at, self.whole, name=name, source=source, replace=replace, places=places, **found)

    def _relation(self, replace: bool) -> st.CreateRelation:
        name = self.name("the relation's name")
        source = self._source()
        found, places = self._clauses(
            {
                "static": (("STATIC",), lambda: True),
                "history": (("HISTORY", "BY"), lambda: self._pair("HISTORY BY (valid_from, valid_to)")),
                "changes": (("CHANGES", "BY"), lambda: self._pair("CHANGES BY (op, ts)")),
                "feed": (("CHANGE", "DATA", "FEED"), lambda: True),
                "key": (("KEY",), self._key),
                "sequence_by": (("SEQUENCE", "BY"), lambda: self.name("a column")),
                "heartbeat": (("HEARTBEAT",), self._heartbeat),
                "retroactive": (("NON", "RETROACTIVE"), lambda: False),
                "late": (("LATE",), self._late),
            },
            "CREATE RELATION",
        )
        contents = self._contents(name, found, places)
        found["late"], found["late_within"] = found.get("late", ("reject", None))
        for flag in ("static", "feed"):
            found.pop(flag, None)
        return st.CreateRelation(
            self.at, self.whole, name=name, source=source, contents=contents, replace=replace, places=places, **found
        )

    # each clause is read into the field of its name
    def _clauses(self, allowed: dict[str, Clause], what: str) -> tuple[dict[str, Any], dict[str, Place]]:
        found: dict[str, Any] = {}
        places: dict[str, Place] = {}
        constraints = Constraints()
        while self._curr:
            here = self.here()
            if self.take("CONSTRAINT"):
                constraints.add(self.constraint(here))
                continue
            for field, (words, read) in allowed.items():
                if self.take(*words):
                    if field in found:
                        raise ParseError(f"{' '.join(words)} is given twice", here, "Keep one of them")
                    places[field] = self.here() if field in _NAMED else here
                    found[field] = read()
                    break
            else:
                known = [" ".join(words) for words, _ in allowed.values()] + ["CONSTRAINT"]
                raise ParseError(
                    f"{self.found()} begins no clause of {what}",
                    here,
                    next((f"Write {k} .." for k in known if " " in k and k.split()[0] == self.word()), "")
                    or misspelt(self.word(), [w.split()[0] for w in known])
                    or self._of_another(what)
                    or f"Clauses: {', '.join(known)}",
                )
        found["constraints"] = tuple(constraints.conditions)
        found["expectations"] = tuple(constraints.expectations)
        return found, places

    def _of_another(self, what: str) -> str:
        """Where a clause belongs that this statement does not have."""
        if self.word() == "AS":
            return "What a query makes is declared by CREATE CONTINUOUS QUERY name AS SELECT .."
        place = PLACES.get(self.word(), "")
        return place if "CREATE" in place and what not in place else ""

    # -- where the data comes from -----------------------------------------------------------------------------------

    def _source(self) -> st.SourceSpec:
        if not self.take("FROM"):
            raise self.fail("FROM", "FROM", hint=misspelt(self.word(), ("FROM",)) or self._instead_of_from())
        if self.take("FORMAT"):
            return self._format()
        if not self.take("DELTA"):
            raise self.fail("DELTA or FORMAT", "DELTA", "FORMAT", hint=self._delta())
        if self._curr and self._curr.token_type in STRINGS:
            return st.SourceSpec("delta", self.string("the path of the Delta table", "FROM DELTA 'data/flights'"))
        parts = [self.name("a path in quotes, or catalog.schema.table")]
        while self._match(TokenType.DOT):
            parts.append(self.name("a name"))
        return st.SourceSpec("delta", ".".join(parts))

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
        return st.SourceSpec("format", path, name, options, schema)

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

    def value(self) -> str:
        """A setting's or option's value as text."""
        sign = "-" if self._match(TokenType.DASH) else ""
        token = self._curr
        if not token or token.token_type in (TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN):
            raise self.fail("a value")
        self._advance()
        return sign + (token.text if token.token_type in STRINGS else token.text.lower())

    # -- relations ---------------------------------------------------------------------------------------------------

    def _pair(self, example: str) -> tuple[str, str]:
        self.open(example)
        first = self.name("a column")
        if not self._match(TokenType.COMMA):
            raise self.fail("','", hint=f"Write {example}")
        second = self.name("a column")
        self.close()
        return first, second

    def _key(self) -> tuple[str, ...]:
        self.open("KEY (id)")
        names = self.names("a column")
        self.close("',' or ')'")
        return names

    def _contents(self, name: str, found: dict[str, Any], places: dict[str, Place]) -> str:
        """Which of the four kinds of contents a relation has, once its clauses fit each other."""
        kinds = {"static": "STATIC", "history": "HISTORY BY", "changes": "CHANGES BY", "feed": "CHANGE DATA FEED"}
        given = [k for k in kinds if k in found]
        if len(given) > 1:
            raise ParseError(
                f"relation {name} has {kinds[given[0]]} and {kinds[given[1]]}, but its history comes from one place",
                max((places[k] for k in given), key=lambda p: (p.line, p.column)),
                "Keep one of them",
            )
        contents = given[0] if given else "static"
        for clause, words in (("key", "KEY"), ("sequence_by", "SEQUENCE BY")):
            if clause in found and contents != "changes":
                raise ParseError(
                    f"{words} belongs to CHANGES BY, which relation {name} does not have",
                    places[clause],
                    "Write CHANGES BY (op, ts) KEY (id)",
                )
        if "sequence_by" in found and "key" not in found:
            raise ParseError(
                f"SEQUENCE BY orders the changes of a key, and relation {name} has no KEY",
                places["sequence_by"],
                "Write CHANGES BY (op, ts) KEY (id) SEQUENCE BY n, or leave SEQUENCE BY out",
            )
        if contents == "feed" and "heartbeat" in found:
            raise ParseError(
                f"relation {name} is a CHANGE DATA FEED: it is known up to the time at which its source was read, so it"
                " takes no HEARTBEAT",
                places["heartbeat"],
                "Leave HEARTBEAT out, or say where the instants of its changes stand: HISTORY BY or CHANGES BY",
            )
        if contents in ("history", "changes") and "heartbeat" not in found:
            column = found[contents][0 if contents == "history" else 1]
            raise ParseError(
                f"relation {name} has {kinds[contents]} and no HEARTBEAT, so nobody knows how far its history is told",
                places[contents],
                f"Write HEARTBEAT FOR {column} AS {column}",
            )
        return contents

    # -- time and faults ---------------------------------------------------------------------------------------------

    def _heartbeat(self) -> st.HeartbeatSpec:
        here = self.source.place(self._prev.start)
        if self.take("EACH", "BATCH"):
            return st.HeartbeatSpec("each_batch", place=here)
        if self.take("MANUAL"):
            return st.HeartbeatSpec("manual", place=here)
        if self.take("POLICY"):
            return st.HeartbeatSpec("policy", place=here, policy=self.string("a policy", "HEARTBEAT POLICY 'name'"))
        if self.take("FROM", "COLUMN"):
            return st.HeartbeatSpec("column", column=self.name("a column"), place=here)
        if self.take("FROM", "CLOCK"):
            lag = self._lag() if self.take("LAG") else 0
            return st.HeartbeatSpec("clock", lag=lag, place=here)
        if self.word() in ("FOR", "PER"):
            kind = self.word().lower()
            self._advance()
            column = self.name("a column")
            self.need("AS")
            expression = self.expression_here("the heartbeat")
            idle = self.positive("IDLE AFTER") if kind == "per" and self.take("IDLE", "AFTER") else None
            return st.HeartbeatSpec(kind, column=column, expression=expression, place=here, idle=idle)
        raise self.fail(
            "FOR, EACH BATCH, FROM COLUMN, FROM CLOCK, PER, MANUAL or POLICY",
            "FOR", "EACH", "FROM", "PER", "MANUAL", "POLICY",
            hint=misspelt(self.word(), ("FOR", "EACH", "FROM", "PER", "MANUAL", "POLICY"))
            or "Write HEARTBEAT FOR departed AS departed - INTERVAL 30 MINUTES",
        )  # fmt: skip

    def _lag(self) -> int:
        here, lag = self.here(), self.duration("LAG")
        if lag < 0:
            raise ParseError(
                "LAG must not be negative: a heartbeat ahead of the clock would make every row late",
                here,
                "Write LAG INTERVAL 1 MINUTE, or leave it out",
            )
        return lag

    def _deduplicate(self) -> st.DeduplicateSpec:
        here = self.source.place(self._prev.start)
        columns = self._key() if self._curr.token_type == TokenType.L_PAREN else self.names("a column")
        if not self.take("WITHIN"):
            raise self.fail("WITHIN", "WITHIN", hint="Write DEDUPLICATE BY id WITHIN INTERVAL 1 DAY")
        return st.DeduplicateSpec(columns, self.positive_length("WITHIN"), here)

    def _late(self) -> tuple[str, DurationText | None]:
        if self.take("REJECT"):
            return "reject", None
        if self.take("REPAIR"):
            return "repair", self.positive_length("WITHIN") if self.take("WITHIN") else None
        raise self.fail("REJECT or REPAIR", "REJECT", "REPAIR")

    def _source_change(self) -> str:
        for word in ("FAIL", "IGNORE", "CORRECT"):
            if self.take(word):
                return word.lower()
        raise self.fail("FAIL, IGNORE or CORRECT", "FAIL", "IGNORE", "CORRECT")
