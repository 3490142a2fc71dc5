"""The catalog: canonical texts, what differs between two definitions, order and cycles, environments."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sqlglot import exp

from sweeparea.cql.declarations.canonical import declaration, fingerprint
from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.cql.declarations.differences import difference
from sweeparea.cql.syntax.parser import parse_text, read_file
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text.errors import CqlErrors
from sweeparea.infra import environments
from sweeparea.infra.errors import SweepAreaError

STREAM = (
    "CREATE STREAM s FROM DELTA 'src/S' TIMESTAMP BY t CHRONON INTERVAL 1 SECOND HEARTBEAT FOR t AS t - INTERVAL 10"
    " SECONDS RETAIN INTERVAL 3 DAYS CONSTRAINT p EXPECT (x > 0) ON VIOLATION WARN"
)
QUERY = (
    "CREATE CONTINUOUS QUERY q MATERIALIZE RELATION, ISTREAM WITH (dag = 'x', strategy = 'upa') AS"
    " SELECT a, COUNT(*) AS n FROM s [Range 5 minutes] AS z, t [Rows 5] WHERE z.a > -1 AND b = 'It''s' GROUP BY a"
)
FILES = [*sorted(Path("queries").rglob("*.cql")), *sorted(Path("tests/cql/papers").glob("*.cql"))]


def one(text: str):
    (statement,) = parse_text(text, "f.cql")
    return statement


def changes(before: str, after: str):
    return difference(one(before), one(after))


# -- canonical text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        "create or replace continuous query Q materialize relation, istream with (strategy = 'upa', DAG = 'x') as --"
        " why\nselect A, count(*) as n from S[range 5 MINUTES] as Z /* all */, T [rows   5]\nwhere z.`a` > -1 and B ="
        " 'It''s' group\n by a",
        QUERY.replace("MATERIALIZE RELATION, ISTREAM WITH (dag = 'x', strategy = 'upa')", "WITH (dag = 'x', strategy ="
        " 'upa') MATERIALIZE RELATION, ISTREAM"),
    ],
)  # fmt: skip
def test_what_does_not_count_is_not_compared(other):
    # the case of a result column is its table's, so it is kept here
    other = other.replace("select A", "select a")
    assert fingerprint(one(other)) == fingerprint(one(QUERY))
    assert not difference(one(QUERY), one(other))


@pytest.mark.parametrize(
    ("old", "new"),
    [("'It''s'", "'it''s'"), ("AS n", "AS N"), ("-1", "- 2"), ("[Rows 5]", "[Rows 6]"), ("'x'", "'y'")],
)
def test_what_counts_is_compared(old, new):
    assert fingerprint(one(QUERY)) != fingerprint(one(QUERY.replace(old, new)))
    assert changes(QUERY, QUERY.replace(old, new))


def test_the_canonical_text_shows_a_clause_a_line():
    assert declaration(one(QUERY)).text == (
        "CREATE CONTINUOUS QUERY q\n"
        "  MATERIALIZE RELATION, ISTREAM\n"
        "  WITH (dag = 'x', strategy = 'upa')\n"
        "AS\n"
        "SELECT a, COUNT(*) AS n\n"
        "FROM s [Range 5 minutes] AS z, t [Rows 5]\n"
        "WHERE z.a > -1 AND b = 'It''s'\n"
        "GROUP BY a"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_canonical_texts_parse_to_themselves(path):
    for statement in parse_text(read_file(path), str(path)):
        if not hasattr(statement, "name") or not statement.text.upper().startswith("CREATE"):
            continue
        first = declaration(statement)
        again = declaration(one(first.text))
        assert (again.text, again.fingerprint) == (first.text, first.fingerprint)


# -- differences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("CHRONON INTERVAL 1 SECOND", "", "CHRONON INTERVAL 1 SECOND became default"),
        ("'src/S'", "'src/T'", "FROM DELTA 'src/S' became DELTA 'src/T'"),
        ("10 SECONDS", "20 SECONDS", "HEARTBEAT FOR t AS t - INTERVAL 10 SECONDS became FOR t AS t - INTERVAL 20"
            " SECONDS"),
        ("ON VIOLATION WARN", "", "CONSTRAINT p EXPECT (x > 0) ON VIOLATION WARN became EXPECT (x > 0)"),
        ("RETAIN", "LATE REPAIR RETAIN", "LATE default became REPAIR"),
        ("RETAIN", "ON SOURCE CHANGE IGNORE RETAIN", None),
        ("RETAIN INTERVAL 3 DAYS", "RETAIN INTERVAL 4 DAYS", None),
        ("RETAIN INTERVAL 3 DAYS", "", None),
        ("ON VIOLATION WARN", "ON VIOLATION FAIL UPDATE", None),
        ("CONSTRAINT p EXPECT (x > 0) ON VIOLATION WARN", "", None),
    ],
)  # fmt: skip
def test_what_became_of_a_stream(old, new, said):
    found = changes(STREAM, STREAM.replace(old, new))
    assert found
    assert found.rebuild is (said is not None)
    if said is not None:
        assert str(found) == said


def test_an_element_that_ignore_kept_would_fail_under_fail():
    ignoring = STREAM.replace("RETAIN", "ON SOURCE CHANGE IGNORE RETAIN")
    assert not changes(STREAM, ignoring).rebuild
    assert changes(ignoring, STREAM).rebuild


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INTERVAL 3 DAYS", "INTERVAL 72 HOURS"),
        ("CHRONON INTERVAL 1 SECOND", "CHRONON INTERVAL 1000 MILLISECONDS"),
        ("RETAIN", "LATE REJECT RETAIN"),
        ("RETAIN", "ON SOURCE CHANGE FAIL RETAIN"),
    ],
)
def test_another_spelling_is_no_change(old, new):
    assert not changes(STREAM, STREAM.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("5 minutes", "10 minutes", "window of s [Range 5 minutes] became [Range 10 minutes]"),
        ("[Rows 5]", "[Rows 6]", "window of t [Rows 5] became [Rows 6]"),
        ("COUNT(*)", "SUM(b)", "column n COUNT(*) AS n became SUM(b) AS n"),
        ("COUNT(*) AS n", "COUNT(*) AS n, MAX(b) AS m", "column m is new: MAX(b) AS m"),
        ("a, COUNT(*) AS n", "a", "column n is gone: it was COUNT(*) AS n"),
        ("a, COUNT(*) AS n", "COUNT(*) AS n, a", "the order of columns a, n became n, a"),
        ("AS n", "AS N", "result columns a, n became a, N"),
        (" WHERE z.a > -1 AND b = 'It''s'", "", "WHERE z.a > -1 AND b = 'It''s' became (not written)"),
        ("MATERIALIZE RELATION, ISTREAM ", "", "MATERIALIZE RELATION, ISTREAM became default"),
        ("WITH (", "START AT TIMESTAMP '2020-01-01 00:00:00' WITH (", "START AT default"
            " became TIMESTAMP '2020-01-01 00:00:00'"),
        ("'upa'", "'upa', range_bounds = 'exclusive'", "setting range_bounds default became 'exclusive'"),
        ("t [Rows 5]", "u [Rows 5]", "FROM s [Range 5 minutes] AS z, t [Rows 5] became s [Range 5"
            " minutes] AS z, u [Rows 5]"),
    ],
)  # fmt: skip
def test_what_became_of_a_query(old, new, said):
    found = changes(QUERY, QUERY.replace(old, new))
    assert str(found) == said
    assert found.rebuild


def test_settings_that_change_no_result_need_no_rebuild():
    found = changes(QUERY, QUERY.replace("'x'", "'y'").replace("'upa'", "'negative'"))
    assert str(found) == "setting dag 'x' became 'y'; setting strategy 'upa' became 'negative'"
    assert not found.rebuild


def test_a_stream_operator_around_the_query():
    found = changes(QUERY, QUERY.replace("AS SELECT", "AS ISTREAM(SELECT") + ")")
    assert str(found) == "the result the relation itself became ISTREAM"
    nested = QUERY.replace("AS SELECT", "AS ISTREAM(SELECT") + ")"
    assert str(changes(nested, nested.replace("5 minutes", "6 minutes"))).startswith("window of s")


def test_set_operations_and_another_kind():
    union = QUERY + " UNION ALL SELECT 1, 2 FROM u [Now]"
    assert str(changes(union, union.replace("[Now]", "[Range 3]"))) == "window of u [Now] became [Range 3]"
    assert str(changes(QUERY, union)).startswith("the query SELECT a, COUNT(*)")
    assert changes(STREAM, "CREATE RELATION s FROM DELTA 'src/S' STATIC").rebuild


def test_the_diff_is_of_canonical_texts():
    assert changes(QUERY, QUERY.replace("5 minutes", "10 minutes")).diff == (
        "--- deployed\n"
        "+++ files\n"
        "@@ -3,6 +3,6 @@\n"
        "   WITH (dag = 'x', strategy = 'upa')\n"
        " AS\n"
        " SELECT a, COUNT(*) AS n\n"
        "-FROM s [Range 5 minutes] AS z, t [Rows 5]\n"
        "+FROM s [Range 10 minutes] AS z, t [Rows 5]\n"
        " WHERE z.a > -1 AND b = 'It''s'\n"
        " GROUP BY a"
    )


# -- order and cycles --------------------------------------------------------------------------------------------------


def query(name: str, *reads: str) -> str:
    return f"CREATE CONTINUOUS QUERY {name} AS SELECT x FROM {', '.join(reads)};\n"


def of(text: str) -> Catalog:
    return Catalog.of(parse_text(STREAM + ";\n" + text, "f.cql"))


def test_queries_follow_what_they_read():
    catalog = of(query("c", "B__istream") + query("a", "s") + query("b", "a", "S"))
    assert list(catalog.queries) == ["a", "b", "c"]
    assert list(catalog.declared()) == ["s", "a", "b", "c"]
    assert catalog.inputs("c") == ("b__istream",)
    assert catalog.dependencies("c") == ("b",)
    assert (catalog.readers("a"), catalog.readers("s")) == (("b",), ("a", "b"))
    assert (catalog.owner("b__istream"), catalog.owner("s")) == ("b", "s")


def test_a_chain_of_queries_may_be_longer_than_calls_may_nest():
    length = sys.getrecursionlimit()
    source, first = parse_text(STREAM + ";\n" + query("q0", "s"), "f.cql")
    assert isinstance(first, CreateQuery)
    chain = [first]
    for i in range(1, length):
        select = first.select.copy()
        table = select.find(exp.Table)
        assert table is not None
        table.set("this", exp.to_identifier(f"q{i - 1}"))
        chain.append(replace(first, name=f"q{i}", select=select))
    assert list(Catalog.of([source, *reversed(chain)]).queries) == [f"q{i}" for i in range(length)]


def test_cycles_are_shown_with_their_places_each_once():
    with pytest.raises(CqlErrors) as refused:
        of(query("a", "b") + query("b", "c__dstream") + query("c", "A", "s") + query("d", "d", "a"))
    assert [str(e).splitlines()[0] for e in refused.value.errors] == [
        "f.cql:2:1: BindError: queries read each other in a circle: a -> b -> c -> a (-> means reads; a at f.cql:2:1, b"
        " at f.cql:3:1, c at f.cql:4:1). Let one of them read the streams instead.",
        "f.cql:5:1: BindError: query d reads itself. A result cannot rest on itself: read the streams, or a query of"
        " another name.",
    ]


def test_everything_wrong_is_told_at_once(tmp_path):
    (tmp_path / "a.cql").write_text(query("a", "b") + query("b", "a") + "CREATE STREAM x FROM DELTA 'x';")
    (tmp_path / "b.cql").write_text(STREAM + ";" + STREAM + "; DROP STREAM s;")
    catalog, errors = Catalog.load_leniently(tmp_path)
    told = "\n".join(map(str, errors))
    assert list(catalog.queries) == ["b", "a"]
    for what in ("has no TIMESTAMP BY", "s is declared twice", "sweeparea run APP -c 'DROP STREAM ..'", "a -> b -> a"):
        assert what in told
    with pytest.raises(CqlErrors) as raised:
        Catalog.load(tmp_path)
    assert len(raised.value.errors) == len(errors) == 4


# -- environments ------------------------------------------------------------------------------------------------------

TOML = """
default = "dev"
[dev]
data = "../data-dev"
[dev.sources]
S = "/samples/s"
[dev.settings]
"slice.max_rows" = 1000
strict = true
[prod]
data = "/lake/shop"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv(environments.VARIABLE, raising=False)
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "a.cql").write_text("SET strict = false;" + STREAM + ";" + query("q", "s"))
    (shop / environments.FILE).write_text(TOML)
    return shop


def test_an_environment_exchanges_data_sources_and_settings(folder, monkeypatch):
    dev, prod = environments.chosen(folder), environments.chosen(folder, "prod")
    assert (dev.name, dev.data, prod.data) == ("dev", (folder.parent / "data-dev"), Path("/lake/shop"))
    catalog = Catalog.load(folder, dev)
    assert catalog.streams["s"].source.uri == "/samples/s"
    assert catalog.settings == {"strict": "true", "slice.max_rows": "1000"}
    assert Catalog.load(folder, prod).streams["s"].source.uri == "src/S"
    monkeypatch.setenv(environments.VARIABLE, "prod")
    assert environments.chosen(folder).name == "prod"
    assert environments.chosen(folder, "dev").name == "dev"
    assert environments.names(folder) == ["dev", "prod"]
    assert environments.split_name("shop@dev") == ("shop", "dev")
    assert environments.split_name("shop") == ("shop", None)


@pytest.mark.parametrize(
    ("change", "env", "said"),
    [
        (("x", "x"), "prd", "There is no environment prd in .*Did you mean prod[?] There are: dev, prod"),
        (('default = "dev"', ""), None, "has the environments dev, prod, but none is chosen"),
        (('"dev"', '"deb"'), None, "default = 'deb' is no environment of this file. Did you mean dev"),
        (("data =", "dta ="), "dev", r"\[dev\] has no key dta. Did you mean data"),
        (("/lake/shop", "../data-dev"), "dev", "dev and prod have the same data folder"),
        (('"slice.max_rows"', "slice.max_rows"), "dev", 'a name with dots needs quotes: "slice.max_rows"'),
        (('data = "/lake/shop"', "data = 3"), "dev", "data is a folder, so write it in quotes"),
        (("[prod]", "[prod"), "dev", "is no TOML"),
        (("S =", "T ="), "dev", r"\[dev.sources\]: T is no stream or relation. .*s"),
        (("strict", "strct"), "dev", r"\[dev.settings\]: there is no setting strct. Did you mean strict"),
        (("strict = true", "strict = 7"), "dev", r"\[dev.settings\]: setting strict is true or false, not '7'"),
    ],
)
def test_faults_of_environments_name_the_nearest(folder, change, env, said):
    path = folder / environments.FILE
    path.write_text(TOML.replace(*change))
    with pytest.raises(SweepAreaError, match=said) as raised:
        Catalog.load(folder, environments.chosen(folder, env))
    assert raised.value.exit_code == 2


def test_an_environment_that_no_file_declares(folder, monkeypatch):
    (folder / environments.FILE).unlink()
    assert environments.chosen(folder) == environments.Environment()
    monkeypatch.setenv(environments.VARIABLE, "dev")
    with pytest.raises(SweepAreaError, match=r"dev \(SWEEPAREA_ENV\) is asked for, but .* has no sweeparea.toml"):
        environments.chosen(folder)
