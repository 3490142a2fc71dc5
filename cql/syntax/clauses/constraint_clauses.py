"""``CONSTRAINT name EXPECT .. ON VIOLATION ..``, as Spark Declarative Pipelines write it, over a condition or over an
expectation of Great Expectations.
"""

from __future__ import annotations

from dataclasses import replace

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.clauses.words import STRINGS, Words
from sweeparea.cql.text.errors import ParseError, Place, RefusedError
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.timestamps import micros_of_timestamp
from sweeparea.cql.text.tokens import TokenType

_EXAMPLE = "EXPECT (a > 0), or EXPECT gx.expect_column_values_to_not_be_null(column => 'a')"
_LONGEST_LIST = 10_000
_MOST_UNITS = 1_000


class Constraints:
    """The constraints of one statement while it is read."""

    def __init__(self) -> None:
        self.conditions: list[st.ConstraintSpec] = []
        self.expectations: list[st.ExpectationSpec] = []
        self.suites: list[st.SuiteSpec] = []

    def add(self, spec: st.ConstraintSpec | st.ExpectationSpec) -> None:
        if any(c.name.lower() == spec.name.lower() for c in (*self.conditions, *self.expectations)):
            raise ParseError(
                f"constraint {spec.name} is given twice", spec.place, "Give each constraint a name of its own"
            )
        if isinstance(spec, st.ConstraintSpec):
            self.conditions.append(spec)
        else:
            self.expectations.append(spec)


class ConstraintClauses(Words):
    """Reads what follows CONSTRAINT."""

    def constraint(self, here: Place) -> st.ConstraintSpec | st.ExpectationSpec:
        name = self.name("the constraint's name")
        if not self.take("EXPECT"):
            raise self.fail("EXPECT", "EXPECT", hint=misspelt(self.word(), ("EXPECT",)) or f"Write {_EXAMPLE}")
        if self.word() == "GX" and self._next.token_type == TokenType.DOT:
            return self._expectation(name, here)
        if not self._curr or self._curr.token_type != TokenType.L_PAREN or self._is_columns():
            return self._of_a_unit(name, here)
        self.open(_EXAMPLE)
        expression = self.expression_here("the constraint")
        self.close()
        return st.ConstraintSpec(name, expression, self._violation() or "quarantine", here)

    def _violation(self) -> str | None:
        if not self.take("ON"):
            return None
        self.need("VIOLATION")
        if self.take("QUARANTINE"):
            self.take("ROW")
            return "quarantine"
        if self.take("FAIL"):
            self.take("UPDATE")
            return "fail"
        if self.take("WARN"):
            return "warn"
        hint = "Write QUARANTINE ROW: the row is kept aside, with its reason" if self.word() == "DROP" else ""
        raise self.fail("QUARANTINE ROW, FAIL UPDATE or WARN", "QUARANTINE", "FAIL", "WARN", hint=hint)

    def _expectation(self, name: str, here: Place) -> st.ExpectationSpec:
        self._advance(2)
        expectation = self.name("the name of an expectation").lower()
        self.open(_EXAMPLE)
        arguments: dict[str, object] = {}
        places: dict[str, Place] = {}
        while not self._match(TokenType.R_PAREN):
            if arguments and not self._match(TokenType.COMMA):
                raise self.fail("',' or ')'")
            at = self.here()
            argument = self.name("the name of an argument").lower()
            if argument in arguments:
                raise ParseError(f"argument {argument} is given twice", at, "Keep one of them")
            if not self._match(TokenType.FARROW) and not self._match(TokenType.EQ):
                raise self.fail("'=>'", hint=f"Write {argument} => value")
            arguments[argument] = self._value()
            places[argument] = at
        return self._ended(
            st.ExpectationSpec(name, expectation, tuple(arguments.items()), "fail", here, argument_places=places)
        )

    def _ended(self, spec: st.ExpectationSpec) -> st.ExpectationSpec:
        """PER and ON VIOLATION of an expectation over several rows."""
        per = self.positive_length("PER") if self.take("PER") else None
        place = self.here()
        violation = self._violation()
        if violation == "quarantine":
            what = spec.expectation if spec.kind == st.ExpectationKind.GX else spec.kind.value.upper()
            raise RefusedError(
                f"{what} judges several rows together, so there is no row to quarantine",
                place,
                "Write ON VIOLATION FAIL UPDATE (the default of expectations) or WARN; a condition on one row, EXPECT"
                " (a > 0), may quarantine",
            )
        return replace(spec, per=per, on_violation=violation or "fail")

    def _is_columns(self) -> bool:
        """Whether what stands in parentheses is a list of columns before REFERENCES, and no condition."""
        depth = 0
        for i, token in enumerate(self.behind(200)):
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            if depth == 0:
                following = self.behind(i + 2)[i + 1 :]
                return bool(following) and following[0].text.upper() == "REFERENCES"
        return False

    def _of_a_unit(self, name: str, here: Place) -> st.ExpectationSpec:
        """FRESH, VOLUME and REFERENCES."""
        kind = st.ExpectationKind
        if self.take("FRESH"):
            self.need("WITHIN")
            within = ("within", self.positive("WITHIN"))
            return self._ended(st.ExpectationSpec(name, "fresh", (within,), "fail", here, kind.FRESH))
        if self.take("VOLUME"):
            return self._ended(st.ExpectationSpec(name, "volume", self._volume(), "fail", here, kind.VOLUME))
        columns: tuple[str, ...] = ()
        if self._match(TokenType.L_PAREN):
            columns = self.names("a column")
            self.close("',' or ')'")
        elif self.word() != "REFERENCES":
            if not self._next or self._next.text.upper() != "REFERENCES":
                near = misspelt(self.word(), ("FRESH", "VOLUME", "REFERENCES", "GX"))
                raise self.fail("'(', gx., FRESH, VOLUME or REFERENCES", hint=near or f"Write {_EXAMPLE}")
            columns = (self.name("a column"),)
        self.need("REFERENCES")
        at = self.here()
        other = self.name("a relation, or a query whose result is one")
        self.open("REFERENCES other(column)")
        others = self.names("a column")
        self.close("',' or ')'")
        if columns and len(columns) != len(others):
            raise ParseError(
                f"{len(columns)} columns cannot reference {len(others)}", at, "Name as many columns on both sides"
            )
        told = (("columns", columns or others), ("other", other), ("other_columns", others))
        places = {"other": at}
        return self._ended(
            st.ExpectationSpec(name, "references", told, "fail", here, kind.REFERENCES, argument_places=places)
        )

    def _volume(self) -> tuple[tuple[str, object], ...]:
        """``BETWEEN n AND m``, or ``WITHIN x DEVIATIONS OF LAST n``."""
        example = "VOLUME BETWEEN 100 AND 5000, or VOLUME WITHIN 3 DEVIATIONS OF LAST 28 PER INTERVAL 1 DAY"
        at = self.here()
        if self.take("BETWEEN"):
            low = self._scalar()
            self.need("AND")
            high = self._scalar()
            bounds = [v for v in (low, high) if v is not None]
            if not bounds or any(isinstance(v, bool) or not isinstance(v, int) for v in bounds):
                raise ParseError(
                    "VOLUME BETWEEN takes whole numbers of rows, one of which may be NULL", at, f"Write {example}"
                )
            if len(bounds) == 2 and isinstance(low, int) and isinstance(high, int) and low > high:
                raise ParseError(
                    f"no number lies between {low} and {high}", at, f"Write VOLUME BETWEEN {high} AND {low}"
                )
            return (("min", low), ("max", high))
        if not self.take("WITHIN"):
            raise self.fail("BETWEEN or WITHIN", "BETWEEN", "WITHIN", hint=f"Write {example}")
        deviations = self._scalar()
        if not self.take("DEVIATIONS"):
            self.need("DEVIATION")
        self.need("OF", "LAST")
        last = self._scalar()
        right = isinstance(deviations, int | float) and not isinstance(deviations, bool) and deviations > 0
        if not right or isinstance(last, bool) or not isinstance(last, int) or not 2 <= last <= _MOST_UNITS:
            raise ParseError(
                "VOLUME WITHIN takes a number of standard deviations, and of how many units before, from 2 to"
                f" {_MOST_UNITS:,}",
                at,
                f"Write {example}",
            )
        return (("deviations", deviations), ("last", last))

    def suite(self, here: Place) -> st.SuiteSpec:
        """What follows SUITE."""
        path = self.string("the suite's file", "SUITE 'orders.json'")
        return st.SuiteSpec(path, here, self.positive_length("PER") if self.take("PER") else None)

    def _value(self) -> object:
        """A literal, or a list of literals in brackets."""
        if self._match(TokenType.L_BRACKET):
            return self._list(TokenType.R_BRACKET, "']'")
        if self.word() == "ARRAY" and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            return self._list(TokenType.R_PAREN, "')'")
        if self.word() in ("TIMESTAMP", "DATE") and self._next.token_type in STRINGS:
            self._advance()
            here, text = self.here(), self._curr.text
            try:
                micros_of_timestamp(text)
            except ValueError as error:
                raise ParseError(f"'{text}' is no instant ({error})", here, "Write TIMESTAMP '2013-01-31'") from None
            self._advance()
            return text
        return self._scalar()

    def _list(self, closing: TokenType, wanted: str) -> tuple[object, ...]:
        found: list[object] = []
        while not self._match(closing):
            if found and not self._match(TokenType.COMMA):
                raise self.fail(f"',' or {wanted}")
            if len(found) >= _LONGEST_LIST:
                raise ParseError(f"a list of more than {_LONGEST_LIST:,} values", self.here(), "Use a condition")
            found.append(self._scalar())
        return tuple(found)

    def _scalar(self) -> object:
        sign = -1 if self._match(TokenType.DASH) else 1
        token = self._curr
        if token and token.token_type == TokenType.NUMBER:
            self._advance()
            try:
                return sign * (int(token.text) if token.text.isdigit() else float(token.text))
            except ValueError:
                raise ParseError(
                    f"'{token.text[:40]}' is no number", self.source.place(token.start), "Write 5 or 0.95"
                ) from None
        if token and sign == 1:
            if token.token_type in STRINGS:
                self._advance()
                return token.text
            for word, value in (("TRUE", True), ("FALSE", False), ("NULL", None)):
                if self.take(word):
                    return value
        raise self.fail("a literal", hint="Write a number, a string, TRUE, FALSE, NULL, or a list such as ['a', 'b']")
