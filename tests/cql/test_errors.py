"""What an error looks like, to the character: the place, the kind, the way out, the line and a caret below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeparea.cql.catalog import Catalog
from sweeparea.cql.errors import CqlErrors
from sweeparea.infra.errors import SweepAreaError
from tests.cql.schemas import plan

GOLDEN = {
    "SELECT orign FROM flights [Range 5 Minutes]": """\
q.cql:1:8: BindError: column orign is unknown. Did you mean origin?
    SELECT orign FROM flights [Range 5 Minutes]
           ^""",
    "SELECT a\nFROM S [Rang 5]": """\
q.cql:2:9: ParseError: a window is expected, found 'Rang'. Did you mean Range?
    FROM S [Rang 5]
            ^""",
    "SELECT a FORM S": """\
q.cql:1:15: ParseError: 'S' is not expected here. Did you mean FROM?
    SELECT a FORM S
                  ^""",
    "SELECT a FROM S\n\tWHERE  rand() > 1": """\
q.cql:2:9: RefusedError: rand is not deterministic: its value depends on when and where a slice is run, so no two runs \
would agree. Use the stream's instant ts, or a column that the source fills.
    \tWHERE  rand() > 1
    \t       ^""",
    "SELECT sum(b > 'x') AS s FROM S": """\
q.cql:1:8: TypeError: SUM cannot take b > 'x', which is of type BOOLEAN. It takes numbers.
    SELECT sum(b > 'x') AS s FROM S
           ^""",
    "SELECT a FROM S WHERE a": """\
q.cql:1:23: TypeError: WHERE needs a condition, but a is of type INT. Write a comparison, such as a > 0.
    SELECT a FROM S WHERE a
                          ^""",
    "SELECT a FROM R [Now]": """\
q.cql:1:17: TypeError: R is a relation, and a window needs a stream. Leave [Now] out, or window the stream of its \
changes: ISTREAM(SELECT * FROM R) [Now].
    SELECT a FROM R [Now]
                    ^""",
    "SELECT a FROM S [Range 5] WHERE b = 'it": """\
q.cql:1:37: ParseError: a quote or comment that is opened here is not closed. Close it, or double a backtick inside a \
quoted name.
    SELECT a FROM S [Range 5] WHERE b = 'it
                                        ^""",
    "SELECT a FROM S WHERE (a > 1": """\
q.cql:1:28: ParseError: ')' is expected, found the end of the statement.
    SELECT a FROM S WHERE (a > 1
                               ^""",
    "SELECT a, FROM S": """\
q.cql:1:11: ParseError: one more column behind the comma is expected, found 'FROM'.
    SELECT a, FROM S
              ^""",
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), GOLDEN.items())
def test_error_text(text: str, expected: str) -> None:
    with pytest.raises(SweepAreaError) as caught:
        plan(text, filename="q.cql")
    assert str(caught.value) == expected
    assert caught.value.type == expected.split(": ")[1]
    assert caught.value.exit_code != 0


def test_all_faults_of_a_query_at_once() -> None:
    with pytest.raises(CqlErrors) as caught:
        plan("SELECT aa, uper(b), sum(a) AS s FROM S [Range 5 Hours] WHERE bb > 1 GROUP BY b")
    messages = [e.message for e in caught.value.errors]  # type: ignore[attr-defined]
    assert [m.split(",")[0] for m in messages] == [
        "Range 5 Hours has a unit of time",
        "column bb is unknown",
        "column aa is unknown",
        "there is no function uper",
    ]


def test_errors_of_files_name_them(tmp_path: Path) -> None:
    (tmp_path / "flights.cql").write_text("\n\n  CREATE STREAM s FROM DELTA 'x' TIMSTAMP BY t;\n")
    with pytest.raises(SweepAreaError) as caught:
        Catalog.load(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/flights.cql:3:34: ParseError: 'TIMSTAMP' begins no clause")
    assert "Did you mean TIMESTAMP?" in str(caught.value)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    for text in ("SELECT " + "(" * 3000 + "a" + ")" * 3000 + " FROM S", "SELECT a" + " + a" * 5000 + " AS k FROM S"):
        try:
            plan(text)
        except SweepAreaError as error:
            deep = error
            assert "too deeply" in str(deep)  # a machine with a deeper stack may plan it


def test_queries_that_grow_without_end_are_refused() -> None:
    ctes = ", ".join(f"w{i} AS (SELECT p.a FROM w{i - 1} p, w{i - 1} q)" for i in range(1, 40))
    with pytest.raises(SweepAreaError, match="more than 5,000 columns"):
        plan(f"WITH w0 AS (SELECT a FROM S [Now]), {ctes} SELECT a FROM w39")
