"""How engines are compared: texts of queries, digests of answers, whose time counts, files of results, the page."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow.parquet as pq
import pytest

from benchmarks import bench, compare, page, plot, race, record, sliding
from benchmarks.engines import digest
from benchmarks.engines.duckdb import Engine
from benchmarks.engines.process import NAMES, EngineFault
from benchmarks.engines.task import Query, Ran, Source, Table
from benchmarks.nexmark import suite as nexmark
from benchmarks.suite import Suite
from queries.nexmark import answers, loader
from sweeparea.cql.declarations.catalog import Catalog

QUERIES = [f"q{number}" for number in (*range(6), *range(7, 12), *range(13, 23))]
FOLDER = Path(nexmark.__file__).parent / "queries"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """The known events of ``queries/nexmark`` in place of drawn ones."""
    folder = tmp_path_factory.mktemp("known")
    loader.load(folder)
    tables = []
    for name in loader.STREAMS:
        columns = nexmark.columns(name)
        tables.append(Table(name, str(folder / "source" / name), columns, "date_time"))
    return Suite("nexmark", "known", tables, 0, loader.TICK, FOLDER)


def test_every_query_is_there_for_every_engine_or_says_why_not(small: Suite):
    assert sorted(small.queries()) == sorted(QUERIES)
    for name in QUERIES:
        said = {engine: small.query(name, engine) for engine in NAMES}
        assert all(isinstance(said[engine], Query) for engine in ("sweeparea", "flink", "duckdb", "spark"))
        reason = said["streaming"]
        assert isinstance(reason, Query) or not reason.startswith("there is no")


def test_our_queries_give_the_columns_that_are_compared(small: Suite, tmp_path: Path):
    from benchmarks.engines.sweeparea import declared

    side = Table("side_input", "source/side_input", [("key", "integer"), ("value", "text")], None)
    texts = [declared(table) for table in (*small.tables, side)]
    for name in QUERIES:
        query = small.query(name, "sweeparea")
        assert isinstance(query, Query)
        texts.append(f"CREATE CONTINUOUS QUERY {name} AS {query.text};")
    (tmp_path / "all.cql").write_text("\n".join(texts))
    assert set(Catalog.load(tmp_path).queries) == set(QUERIES)


@pytest.mark.parametrize("query", ["q3", "q4", "q5", "q7", "q8", "q17", "q18"])
def test_the_reference_gives_the_known_answers(small: Suite, tmp_path: Path, query: str):
    # what the loader wrote, as the engine wants it: q3's states are in small letters there
    engine = Engine(Source(small.tables, small.begin, small.end, str(tmp_path)))
    asked = small.query(query, "duckdb")
    assert isinstance(asked, Query)
    text = asked.text
    for state in ("OR", "ID", "CA"):
        text = text.replace(f"'{state}'", f"'{state.lower()}'")
    engine.run(Query(query, text, asked.answer))
    table = pq.read_table(tmp_path / f"{query}.parquet")
    if query == "q5":
        table = table.drop_columns(["starttime"])
    if query == "q7":  # the known answer has other columns
        table = table.select(["auction", "price", "bidder", "date_time"])
    assert answers.final(query, table) == answers.expected()[query]


def test_a_suite_may_say_how_our_answer_is_read(tmp_path: Path):
    suite = Suite("sliding sum", "", [], 0, 0, Path(sliding.__file__).parent / "queries")
    query = suite.query("sum", "sweeparea")
    assert isinstance(query, Query)
    assert "{name}" in query.text
    assert "ASOF" in query.reading
    assert isinstance(suite.query("sum", "streaming"), str)


def test_digest_is_that_of_the_texts_of_rows():
    instant = datetime(2024, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)
    columns = [("a", "integer"), ("t", "text"), ("i", "instant"), ("d", "decimal"), ("f", "fraction")]
    at = f"TIMESTAMP '{instant:%Y-%m-%d %H:%M:%S.%f}'"
    row = f"SELECT 7 AS a, {{}} AS t, {at} AS i, 1.5::DECIMAL(9, 1) AS d, 2.0006 AS f"
    texts = ["7|x|2024-01-02 03:04:05.006|1.500|2000", "7|NULL|2024-01-02 03:04:05.006|1.500|2000"]
    wanted = sum(
        int(hashlib.md5(text.encode()).hexdigest()[:11].translate(str.maketrans("abcdef", "012345"))) for text in texts
    )
    bag = f"{row.format(repr('x'))} UNION ALL {row.format('CAST(NULL AS VARCHAR)')}"
    with duckdb.connect() as database:
        found = database.execute(f"SELECT {digest.duckdb(columns)} FROM ({bag})").fetchall()
    assert found == [(2, wanted)]
    assert all(column in digest.flink(columns) for column in ("`a`", "`t`", "`i`", "`d`", "`f`"))


class Fake:
    """An engine whose answer and seconds are given."""

    def __init__(self, answer: int | str, seconds: float):
        self._answer, self._seconds, self.runs = answer, seconds, 0

    def answer(self, query: Query) -> dict[str, Any]:
        if isinstance(self._answer, str):
            raise EngineFault(self._answer)
        return {"rows": 3, "digest": self._answer}

    def run(self, query: Query) -> dict[str, Any]:
        self.runs += 1
        return {**vars(Ran(self._seconds + self.runs, 3, {"quality": 0.1})), "cpu": 1.0}


class Fakes(dict[str, Fake]):
    @property
    def names(self) -> list[str]:
        return list(self)


def raced(small: Suite, **engines: Fake) -> dict[str, Any]:
    return race.race(cast(Any, Fakes(engines)), small, "q4", 3)


def test_no_time_counts_whose_answer_differs(small: Suite):
    engines = {"sweeparea": Fake(5, 1.0), "flink": Fake(6, 0.1), "duckdb": Fake(5, 0.5), "spark": Fake("broken", 0)}
    case = raced(small, **engines, streaming=Fake(5, 1.0))
    found = case["engines"]
    assert case["reference"] == "duckdb"
    assert found["sweeparea"]["seconds"] == [2.0, 3.0, 4.0]
    assert found["sweeparea"]["median"] == 3.0
    assert found["flink"]["answer"] == "differs"
    assert "median" not in found["flink"]
    assert engines["flink"].runs == 0
    assert found["spark"] == {"fault": "broken"}
    assert found["streaming"] == {"cannot": "an aggregate of aggregates that still change"}


def kept(name: str, small: Suite, ours: float) -> record.Record:
    found = record.Record(
        name, machine={"cores": 2, "load at the beginning": [9.0, 1, 1], "load at the end": [1, 1, 1]}
    )
    found.startup = {"sweeparea": 12.0, "flink": 6.0}
    found.cases.append(
        raced(small, sweeparea=Fake(5, ours), flink=Fake(5, 4.0), duckdb=Fake(6, 1.0), streaming=Fake(5, 1))
    )
    found.cases[0]["engines"]["duckdb"].update(answer="equal", seconds=[1.0], cpu=[1.0], median=1.0)
    found.cases[0]["engines"]["flink"].update(answer="equal", seconds=[6.0], cpu=[8.0], median=6.0)
    found.cases[0]["engines"]["sweeparea"].update(
        answer="equal", seconds=[ours], cpu=[ours], median=ours, phases={"quality": [0.1]}
    )
    return found


def test_results_are_compared(small: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    before, after = kept("before", small, 4.0), kept("after", small, 2.0)
    before.write()
    after.write()
    assert json.loads((tmp_path / "before.json").read_text())["commit"]
    told = "\n".join(compare.lines(record.read("before"), record.read(tmp_path / "after.json")))
    assert "0.50x" in told  # our seconds
    assert "2.00x" in told  # Flink's by ours
    assert "streaming" in told


def test_page(small: Suite, tmp_path: Path):
    text = page.page([kept("quiet", small, 3.0)], tmp_path).read_text()
    assert "Other work ran beside it" in text
    assert "| q4 | 3 | 3.00 (3.0) | 0.10 |" in text
    assert "| 6.00 (8.0) | 2.00 |" in text
    assert "- q4: Structured Streaming: an aggregate" in text
    (drawn,) = tmp_path.glob("*.svg")
    assert f"({drawn.name})" in text


def test_what_make_bench_measures_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWEEPAREA_DATA", str(tmp_path))
    for full in (False, True):
        for heat in bench.heats(full, 500, 500, 2):
            assert set(heat.queries) <= set(heat.suite.queries())
            assert set(heat.engines) <= set(NAMES)
            assert all(isinstance(heat.suite.query(name, "sweeparea"), Query) for name in heat.queries)
    assert len(bench.SIX) == 6
    here = Path(bench.__file__).parent
    assert all((here / f"{name}.py").exists() or (here / name / "__main__.py").exists() for name in bench.OTHERS)
    suite = sliding.suite(500)
    query = suite.query("sum", "duckdb")
    assert isinstance(query, Query)
    source = Source(suite.tables, suite.begin, suite.end, str(tmp_path))
    assert Engine(source).answer(query).rows == 500


def test_figures_of_strategies_are_texts_of_the_language(tmp_path: Path):
    from benchmarks import figures

    program, count = figures.declared(), 0
    for figure in figures.FIGURES:
        for place in figure.places:
            program.append(f"CREATE CONTINUOUS QUERY q{count} AS {figure.query(place)};")
            assert figures.inputs(figure.query(place))[0]
            count += 1
    (tmp_path / "all.cql").write_text("\n".join(program))
    assert len(Catalog.load(tmp_path).queries) == count
    assert figures.drawn("link1", 0, 100, 2).equals(figures.drawn("link1", 0, 100, 2))
    assert figures.drawn("sales", 0, 100, 2).num_rows == 200


def test_every_figure_asked_for_is_drawn():
    from benchmarks import figures

    titles = [title for f in figures.FIGURES for title in (f.title, *(f.space or ())[:1])]
    numbers = {title.partition(":")[0] for title in titles}
    assert numbers >= {f"Golab {n}" for n in range(9, 17)} | {f"Hammad {n}" for n in range(10, 17)}


def test_plots_are_drawn_over_a_logarithmic_axis():
    drawn = plot.lines("Time", "seconds", "window", {"upa": [(1, 0.5), (10, 5)], "direct": [(1, 0.6)]})
    assert drawn.count("<circle") == 3
    assert "0.1" in drawn
    assert plot.bars("Time", "seconds", {"q<1": {"ours": 1.0}}).count("q&lt;1") == 2


def test_figures_stand_in_the_page_with_what_their_papers_found(tmp_path: Path):
    found = record.Record("figures", machine={"cores": 2}, commit="abc")
    seconds = {
        "upa": [("Q1", 1.5), ("Q5", 1.0)],
        "negative": [("Q1", 1.0), ("Q5", 3.0)],
        "direct": [("Q1", 2), ("Q5", 2)],
    }
    across = {"upa": [(5, 100.0)], "negative": [(5, 400.0)], "direct": [(5, 100.0)]}
    found.lines = [
        {"title": "A 1", "across": "query", "unit": "CPU seconds", "series": seconds, "paper": "The paper says so."},
        {"title": "A 2", "across": "rate", "unit": page.SPACE, "series": across},
    ]
    text = page.page([found], tmp_path).read_text()
    assert "**A 1**. The paper says so." in text
    assert "1.50 (Q1), 0.50 (Q5)" in text
    assert "Of 2 measured points `upa` is beyond 1.2 times the better one at 1: A 1 at Q1: 1.50." in text
    first, second = (tmp_path / f"benchmarks-figures-figure-{n}.svg" for n in (0, 1))
    assert "CPU seconds" in first.read_text()
    assert "elements a tick" in second.read_text()


@pytest.mark.slow
@pytest.mark.spark
def test_all_answers_are_the_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from benchmarks.engines import sweeparea

    monkeypatch.setenv("SWEEPAREA_DATA", str(tmp_path / "data"))
    suite = nexmark.suite(3_000, slices=3)
    reference = Engine(Source(suite.tables, suite.begin, suite.end, str(tmp_path)))
    monkeypatch.setenv("SWEEPAREA_SPARK_MASTER", "local[2]")
    ours = sweeparea.Engine(Source(suite.tables, suite.begin, suite.end, str(tmp_path)))
    for name in QUERIES:
        mine, theirs = suite.query(name, "sweeparea"), suite.query(name, "duckdb")
        assert isinstance(mine, Query)
        assert isinstance(theirs, Query)
        assert (name, ours.answer(mine)) == (name, reference.answer(theirs))
