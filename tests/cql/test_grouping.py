"""GROUP BY: keys by structure, ordinals, aliases, ALL, grouping sets."""

from __future__ import annotations

import pytest

from sweeparea.cql.text.errors import CqlError
from sweeparea.operators.nodes import Aggregate, Project, Select, UnionAll
from tests.cql.readable import Readable
from tests.cql.schemas import nodes, plan


def keys(text: str) -> list[str]:
    bound = plan(text)
    [node] = nodes(bound.root, Aggregate)
    return [Readable(bound).sql(e) for _, e in node.keys]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a + 1, sum(x) FROM S GROUP BY A  +1", ["a +1"]),
        ("SELECT (a + 1) * 2, sum(x) FROM S GROUP BY (a+1)", ["a+1"]),
        ("SELECT upper(b) AS u, sum(x) FROM S GROUP BY u", ["upper(b)"]),
        ("SELECT a, b, sum(x) FROM S GROUP BY 2, 1", ["b", "a"]),
        ("SELECT a, upper(b), sum(x) FROM S GROUP BY ALL", ["a", "upper(b)"]),
        ("SELECT sum(x) FROM S GROUP BY ALL", []),
        ("SELECT a, sum(x) FROM S GROUP BY a, S.a, (a)", ["a"]),
        ("SELECT sum(x) FROM S GROUP BY (a, b)", ["a", "b"]),
        ("SELECT CASE WHEN a > 1 THEN 'x' END, count(*) FROM S GROUP BY case when A > 1 then 'x' end", None),
    ],
)
def test_keys(text: str, expected: list[str] | None) -> None:
    found = keys(text)
    assert expected is None or found == expected


def test_only_group_by_makes_groups_vanish() -> None:
    def all_rows(text: str) -> bool:
        return nodes(plan(text).root, Aggregate)[0].global_

    assert all_rows("SELECT sum(x) AS s FROM S")
    assert all_rows("SELECT sum(x) AS s FROM S GROUP BY ()")
    assert all_rows("SELECT 1 AS o FROM S HAVING count(*) > 1")
    assert not all_rows("SELECT sum(x) AS s FROM S GROUP BY a")
    assert not all_rows("SELECT sum(x) AS s FROM S GROUP BY GROUPING SETS (())")


def sets(text: str) -> list[tuple[str, ...]]:
    """The grouping sets of a plan: of each part the keys that are not NULL."""
    bound = plan(text)
    [union] = nodes(bound.root, UnionAll)
    [node] = nodes(bound.root, Aggregate)
    count = len(node.keys) - 1 - any(c.label == "position" for c, _ in node.keys)
    found = []
    for part in union.parts:
        assert isinstance(part, Project)
        found.append(tuple(c.label for c, e in part.outputs[:count] if not e.sql.startswith("CAST(NULL")))
    return found


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("ROLLUP(a, b)", "ab a -"),
        ("a, b WITH ROLLUP", "ab a -"),
        ("CUBE(a, b)", "ab a b -"),
        ("a, b WITH CUBE", "ab a b -"),
        ("GROUPING SETS ((a, b), b, ())", "ab b -"),
        ("a, b GROUPING SETS ((b), (a))", "b a"),
        ("a, GROUPING SETS ((b), ())", "ab a"),
        ("a, ROLLUP(b, x)", "abx ab a"),
        ("ROLLUP(a), CUBE(b)", "ab a b -"),
        ("ROLLUP((a, b), x)", "abx ab -"),
        ("GROUPING SETS (ROLLUP(a, b), x)", "ab a - x"),
        ("GROUPING SETS ((a), (a))", "a a"),
    ],
)
def test_grouping_sets(group: str, expected: str) -> None:
    found = sets(f"SELECT count(*) AS n FROM S GROUP BY {group}")
    assert ["".join(s) or "-" for s in found] == expected.split()


def test_aggregates_see_the_keys_own_values() -> None:
    bound = Readable(plan("SELECT a, sum(a) AS s FROM S GROUP BY ROLLUP(a)"))
    [node] = nodes(bound.plan.root, Aggregate)
    [(_, call)] = node.calls
    assert call.argument is not None
    assert call.argument.sql not in [e.sql for _, e in node.keys]


def test_grouping_reads_the_id() -> None:
    bound = Readable(
        plan("SELECT grouping(b) AS g, grouping_id() AS i FROM S GROUP BY CUBE(a, b) HAVING grouping(a) = 1")
    )
    [top, *_] = [n for n in nodes(bound.plan.root, Project) if n is bound.plan.root]
    assert [bound.sql(e) for _, e in top.outputs] == [
        "CAST(shiftright(grouping_id(), 0) & 1L AS TINYINT)",
        "grouping_id()",
    ]
    [having] = nodes(bound.plan.root, Select)
    assert bound.sql(having.condition) == "CAST(shiftright(grouping_id(), 1) & 1L AS TINYINT) = 1"
    assert bound.types == ["tinyint", "bigint"]


def test_maps_are_grouped_by_as_spark_does() -> None:
    text = "SELECT m, COUNT(*) AS n FROM (SELECT map(a, a) AS m FROM S) AS maps GROUP BY m"
    [node] = nodes(plan(text).root, Aggregate)
    assert len(node.keys) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT b FROM S GROUP BY a", "column b is neither grouped nor inside an aggregate"),
        ("SELECT a FROM S GROUP BY 3", "GROUP BY 3 is no position in the select list"),
        ("SELECT a FROM S GROUP BY a, b GROUPING SETS ((a), (x))", "x in GROUPING SETS is not among the expressions"),
        ("SELECT grouping(x) FROM S GROUP BY CUBE(a)", "GROUPING takes expressions of GROUP BY, and x is none"),
        (
            "SELECT a FROM S GROUP BY CUBE(a, b, x, a+1, a+2, a+3, a+4, a+5, a+6, a+7, a+8)",
            "CUBE of 11 columns has 2,048",
        ),
    ],
)
def test_what_is_told(text: str, told: str) -> None:
    with pytest.raises(CqlError) as caught:
        plan(text)
    assert caught.value.message.startswith(told)
    assert caught.value.place is not None
