"""``CREATE STREAM`` and ``CREATE RELATION``: where the data comes from, its time, and what is done with its faults.

A new clause is one more entry of the table in ``_stream`` or ``_relation`` and, where it is long, a method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.clauses.constraint_clauses import ConstraintClauses, Constraints
from sweeparea.cql.syntax.clauses.contents import contents_of
from sweeparea.cql.syntax.clauses.heartbeat_clause import HeartbeatClause
from sweeparea.cql.syntax.clauses.source_clause import SourceClause
from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.errors import ParseError, Place
from sweeparea.cql.text.keywords import PLACES, misspelt
from sweeparea.cql.text.tokens import TokenType

Clause = tuple[tuple[str, ...], Callable[[], Any]]
"""The first words of a clause and what reads the rest."""
_NAMED = ("timestamp_by", "sequence_by")
"""Clauses that are just a column: their place is that of its name."""


class SourceStatements(SourceClause, HeartbeatClause, ConstraintClauses):
    """Reads what follows CREATE STREAM and CREATE RELATION."""

    def stream(self, replace: bool) -> st.CreateStream:
        name = self.name("the stream's name")
        source = self.source_clause()
        found, places = self._clauses(
            {
                "timestamp_by": (("TIMESTAMP", "BY"), lambda: self.name("a column")),
                "chronon_us": (("CHRONON",), lambda: self.positive("CHRONON")),
                "sequence_by": (("SEQUENCE", "BY"), lambda: self.name("a column")),
                "deduplicate": (("DEDUPLICATE", "BY"), self._deduplicate),
                "heartbeat": (("HEARTBEAT",), self.heartbeat),
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

    def relation(self, replace: bool) -> st.CreateRelation:
        name = self.name("the relation's name")
        source = self.source_clause()
        found, places = self._clauses(
            {
                "static": (("STATIC",), lambda: True),
                "history": (("HISTORY", "BY"), lambda: self._pair("HISTORY BY (valid_from, valid_to)")),
                "changes": (("CHANGES", "BY"), lambda: self._pair("CHANGES BY (op, ts)")),
                "feed": (("CHANGE", "DATA", "FEED"), lambda: True),
                "key": (("KEY",), self._key),
                "sequence_by": (("SEQUENCE", "BY"), lambda: self.name("a column")),
                "heartbeat": (("HEARTBEAT",), self.heartbeat),
                "retroactive": (("NON", "RETROACTIVE"), lambda: False),
                "late": (("LATE",), self._late),
            },
            "CREATE RELATION",
        )
        contents = contents_of(name, found, places)
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
            if self.take("SUITE"):
                constraints.suites.append(self.suite(here))
                continue
            for field, (words, read) in allowed.items():
                if self.take(*words):
                    if field in found:
                        raise ParseError(f"{' '.join(words)} is given twice", here, "Keep one of them")
                    places[field] = self.here() if field in _NAMED else here
                    found[field] = read()
                    break
            else:
                known = [" ".join(words) for words, _ in allowed.values()] + ["CONSTRAINT", "SUITE"]
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
        found["suites"] = tuple(constraints.suites)
        return found, places

    def _of_another(self, what: str) -> str:
        """Where a clause belongs that this statement does not have."""
        if self.word() == "AS":
            return "What a query makes is declared by CREATE CONTINUOUS QUERY name AS SELECT .."
        place = PLACES.get(self.word(), "")
        return place if "CREATE" in place and what not in place else ""

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
