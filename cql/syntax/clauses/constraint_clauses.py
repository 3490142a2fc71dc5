"""``CONSTRAINT name EXPECT .. ON VIOLATION ..``, as Spark Declarative Pipelines write it, over a condition or over an
expectation of Great Expectations.
"""

from __future__ import annotations

from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.clauses.words import STRINGS, Words
from sweeparea.cql.text.errors import ParseError, Place, RefusedError
from sweeparea.cql.text.keywords import misspelt
from sweeparea.cql.text.timestamps import micros_of_timestamp
from sweeparea.cql.text.tokens import TokenType

_EXAMPLE = "EXPECT (a > 0), or EXPECT gx.expect_column_values_to_not_be_null(column => 'a')"
_LONGEST_LIST = 10_000


class Constraints:
    """The constraints of one statement while it is read."""

    def __init__(self) -> None:
        self.conditions: list[st.ConstraintSpec] = []
        self.expectations: list[st.ExpectationSpec] = []

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
        rows = st.judges_rows(expectation)
        place = self.here()
        violation = self._violation()
        if violation == "quarantine" and not rows:
            raise RefusedError(
                f"{expectation} judges a table as a whole, so there is no row to quarantine",
                place,
                "Write ON VIOLATION FAIL UPDATE (the default of such expectations) or WARN",
            )
        default = "quarantine" if rows else "fail"
        return st.ExpectationSpec(name, expectation, tuple(arguments.items()), violation or default, here)

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
