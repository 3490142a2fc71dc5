"""What an error looks like, to the character: the place, the kind, the way out, the line and a caret below it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sweeparea.cql.binding.binder import bind, bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text.errors import CqlErrors
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from tests.cql.schemas import TICKS, TIMES, plan

GOLDEN = Path(__file__).parent / "golden" / "errors"
"""A file for each kind of fault: a text, a line with ``=>``, what is said to it; between the cases a blank line."""
STATEMENTS = ("CREATE", "DROP", "SET", "SHOW", "DESCRIBE", "PAUSE", "RESUME", "REFRESH")
INPUTS = {
    **TICKS,
    **TIMES,
    "fine": InputSchema("fine", SchemaKind.STREAM, (("k", "int"),), TimeDomain(TimeKind.TIMESTAMP, 1)),
}


def message(text: str) -> str:
    """What is said to a text: statements are parsed, queries bound, those of CREATE CONTINUOUS QUERY both."""
    try:
        if text.split()[0] in STATEMENTS or ";" in text:
            for statement in parse_text(text, "q.cql"):
                if isinstance(statement, CreateQuery):
                    bind(statement, INPUTS)
        else:
            bind_select(text, INPUTS, filename="q.cql")
    except SweepAreaError as error:
        assert error.exit_code != 0  # noqa: PT017
        assert str(error).split(": ")[1] == error.type  # noqa: PT017
        return str(error)
    return "no error"


def cases(golden: str) -> list[str]:
    """The texts of a golden file."""
    texts, lines, said = [], [], False
    for line in [*golden.splitlines(), ""]:
        if line == "=>":
            texts.append("\n".join(lines))
            lines, said = [], True
        elif not line.strip():
            said = False
        elif not said:
            lines.append(line)
    return texts


@pytest.mark.parametrize("file", sorted(path.name for path in GOLDEN.glob("*.txt")))
def test_error_texts(file: str) -> None:
    """To take what is said now as right: SWEEPAREA_WRITE_GOLDEN=1 pytest tests/cql/test_errors.py"""
    path = GOLDEN / file
    golden = path.read_text(encoding="utf-8")
    actual = "\n\n".join(f"{text}\n=>\n{message(text)}" for text in cases(golden)) + "\n"
    if os.environ.get("SWEEPAREA_WRITE_GOLDEN"):
        path.write_text(actual, encoding="utf-8")
    assert actual == path.read_text(encoding="utf-8")


def test_all_faults_of_a_query_at_once() -> None:
    with pytest.raises(CqlErrors) as caught:
        plan("SELECT aa, uper(b), sum(a) AS s FROM S [Range 5 Hours] WHERE bb > 1 GROUP BY b")
    messages = [e.message for e in caught.value.errors]  # type: ignore[attr-defined]
    assert [m.split(",")[0] for m in messages] == [
        "column aa is unknown",
        "there is no function uper",
        "Range 5 Hours has a unit of time",
        "column bb is unknown",
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
