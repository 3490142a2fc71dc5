"""What explain tells: the tree with update patterns, what is read and kept, the defaults."""

from __future__ import annotations

from sweeparea.cql.explain import explain
from sweeparea.cql.patterns import edge_of, reach_of
from sweeparea.operators.ticks import INF
from tests.cql.schemas import plan


def test_explain_of_a_grouped_query() -> None:
    text = explain(
        plan(
            "SELECT origin, AVG(dep_delay) AS d, MAX(dep_delay) AS m "
            "FROM flights [RANGE INTERVAL 6 HOURS SLIDE INTERVAL 1 HOUR] GROUP BY origin HAVING COUNT(*) >= 5",
            name="delays",
        )
    )
    assert (
        text
        == """\
Query delays: a relation

Result
  columns   origin string, d double, m double + valid_from, valid_to
  time      TIMESTAMP with chronon 1 second, START AT 1970-01-01T00:00:00Z
  tables    delays

Plan (each line: operator, columns, then the update pattern of its output)
  Project origin, AVG(dep_delay) AS d, MAX(dep_delay) AS m  [WK, expiry unknown]
  └─ Select COUNT(*) >= 5  [WK, expiry unknown]
     └─ Aggregate AVG(dep_delay), MAX(dep_delay), COUNT(*) BY origin  [WK, expiry unknown]
        └─ Window [Range 6 hours Exclusive Slide 1 hour]  [WKS, expiry known]
           └─ Stream flights (origin, dep_delay)  [monotonic, expiry known]

Read from each input, for a slice (h0, h1]
  flights: its elements in (h0, h1]; an element matters for 7 hours, what it still contributes is in the state

State kept
  op 2 Aggregate: counts and sums, one row a (group, end); the undominated elements of each group (MIN, MAX)
  materialize (relation): the rows that are valid after h1, and their known ends

Defaults applied
  none

Evaluation
  incremental everywhere
"""
    )


def test_explain_tells_defaults_and_tables() -> None:
    text = explain(plan("SELECT a, a FROM S", name="k"))
    assert "Query k: a stream (istream)" in text
    assert "S has no window: [Range Unbounded] is taken" in text
    assert "the query is a monotonic relation: Istream is added" in text
    assert "output column a is repeated: it is named a_2" in text
    assert "columns   a int, a_2 int + ts" in text


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
    ):
        assert f"Window {window}" in explain(plan(f"SELECT origin FROM flights {window}"))
    assert "[From 2013-01-01T00:00:00Z]" in explain(plan("SELECT origin FROM flights [From TIMESTAMP '2013-01-01']"))
