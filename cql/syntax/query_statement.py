"""``CREATE CONTINUOUS QUERY``: its clauses, and the query itself, which ``dialect/`` reads."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.syntax import settings as known_settings
from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.clauses.constraint_clauses import ConstraintClauses, Constraints
from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.errors import ParseError, Place, raise_all
from sweeparea.cql.text.keywords import PLACES, misspelt
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import TokenType

_KINDS = ("RELATION", "ISTREAM", "DSTREAM", "RSTREAM")


class QueryStatement(ConstraintClauses):
    """Reads what follows CREATE CONTINUOUS QUERY."""

    def query(self, replace: bool) -> st.CreateQuery:
        name = self.name("the query's name")
        start: DurationText | None = None
        chronon: int | None = None
        materialize: tuple[tuple[str, DurationText | None], ...] = ()
        anchor: DurationText | None = None
        constraints = Constraints()
        settings: dict[str, str] = {}
        settings_places: dict[str, Place] = {}
        places: dict[str, Place] = {}
        while not self.take("AS"):
            here, clause = self.here(), self.word()
            if clause in places and clause not in ("CONSTRAINT", "SUITE"):
                raise ParseError(f"{clause} is given twice", here, "Keep one of them")
            places[clause] = here
            if self.take("START", "AT"):
                start = self.instant("START AT")
            elif self.take("CHRONON"):
                chronon = self.positive("CHRONON")
            elif self.take("MATERIALIZE"):
                materialize, anchor = self._materialize()
            elif self.take("CONSTRAINT"):
                constraints.add(self.constraint(here))
            elif self.take("SUITE"):
                constraints.suites.append(self.suite(here))
            elif self.take("WITH"):
                settings, settings_places = self._settings()
            else:
                known = ("START", "CHRONON", "MATERIALIZE", "CONSTRAINT", "SUITE", "WITH", "AS")
                hint = misspelt(self.word(), known) or self._instead_of_a_clause()
                raise self.fail("START AT, CHRONON, MATERIALIZE, CONSTRAINT, SUITE, WITH or AS", hint=hint)
        return st.CreateQuery(
            self.at,
            self.whole,
            name=name,
            select=self.whole_query(),
            source=self.source,
            start_at=start,
            chronon_us=chronon,
            materialize=materialize,
            materialize_anchor=anchor,
            constraints=tuple(constraints.conditions),
            expectations=tuple(constraints.expectations),
            suites=tuple(constraints.suites),
            settings=tuple(settings.items()),
            settings_places=settings_places,
            replace=replace,
            places={k.lower(): p for k, p in places.items() if k not in ("CONSTRAINT", "SUITE")},
        )

    def _instead_of_a_clause(self) -> str:
        """What to do about a word that begins no clause of a query."""
        if self._curr and self._curr.token_type == TokenType.L_PAREN:
            return "Name the columns in the query: AS SELECT a AS p, b AS q FROM .."
        if self.word() == "START":
            return "Write START AT TIMESTAMP '2024-01-31'"
        if self.word() in ("SELECT", "ISTREAM", "DSTREAM", "RSTREAM"):
            return f"Write AS before {self.word()}"
        return PLACES.get(self.word(), "")

    def _materialize(self) -> tuple[tuple[tuple[str, DurationText | None], ...], DurationText | None]:
        found: list[tuple[str, DurationText | None]] = []
        anchor = None
        while True:
            kind = self.word()
            if kind not in _KINDS:
                raise self.fail("RELATION, ISTREAM, DSTREAM or RSTREAM", *_KINDS)
            if any(kind.lower() == k for k, _ in found):
                raise ParseError(f"{kind} is given twice", self.here(), "Keep one of them")
            self._advance()
            every = None
            if self.word() == "EVERY":
                if kind != "RSTREAM":
                    raise ParseError(
                        f"EVERY belongs to RSTREAM: {kind} speaks at the instants at which something changes",
                        self.here(),
                        "Leave it out, or write RSTREAM EVERY",
                    )
                self._advance()
                every = self.positive_length("EVERY")
                anchor = self.instant("ANCHOR") if self.take("ANCHOR") else None
            found.append((kind.lower(), every))
            if not self._match(TokenType.COMMA):
                return tuple(found), anchor

    def _settings(self) -> tuple[dict[str, str], dict[str, Place]]:
        settings: dict[str, str] = {}
        places: dict[str, Place] = {}
        self.open("WITH (range_bounds = 'exclusive')")
        while True:
            here = self.here()
            name = self.setting_name()
            if name in settings:
                raise ParseError(f"setting {name} is given twice", here, "Keep one of them")
            if not self._match(TokenType.EQ):
                raise self.fail("'='")
            settings[name] = self.value()
            places[name] = here
            if not self._match(TokenType.COMMA):
                break
        self.close("',' or ')'")
        raise_all(list(known_settings.check_settings(settings, places, of_query=True)))
        return settings, places

    def setting_name(self) -> str:
        name = self.name("a setting's name").lower()
        while self._match(TokenType.DOT):
            name += "." + self.name("a setting's name").lower()
        return name

    def whole_query(self) -> exp.Expr:
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
        query = self.whole_query()
        self.end()
        return query, self.source
