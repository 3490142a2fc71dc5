"""What explain tells: the tree with update patterns, what is read and kept, the defaults; the same plan as a picture.

``SWEEPAREA_GOLDEN=write`` writes the golden files anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sweeparea.cql.explain import FORMS, explain
from sweeparea.operators import windows as w
from sweeparea.operators.nodes import (
    Aggregate,
    AggregateCall,
    Analytic,
    Difference,
    Enrich,
    Generate,
    Intersect,
    Join,
    OneRow,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    TopK,
    UnionAll,
    Window,
    WindowFunction,
)
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.patterns import edge_of, reach_of
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import StreamKind
from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.sweeps.join import JoinKind
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from tests.cql.schemas import plan

GOLDEN = Path(__file__).parent / "golden" / "explain"
QUERIES = {
    "grouped": "SELECT origin, AVG(dep_delay) AS d, MAX(dep_delay) AS m "
    "FROM flights [RANGE INTERVAL 6 HOURS SLIDE INTERVAL 1 HOUR] GROUP BY origin HAVING COUNT(*) >= 5",
    "emitted": "SELECT a, a FROM S WHERE a > 1",
    "joined": "SELECT T.c, R.d, e FROM S [Range 5], T [Rows 9], R, Fixed WHERE S.a = 1 AND S.a = T.a AND T.a = R.a "
    "AND R.a = Fixed.a",
    "nested": "SELECT a, COUNT(*) AS n FROM (SELECT ISTREAM(a) FROM S WHERE x > 0) [Range 9] AS w GROUP BY a",
    "shared": "WITH g AS (SELECT a, COUNT(*) AS n FROM S [Range 5] GROUP BY a) "
    "SELECT p.a, q.n FROM g AS p, g AS q WHERE p.n = q.a",
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("form", FORMS)
def test_explain_is_as_in_the_golden_file(name: str, form: str) -> None:
    file = GOLDEN / f"{name}.{({'tree': 'txt', 'mermaid': 'mmd'}).get(form, form)}"
    shown = explain(plan(QUERIES[name], "all", name=name), ("Fixed",), form)
    if os.environ.get("SWEEPAREA_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUERIES)
def test_the_picture_is_whole_and_fetches_nothing(name: str) -> None:
    picture = explain(plan(QUERIES[name], "all"), form="svg")
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(href|src|url|import|script)", picture)
    boxes = [(float(e.attrib["x"]), float(e.attrib["y"])) for e in root.iter("{http://www.w3.org/2000/svg}rect")]
    for i, (x, y) in enumerate(boxes):
        assert all(abs(x - a) >= 260 or abs(y - b) >= 44 for a, b in boxes[:i]), "boxes overlap"


def test_texts_of_a_query_cannot_break_the_pictures() -> None:
    found = plan("SELECT '</svg>\"`<b>#' AS x FROM S WHERE b = '\"]\n-->'")
    ElementTree.fromstring(explain(found, form="svg"))
    assert all(line.count('"') % 2 == 0 for line in explain(found, form="mermaid").splitlines())


def test_explain_tells_defaults_and_tables() -> None:
    text = explain(plan("SELECT a, a FROM S", name="k"))
    assert "Query k: a stream (istream)" in text
    assert "S has no window: [Range Unbounded] is taken" in text
    assert "the query is a monotonic relation: Istream is added" in text
    assert "output column a is repeated: it is named a_2" in text
    assert "columns   a int, a_2 int + ts" in text


def test_explain_tells_how_ends_travel_under_a_strategy() -> None:
    def shown(text: str, strategy: str) -> str:
        return explain(plan(text, defaults={"strategy": strategy}))

    text = "SELECT a FROM S [Range 5] EXCEPT ALL SELECT a FROM T [Rows 2]"
    negative, direct = shown(text, "negative"), shown(text, "direct")
    assert "Window [Range 6 Exclusive]  [WKS, expiry by negative tuples]" in negative
    assert re.search(r"expire_window\d: the rows of window\d until they begin and until they end", negative)
    assert "Window [Range 6 Exclusive]  [WKS, expiry known]" in direct
    assert "Window [Rows 2]  [WKS, expiry unknown: negative tuples, its ends cannot travel]" in direct
    assert "expire_" not in direct
    both = shown("SELECT a FROM S [Range 5] EXCEPT ALL SELECT a FROM T [Range 2]", "direct")
    assert "[STR, expiry unknown: expected ends travel, earlier ones by negative tuples]" in both


def test_update_patterns_follow_golab() -> None:
    def pattern(text: str, *static: str) -> str:
        return str(edge_of(plan(text).root, static))

    assert pattern("SELECT a FROM S") == "monotonic, expiry known"
    assert pattern("SELECT a FROM S [Range 5] WHERE a > 1") == "WKS, expiry known"
    assert pattern("SELECT S.a FROM S [Range 5], T [Range 9]") == "WK, expiry known"
    assert pattern("SELECT DISTINCT a FROM S [Range 5]") == "WK, expiry known"
    assert pattern("SELECT a FROM S [Range 5] UNION ALL SELECT a FROM T [Range 5]") == "WKS, expiry known"
    assert pattern("SELECT a FROM S [Range 5] UNION ALL SELECT a FROM T [Range 6]") == "WK, expiry known"
    assert pattern("SELECT count(*) AS n FROM S [Range 5]") == "WK, expiry unknown"
    assert pattern("SELECT S.a FROM S [Range 5], R") == "STR, expiry unknown"
    assert pattern("SELECT S.a FROM S [Range 5], Fixed", "Fixed") == "WK, expiry known"


A, B, C = (Column(i, i, "int") for i in ("c1", "c2", "c3"))
S, T = StreamScan("S", ((A, "a"),)), StreamScan("T", ((B, "b"),))
FIVE, ALL = Window(S, w.Range(5)), Window(S, w.Unbounded())
OTHER, EVER = Window(T, w.Range(5)), Window(T, w.Unbounded())
R = RelationScan("R", ((B, "b"),))
KEY, TRUE = Expr("`c1`", "a", frozenset({"c1"})), Expr("TRUE")
ROWS = Window(S, w.Rows(3))
NESTED = RelationToStream(Window(S, w.Range(7)), StreamKind.ISTREAM)


@pytest.mark.parametrize(
    ("node", "edge"),
    [
        (OneRow(), "monotonic, expiry known"),
        (Window(S, w.Landmark(1, 5)), "monotonic, expiry known"),
        (Window(S, w.Hopping(4, 2)), "WKS, expiry known"),
        (ROWS, "WKS, expiry unknown"),
        (Window(S, w.Rows(3), (KEY,)), "WK, expiry unknown"),
        (Window(S, w.Session(3)), "WK, expiry unknown"),
        (Window(S, w.When(), condition=TRUE), "WK, expiry unknown"),
        (Window(S, w.UserWindow("f", "WK")), "WK, expiry known"),
        (Window(Enrich(S, R), w.Range(5)), "WKS, expiry known"),
        (Select(ROWS, TRUE), "WKS, expiry unknown"),
        (Project(FIVE, ((C, KEY),)), "WKS, expiry known"),
        (Generate(FIVE, TRUE, (C,)), "WKS, expiry known"),
        (UnionAll((FIVE, ALL), (C,)), "WK, expiry known"),
        (UnionAll((FIVE, ROWS), (C,)), "WK, expiry unknown"),
        (UnionAll((FIVE, OTHER), (C,)), "WKS, expiry known"),
        (UnionAll((Select(FIVE, TRUE), UnionAll((OTHER, FIVE), (C,))), (C,)), "WKS, expiry known"),
        (UnionAll((Window(S, w.Range(5)), Window(T, w.Fixed(5))), (C,)), "WK, expiry known"),
        (UnionAll((Window(S, w.Fixed(5)), Window(T, w.Fixed(5, 2))), (C,)), "WK, expiry known"),
        (UnionAll((ROWS, Window(T, w.Rows(3))), (C,)), "WK, expiry unknown"),
        (UnionAll((Window(NESTED, w.Range(5)), Window(NESTED, w.Range(9))), (C,)), "WK, expiry known"),
        (Join(ALL, EVER), "monotonic, expiry known"),
        (Join(FIVE, OTHER, kind=JoinKind.SEMI), "WK, expiry known"),
        (Join(FIVE, R, kind=JoinKind.SEMI), "STR, expiry unknown"),
        (Join(ALL, EVER, kind=JoinKind.LEFT), "STR, expiry unknown"),
        (Join(FIVE, OTHER, kind=JoinKind.FULL), "STR, expiry unknown"),
        (Join(FIVE, OTHER, kind=JoinKind.ANTI), "STR, expiry unknown"),
        (Difference(FIVE, OTHER, (C,)), "STR, expiry unknown"),
        (Intersect(FIVE, OTHER, (C,)), "WK, expiry known"),
        (Intersect(ALL, EVER, (C,), all=False), "monotonic, expiry known"),
        (Aggregate(ROWS, ((C, KEY),), ()), "WK, expiry unknown"),
        (Aggregate(R, ((C, KEY),), ((A, AggregateCall("COUNT")),)), "WK, expiry unknown"),
        (TopK(FIVE, (SortKey(KEY),), 1), "STR, expiry unknown"),
        (Analytic(ALL, ((C, WindowFunction("COUNT")),)), "STR, expiry unknown"),
        (RelationToStream(Difference(FIVE, OTHER, (C,)), StreamKind.DSTREAM), "monotonic, expiry known"),
    ],
    ids=str,
)
def test_every_operator_has_an_update_pattern(node: Node, edge: str) -> None:
    assert str(edge_of(node)) == edge
    for form in FORMS:
        assert explain(Plan("q", node, None, TimeDomain()), form=form)


@pytest.mark.parametrize(
    ("node", "grows"),
    [
        (ALL, True),
        (FIVE, False),
        (Window(S, w.Landmark(1, 5)), True),
        (Window(Enrich(S, R), w.Unbounded()), True),
        (Select(Project(ALL, ((C, KEY),)), TRUE), True),
        (UnionAll((ALL, EVER), (C,)), True),
        (UnionAll((ALL, OTHER), (C,)), False),
        (Aggregate(ALL, ((C, KEY),), ()), True),
        (Aggregate(ALL, ((C, KEY),), ((B, AggregateCall("COUNT")),)), False),
        (Aggregate(ALL, (), ((B, AggregateCall("MAX", KEY)),), global_=True), False),
        (Intersect(ALL, EVER, (C,)), True),
        (Intersect(ALL, EVER, (C,), all=False), True),
        (Difference(ALL, EVER, (C,)), False),
        (Join(ALL, EVER), True),
        (Join(ALL, EVER, TRUE, JoinKind.SEMI), True),
        (Join(ALL, EVER, TRUE, JoinKind.LEFT), False),
        (Join(ALL, EVER, TRUE, JoinKind.FULL), False),
        (Join(ALL, EVER, TRUE, JoinKind.ANTI), False),
        (Join(ALL, R, TRUE), False),
        (TopK(ALL, (SortKey(KEY),), 1), False),
        (Analytic(ALL, ((C, WindowFunction("COUNT")),)), False),
        (R, False),
    ],
    ids=str,
)
def test_what_is_a_monotonic_relation(node: Node, grows: bool) -> None:
    assert node.monotonic is grows


def test_how_long_elements_matter() -> None:
    assert reach_of(plan("SELECT S.a FROM S [Range 5], T [Range 9 Slide 2], S [Range 7] s2").root) == {"S": 8, "T": 11}
    assert reach_of(plan("SELECT a FROM (SELECT ISTREAM(a) FROM S [Range 5]) [Range 9]").root) == {"S": 16}
    assert reach_of(plan("SELECT S.a FROM S, R").root) == {"S": INF, "R": INF}
    joined = explain(plan("SELECT S.a FROM S [Range 5], R WHERE S.a = R.a"))
    assert (
        "S: its elements in (h0, h1]; an element matters for 6 ticks, those from h0 - 6 ticks on are read again"
        in joined
    )
    assert "R: its changes in (h0, h1]; its contents at h0 are read again" in joined


def test_windows_are_told_with_units() -> None:
    for window in (
        "[Now]",
        "[Range 5 seconds Inclusive]",
        "[Tumbling 1 day]",
        "[Hopping 2 hours Slide 30 minutes]",
        "[Fixed 1 hour]",
        "[Session 5 minutes Partition By dest]",
        "[Partition By origin, dest Rows 5]",
        "[Rows 5 Slide 2]",
        "[Tumbling When (dep_delay > 60) Partition By dest]",
    ):
        assert f"Window {window}" in explain(plan(f"SELECT origin FROM flights {window}"))
    assert "[From 2013-01-01T00:00:00Z]" in explain(plan("SELECT origin FROM flights [From TIMESTAMP '2013-01-01']"))
