"""All faults of all files at once: what cannot be read hides nothing of the other statements, and is not told twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import SourceSpec
from sweeparea.cql.text.errors import CqlErrors
from sweeparea.infra.errors import SweepAreaError

STREAM = "CREATE STREAM reading FROM DELTA 'x' TIMESTAMP BY taken;\n"


def query(name: str, text: str) -> str:
    return f"CREATE CONTINUOUS QUERY {name} AS SELECT a FROM {text};\n"


def told(folder: Path, **files: str) -> list[str]:
    """Place and first words of each fault of an application's files."""
    for name, text in files.items():
        (folder / f"{name}.cql").write_text(text)
    _, errors = Catalog.load_leniently(folder)
    return [f"{Path(e.place.file).name}:{e.place.line}:{e.place.column}: {e.message}" for e in errors]  # type: ignore


def test_unknown_names_beside_a_statement_that_cannot_be_read(tmp_path: Path) -> None:
    faults = told(
        tmp_path,
        b=query("one", "readng [Now]") + query("two", "reading [Rows 0]") + query("three", "reading [mywin(3)]"),
        a=STREAM + query("four", "reading__istream [Now]") + query("five", "reading [Now] WHERE a + > 1"),
    )
    assert faults == [
        "a.cql:2:47: reading is a stream, and only queries keep istream tables: there is no reading__istream",
        "a.cql:3:71: something is missing before '>'",
        "b.cql:1:46: readng is no stream, relation or query",
        "b.cql:2:60: Rows must be at least 1, found 0",
        "b.cql:3:56: there is no window mywin",
    ]


def test_what_cannot_be_read_counts_as_declared(tmp_path: Path) -> None:
    text = (
        "CREATE STREAM reading FROM DELTA 'x';\nCREATE WINDOW w AS 'nope';\nCREATE FUNCTION f AS 'nope';\n"
        "CREATE QUERY `q` AS SELECT a FROM reading;\n"
        + query("one", "READING [w(3)]")
        + query("two", "Q__istream [Now], one")
        + query("three", "one WHERE f(a) > 1")
    )
    (tmp_path / "a.cql").write_text(text)
    catalog, errors = Catalog.load_leniently(tmp_path)
    assert [str(e.place).rpartition("/")[2] for e in errors] == [  # type: ignore[attr-defined]
        "a.cql:1:1",
        "a.cql:2:20",
        "a.cql:3:22",
        "a.cql:4:8",
    ]
    assert list(catalog.unread) == ["reading", "w", "f", "q"]
    for name, missing in (("one", "reading"), ("two", "q"), ("three", "f")):
        with pytest.raises(SweepAreaError) as caught:
            catalog.check_names(catalog.queries[name])
        raised = caught.value.errors if isinstance(caught.value, CqlErrors) else (caught.value,)
        assert catalog.unread[missing] in raised
        assert set(raised) <= set(errors)


@pytest.mark.parametrize("opened", ["'abc", "'it''s", '"x', "`b = 1", "'x' AND c = 'y", "'a\\'", "1 /* why"])
def test_an_unclosed_quote_ends_with_its_statement(tmp_path: Path, opened: str) -> None:
    text = STREAM + query("one", f"reading [Now] WHERE b = {opened}") + query("two", "readng") + "  SET slice.mx = 1;\n"
    faults = told(tmp_path, a=text, b=query("three", "one [Now]") + query("four", "reading [Nw]"))
    assert [f.split(": ")[0] for f in faults] == [
        "a.cql:2:" + faults[0].split(":")[2],
        "a.cql:3:46",
        "a.cql:4:7",
        "b.cql:2:56",
    ]
    assert "is not closed" in faults[0]
    assert int(faults[0].split(":")[2]) >= 68


def test_two_unclosed_quotes_do_not_close_each_other(tmp_path: Path) -> None:
    text = (
        STREAM
        + query("one", "reading WHERE b = 'x")
        + "-- between\n"
        + query("two", "reading WHERE b = 'y")
        + "DROP z;"
    )
    assert [f.split(" ")[0] for f in told(tmp_path, a=text)] == ["a.cql:2:64:", "a.cql:4:64:", "a.cql:5:6:"]


def test_statements_on_one_line_and_in_comments(tmp_path: Path) -> None:
    text = (
        "/* not this;\nCREATE STREAM x;\n*/ "
        + STREAM.strip()
        + query("one", "reading WHERE b = 'x'")
        + "SET a = 'y; DROP z;"
    )
    assert [f.split(" ")[0] for f in told(tmp_path, a=text)] == ["a.cql:4:9:", "a.cql:4:18:"]


def test_a_quote_may_hold_what_looks_like_statements() -> None:
    path = "x;\nCREATE STREAM y"
    [stream] = parse_text(f"CREATE STREAM s FROM DELTA '{path}' TIMESTAMP BY t")
    assert stream.source == SourceSpec("delta", path)  # type: ignore[attr-defined]


def test_long_texts_with_many_faults_are_read_in_one_go() -> None:
    with pytest.raises(CqlErrors) as caught:
        parse_text("".join(query(f"q{i}", "s WHERE b = 'x") for i in range(200)))
    assert len(caught.value.errors) == 200
    assert [e.place.line for e in caught.value.errors] == list(range(1, 201))  # type: ignore[attr-defined]


def test_places_of_the_columns_of_a_stream() -> None:
    [stream] = parse_text("CREATE STREAM s FROM DELTA 'x'\nTIMESTAMP BY rased\nSEQUENCE BY idd")
    assert [(p.line, p.column) for p in stream.places.values()] == [(2, 14), (3, 13)]  # type: ignore[attr-defined]
