"""CQL's defaults: Unbounded, Istream, what is materialized; streams of streams and queries over queries."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind, bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text.errors import RefusedError, TypeError_
from sweeparea.operators.nodes import Aggregate, RelationToStream, Window
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.windows import Range, Unbounded
from tests.cql.schemas import TICKS, TIMES, nodes, plan, tree


def query(head: str, select: str = "SELECT a FROM S [Now]") -> Plan:
    [statement] = parse_text(f"CREATE CONTINUOUS QUERY k {head} AS {select}")
    assert isinstance(statement, CreateQuery)
    return bind(statement, {**TICKS, **TIMES}, {})


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("SELECT a FROM S", "istream"),
        ("SELECT a FROM S [Range Unbounded] WHERE a > 1", "istream"),
        ("SELECT DISTINCT a FROM S", "istream"),
        ("SELECT S.a FROM S, T WHERE S.a = T.a", "istream"),
        ("SELECT a FROM S UNION SELECT a FROM T", "istream"),
        ("SELECT a FROM S [From 5]", "istream"),
        ("SELECT a FROM (SELECT a FROM S) w", "istream"),
        ("WITH w AS (SELECT a FROM S) SELECT a FROM w UNION ALL SELECT a FROM w", "istream"),
        ("SELECT a FROM S [Range 5]", None),
        ("SELECT S.a FROM S, T [Range 5]", None),
        ("SELECT count(*) AS n FROM S", None),
        ("SELECT S.a FROM S, R", None),
        ("SELECT a FROM q", None),
        ("SELECT ISTREAM(a) FROM S [Range 5]", "istream"),
        ("SELECT DSTREAM(a) FROM S [Range 5]", "dstream"),
        ("DSTREAM(SELECT a FROM S)", "dstream"),
    ],
)
def test_outermost_stream(text: str, stream: str | None) -> None:
    found = plan(text)
    assert found.stream == stream
    assert not nodes(found.root, RelationToStream)
    assert found.materialize == ((stream,) if stream else ("relation",))
    added = any("the query is a monotonic relation: Istream is added" in n for n in found.notes)
    assert added == (stream == "istream" and "ISTREAM" not in text)


def test_three_spellings_are_one() -> None:
    texts = (
        "SELECT ISTREAM(a, b AS k) FROM S [Range 5] WHERE a > 1",
        "ISTREAM(SELECT a, b AS k FROM S [Range 5] WHERE a > 1)",
        "(ISTREAM(SELECT a, b AS k FROM S [Range 5] WHERE a > 1))",
    )
    first, *others = (plan(t) for t in texts)
    for other in others:
        assert (other.root, other.stream) == (first.root, first.stream)
    star = plan("Select Istream(*) From S [Range 5]")
    assert [c.label for c in star.root.columns] == ["a", "b", "x"]
    assert (
        plan("SELECT ISTREAM(DISTINCT a) FROM S [Range 5]").root
        == plan("ISTREAM(SELECT DISTINCT a FROM S [Range 5])").root
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT w.a, w.ts AS at FROM (SELECT ISTREAM(a) FROM S [Range 5]) [Range 9] AS w",
        "SELECT w.a, w.ts AS at FROM ISTREAM(SELECT a FROM S [Range 5]) AS w [Range 9]",
        "SELECT w.a, w.ts AS at FROM (ISTREAM(SELECT a FROM S [Range 5])) [Range 9] w",
        "WITH i AS (ISTREAM(SELECT a FROM S [Range 5])) SELECT w.a, w.ts AS at FROM i [Range 9] w",
    ],
)
def test_streams_nest(text: str) -> None:
    found = plan(text)
    assert tree(found.root) == "Project(Window(RelationToStream(Project(Window(StreamScan)))))"
    [stream] = nodes(found.root, RelationToStream)
    assert stream.instant is not None
    assert [w.spec for w in nodes(found.root, Window)] == [Range(6), Range(10)]


def test_a_windowed_monotonic_subquery_gets_istream() -> None:
    found = plan("SELECT a FROM (SELECT a FROM S WHERE a > 1) [Range 9] AS w")
    [stream] = nodes(found.root, RelationToStream)
    assert stream.kind == "istream"
    assert "w is a monotonic relation under a window: Istream is added" in found.notes
    assert "S has no window: [Range Unbounded] is taken" in found.notes


def test_a_windowed_relation_that_shrinks_is_a_type_error() -> None:
    with pytest.raises(TypeError_) as caught:
        plan("SELECT a FROM (SELECT a FROM S [Range 5]) [Range 9]")
    assert all(name in str(caught.value) for name in ("ISTREAM", "DSTREAM", "RSTREAM"))
    with pytest.raises(TypeError_, match="already a stream"):
        plan("ISTREAM(SELECT ISTREAM(a) FROM S)")


def test_a_stream_without_a_window_is_unbounded() -> None:
    found = plan("SELECT a FROM (SELECT DSTREAM(a) FROM S [Range 5]) AS w")
    assert [w.spec for w in nodes(found.root, Window)] == [Range(6), Unbounded()]
    assert found.stream == "istream"


def test_distinct_and_union_are_aggregates_without_calls() -> None:
    [aggregate] = nodes(plan("SELECT a FROM S [Now] UNION SELECT a FROM T [Now]").root, Aggregate)
    assert (aggregate.calls, aggregate.global_) == ((), False)
    assert (
        tree(plan("SELECT a FROM S [Now] UNION ALL SELECT a FROM T [Now] UNION ALL SELECT a FROM R").root).count(
            "UnionAll"
        )
        == 1
    )


def test_materialize() -> None:
    assert query("").materialize == ("relation",)
    assert query("MATERIALIZE ISTREAM, DSTREAM").materialize == ("istream", "dstream")
    assert query("MATERIALIZE RELATION", "SELECT a FROM S").materialize == ("istream", "relation")
    assert query("MATERIALIZE DSTREAM, ISTREAM", "SELECT a FROM S").materialize == ("istream", "dstream")


def test_start_at_settings_and_constraints() -> None:
    found = query(
        "START AT 5 CONSTRAINT good EXPECT (k > 0 AND n IS NOT NULL) ON VIOLATION FAIL UPDATE "
        "CONSTRAINT soft EXPECT (n < 9) ON VIOLATION WARN CONSTRAINT aside EXPECT (k < 9) "
        "WITH (range_bounds = 'Exclusive')",
        "SELECT a AS k, count(*) AS n FROM S [Range 5] GROUP BY a",
    )
    assert found.start == 5
    assert [(c.name, c.on_violation) for c in found.constraints] == [
        ("good", "fail"),
        ("soft", "warn"),
        ("aside", "quarantine"),
    ]
    k, n = found.root.columns
    assert found.constraints[0].condition.sql == f"`{k.id}` > 0 AND `{n.id}` IS NOT NULL"
    assert nodes(found.root, Window)[0].spec == Range(5)
    assert dict(found.settings)["range_bounds"] == "exclusive"
    flights = query("START AT TIMESTAMP '1970-01-01 00:01:00'", "SELECT origin FROM flights [Now]")
    assert flights.start == 60
    assert flights.time == TimeDomain(TimeKind.TIMESTAMP, 1_000_000)


def test_streams_share_one_chronon() -> None:
    with pytest.raises(TypeError_, match="S and flights count time differently: BIGINT ticks and TIMESTAMP"):
        plan("SELECT S.a FROM S [Now], flights [Now]")
    inputs = {
        **TIMES,
        "fine": InputSchema("fine", SchemaKind.STREAM, (("k", "int"),), TimeDomain(TimeKind.TIMESTAMP, 1)),
    }
    with pytest.raises(TypeError_, match="chronon 1 second and TIMESTAMP with chronon 1 microsecond"):
        bind_select("SELECT k FROM flights [Now], fine [Now]", inputs)
    with pytest.raises(TypeError_, match="R and flights count time differently"):
        plan("SELECT R.a FROM R, flights [Now]")
    assert plan("SELECT origin FROM Fixed, flights [Now]").time.kind == TimeKind.TIMESTAMP


def test_static_relations_alone_are_refused() -> None:
    with pytest.raises(RefusedError, match="nothing here ever changes: Fixed is static"):
        plan("SELECT e FROM Fixed")
    assert plan("SELECT e FROM Fixed, R WHERE R.a = Fixed.a").inputs == ("Fixed", "R")
