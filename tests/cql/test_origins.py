"""Lineage by column: what is said of a plan's columns, and that nothing else makes a difference to them."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from sweeparea.cql.rewrites import optimize
from sweeparea.operators.nodes import Scan
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.origins import PlanOrigins, origins
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.time.domain import TimeDomain
from tests.cql.generate_plans import LAST, Plans, inputs
from tests.cql.plan_oracle import Oracle, Relation, Stream
from tests.cql.schemas import plan

CASES = int(os.environ.get("SWEEPAREA_ORIGINS_CASES", "25"))
TICKS = (0, 3, LAST)
CONSTANTS = {"int": 1, "string": "y", "double": 1.0}


def told(text: str) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """By label and by column read (``S.a``; ``S`` alone: its instants) in which ways, and the same of the rows."""
    bound = plan(text)
    found = origins(bound.root)

    def words(given) -> dict[str, str]:
        items = {f"{name}.{column}" if column else name: how for (name, column), how in given.items()}
        return {key: " ".join(sorted(items[key])) for key in sorted(items)}

    return {c.label: words(found.columns[c.id]) for c in bound.root.columns}, words(found.rows)


SAID = [
    (
        "SELECT a, a + 1 AS b, 7 AS c, upper(b) || CAST(x AS STRING) AS d FROM S [RANGE 5] WHERE x > 1",
        {
            "a": {"S.a": "IDENTITY"},
            "b": {"S.a": "TRANSFORMATION"},
            "c": {},
            "d": {"S.b": "TRANSFORMATION", "S.x": "TRANSFORMATION"},
        },
        {"S.x": "FILTER"},
    ),
    (
        "SELECT * FROM S [RANGE 5]",
        {"a": {"S.a": "IDENTITY"}, "b": {"S.b": "IDENTITY"}, "x": {"S.x": "IDENTITY"}},
        {},
    ),
    (
        "SELECT b AS k, SUM(x * 2) + 1 AS t, COUNT(*) AS n, MAX(a) FILTER (WHERE x > 0) AS m"
        " FROM S [RANGE 5] GROUP BY b",
        {
            "k": {"S.b": "IDENTITY"},
            "t": {"S.x": "AGGREGATION"},
            "n": {},
            "m": {"S.a": "AGGREGATION", "S.x": "FILTER"},
        },
        {"S.b": "GROUP_BY"},
    ),
    (
        "SELECT s.a, r.d FROM S [RANGE 5] AS s JOIN R AS r ON s.a = r.a AND s.x > 1",
        {"a": {"S.a": "IDENTITY"}, "d": {"R.d": "IDENTITY"}},
        {"R.a": "JOIN", "S.a": "JOIN", "S.x": "FILTER"},
    ),
    (
        "SELECT s.a, r.d FROM S [RANGE 5] AS s LEFT JOIN R AS r ON s.a = r.a",
        {"a": {"S.a": "IDENTITY"}, "d": {"R.d": "IDENTITY"}},
        {"R.a": "JOIN", "S.a": "JOIN"},
    ),
    (
        "SELECT b AS v FROM S [RANGE 5] UNION ALL SELECT d || '' FROM R",
        {"v": {"R.d": "TRANSFORMATION", "S.b": "IDENTITY"}},
        {},
    ),
    (
        "SELECT a, b FROM S [RANGE 5] EXCEPT SELECT a, d FROM R",
        {"a": {"S.a": "IDENTITY"}, "b": {"S.b": "IDENTITY"}},
        {"R.a": "FILTER", "R.d": "FILTER", "S.a": "FILTER", "S.b": "FILTER"},
    ),
    (
        "SELECT k + 1 AS k, m FROM (SELECT a AS k, MAX(x) AS m FROM S [RANGE 5] GROUP BY a) WHERE m > 1",
        {"k": {"S.a": "TRANSFORMATION"}, "m": {"S.x": "AGGREGATION"}},
        {"S.a": "GROUP_BY", "S.x": "FILTER"},
    ),
    (
        "WITH w AS (SELECT a, x FROM S [RANGE 5]) SELECT d FROM R WHERE a IN (SELECT a FROM w WHERE x > 1)",
        {"d": {"R.d": "IDENTITY"}},
        {"R.a": "JOIN", "S.a": "JOIN", "S.x": "FILTER"},
    ),
    (
        "SELECT d, (SELECT MAX(n) FROM q) AS top FROM R",
        {"d": {"R.d": "IDENTITY"}, "top": {"q.n": "AGGREGATION"}},
        {},
    ),
    (
        "SELECT a, RANK() OVER (PARTITION BY b ORDER BY x) AS r, SUM(x) OVER (PARTITION BY b) AS t FROM S [RANGE 5]",
        {
            "a": {"S.a": "IDENTITY"},
            "r": {"S.b": "WINDOW", "S.x": "WINDOW"},
            "t": {"S.b": "WINDOW", "S.x": "AGGREGATION"},
        },
        {},
    ),
    (
        "SELECT WINDOW_START(S) AS since, COUNT(*) AS n FROM S [TUMBLING 3] GROUP BY WINDOW_START(S)",
        {"since": {"S": "TRANSFORMATION"}, "n": {}},
        {"S": "GROUP_BY"},
    ),
    ("SELECT ts AS at, a FROM S", {"at": {"S": "TRANSFORMATION"}, "a": {"S.a": "IDENTITY"}}, {}),
]


@pytest.mark.parametrize(("text", "columns", "rows"), SAID, ids=[text for text, *_ in SAID])
def test_what_goes_into_each_column(text, columns, rows):
    made, decided = told(text)
    assert made == columns
    assert decided == rows


def constant(given: dict, name: str, column: str, kind: str) -> dict:
    """The inputs with one value throughout a column."""
    table, value = given[name], CONSTANTS[kind]
    at = table.columns.index(column)

    def changed(row: tuple) -> tuple:
        return (*row[:at], value, *row[at + 1 :])

    if isinstance(table, Stream):
        return {**given, name: Stream(table.columns, [(t, changed(r)) for t, r in table.rows])}
    return {**given, name: Relation(table.columns, [(t, n, changed(r)) for t, n, r in table.changes])}


def contents(root: Node, at: list[int], given: dict) -> list[Counter]:
    oracle = Oracle(given)
    return [Counter(tuple(row[i] for i in at) for row in oracle.contents(root, tick)) for tick in TICKS]


def read_of(root: Node) -> dict[tuple[str, str], str]:
    """The columns that a plan's scans read, with their types."""
    scans = {id(n): n for n in root.walk() if isinstance(n, Scan)}
    return {(s.name, name): str(column.type) for s in scans.values() for column, name in s.source}


def test_no_other_column_makes_a_difference():
    """A column that goes neither into a value nor into the choice of rows may have any values; and what is named is
    read."""
    tried = 0
    for seed in range(CASES):
        r = Random(f"origins {seed}")
        root = Plans(r).relation(r.choice((2, 3)))
        if seed % 2:  # as it runs
            made = Plan("q", root, None, TimeDomain(), materialize=(ResultKind.RELATION,))
            root = optimize(made, {}).root
        found: PlanOrigins = origins(root)
        read, given = read_of(root), inputs(r)
        named = {key for each in (found.rows, *found.columns.values()) for key in each if key[1] is not None}
        assert named <= set(read), f"seed {seed}"
        for key in r.sample(sorted(read), min(3, len(read))):
            kept = [i for i, c in enumerate(root.columns) if key not in found.columns[c.id]]
            if key in found.rows or not kept:
                continue
            tried += 1
            other = constant(given, *key, read[key])
            assert contents(root, kept, other) == contents(root, kept, given), f"seed {seed}: {key}"
    assert tried > CASES // 5


def test_a_column_that_counts_is_found_by_changing_it():
    """The other way round on one plan: what is named does make a difference."""
    root = plan("SELECT a, SUM(x) AS t FROM S [RANGE 5] GROUP BY a").root
    found = origins(root)
    given = {"S": Stream(("a", "b", "x"), [(1, (1, "x", 0.5)), (2, (2, "x", -2.25))])}
    (total,) = (i for i, c in enumerate(root.columns) if c.label == "t")
    assert ("S", "x") in found.columns[root.columns[total].id]
    assert contents(root, [total], given) != contents(root, [total], constant(given, "S", "x", "double"))
