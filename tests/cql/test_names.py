"""Names: Spark's rules of scope, output names, and what is told of names that are wrong."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.cql.text.errors import BindError
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.nodes import Aggregate, Join, Project, RelationScan, Select, StreamScan
from tests.cql.schemas import nodes, plan


def labels(text: str) -> list[str]:
    return [c.label for c in plan(text).root.columns]


def outputs(text: str) -> list[str]:
    """The output expressions over source columns, as ``stream.column``."""
    found = plan(text)
    names = {
        c.id: f"{s.name}.{n}"
        for s in nodes(found.root, StreamScan) + nodes(found.root, RelationScan)
        for c, n in s.source
    }
    return [names[expr.sql.strip("`")] for _, expr in nodes(found.root, Project)[-1].outputs]


def test_star_leaves_the_instant_out() -> None:
    assert labels("SELECT * FROM S [Now]") == ["a", "b", "x"]
    assert labels("SELECT S.*, R.d FROM S [Now], R") == ["a", "b", "x", "d"]
    assert labels("SELECT * EXCEPT (b) FROM S [Now]") == ["a", "x"]


def test_names_compare_without_case() -> None:
    assert outputs("SELECT s.A, B FROM s [Now]") == ["S.a", "S.b"]
    assert labels("SELECT A FROM s [Now]") == ["A"]


def test_the_instant_is_a_pseudo_column() -> None:
    found = plan("SELECT ts AS at, a FROM S [Now]")
    [scan] = nodes(found.root, StreamScan)
    assert scan.instant is not None
    assert scan.instant.type == "bigint"
    [other] = nodes(plan("SELECT a FROM S [Now]").root, StreamScan)
    assert other.instant is None


def test_a_timestamp_column_named_ts_is_the_pseudo_column() -> None:
    from sweeparea.cql.binding.binder import bind_select
    from sweeparea.cql.binding.scope.inputs import InputSchema

    inputs = {"E": InputSchema("E", SchemaKind.STREAM, (("ts", "bigint"), ("a", "int")))}
    assert [c.label for c in bind_select("SELECT * FROM E [Now]", inputs).root.columns] == ["a"]
    [scan] = nodes(bind_select("SELECT ts + 1 AS n FROM E [Now]", inputs).root, StreamScan)
    assert scan.source == ()
    assert scan.instant is not None


def test_scans_hold_only_what_is_read() -> None:
    [scan] = nodes(plan("SELECT count(*) AS n FROM S [Range 5] WHERE x > 1").root, StreamScan)
    assert [n for _, n in scan.source] == ["x"]
    [inner] = nodes(plan("SELECT a FROM (SELECT ISTREAM(*) FROM S [Range 5]) [Range 5]").root, StreamScan)
    assert [n for _, n in inner.source] == ["a", "b", "x"], "Istream compares whole records"


def test_using_keeps_one_of_two_columns() -> None:
    text = "SELECT * FROM S [Now] JOIN R USING (a)"
    assert labels(text) == ["a", "b", "x", "d"]
    assert outputs("SELECT a, S.a AS sa, R.a AS ra FROM S [Now] JOIN R USING (a)") == ["S.a", "S.a", "R.a"]
    assert labels("SELECT * FROM S [Now] NATURAL JOIN R") == ["a", "b", "x", "d"]


def test_a_comma_join_with_where_is_a_join_with_on() -> None:
    comma = plan("SELECT S.b, R.d FROM S [Now], R WHERE S.a = R.a AND S.x > 1")
    [join] = nodes(comma.root, Join)
    assert join.condition is not None
    assert join.condition.text == "S.a = R.a"
    [select] = nodes(comma.root, Select)
    assert select in nodes(join.left, Select)


def test_on_sees_its_own_group_only() -> None:
    assert plan("SELECT 1 AS one FROM T [Now], S [Now] JOIN R ON x = d")
    with pytest.raises(BindError, match="column c is unknown"):
        plan("SELECT 1 AS one FROM T [Now], S [Now] JOIN R ON c = 1")


def test_self_joins_have_columns_of_their_own() -> None:
    found = plan("SELECT p.a, q.a FROM S [Now] p JOIN S [Range 5] q ON p.a = q.a")
    assert [c.label for c in found.root.columns] == ["a", "a_2"]
    assert found.inputs == ("S",)
    assert any("a_2" in note for note in found.notes)


def test_subqueries_and_ctes() -> None:
    assert labels("SELECT y.k FROM (SELECT a AS k FROM S [Range 5]) AS y") == ["k"]
    assert labels("SELECT u FROM S [Now] AS y(u, v, w)") == ["u"]
    found = plan(
        "WITH w AS (SELECT a FROM S [Range 5]), v(k) AS (SELECT a FROM w) SELECT v.k FROM v JOIN w ON v.k = w.a"
    )
    assert len(nodes(found.root, StreamScan)) == 2
    assert labels("WITH S AS (SELECT d FROM R) SELECT * FROM S JOIN T [Now] ON c = 1") == ["d", "a", "c"]


def test_repeated_names_get_numbers() -> None:
    assert labels("SELECT a, a, A, b AS a_2 FROM S [Now]") == ["a", "a_3", "A_4", "a_2"]


@pytest.mark.parametrize(
    ("item", "label"),
    [
        ("count(*)", "count(1)"),
        ("AVG(x)", "avg(x)"),
        ("sum(x) / 2", "(sum(x) / 2)"),
        ("max(S.a)", "max(a)"),
        ("CAST(sum(a) AS INT)", "CAST(sum(a) AS INT)"),
        ("min(a) > 1", "(min(a) > 1)"),
        ("min(a) <> 1", "(NOT (min(a) = 1))"),
    ],
)
def test_unaliased_expressions_are_named_as_in_spark(item: str, label: str) -> None:
    assert labels(f"SELECT {item} FROM S [Now]") == [label]


def test_group_by_takes_expressions_aliases_ordinals_and_all() -> None:
    for group in ("upper(b)", "UPPER( S.b )", "(upper(b))", "u", "1", "ALL"):
        found = plan(f"SELECT upper(b) AS u, count(*) AS n FROM S [Now] GROUP BY {group}")
        [aggregate] = nodes(found.root, Aggregate)
        assert len(aggregate.keys) == 1
        assert aggregate.keys[0][1].sql.lower() in ("upper(`c1`)", "upper( `c1` )", "(upper(`c1`))")


def test_having_sees_keys_aggregates_and_aliases() -> None:
    found = plan("SELECT b, sum(x) AS total FROM S [Now] GROUP BY b HAVING total > 5 AND count(*) > 1 AND b <> 'z'")
    [aggregate] = nodes(found.root, Aggregate)
    assert [c.function for _, c in aggregate.calls] == ["SUM", "COUNT"]
    # a column that is a key goes before an alias of the same name
    found = plan("SELECT a AS k, sum(x) AS a FROM S [Now] GROUP BY a HAVING a > 3")
    [aggregate] = nodes(found.root, Aggregate)
    [select] = nodes(found.root, Select)
    assert select.condition.columns == {aggregate.keys[0][0].id}


def test_aliases_of_the_select_list_may_be_used_behind_them() -> None:
    found = plan("SELECT count(*) AS n, n + 1 AS m FROM S [Now]")
    assert found.root.columns[1].type == "bigint"
    with pytest.raises(BindError):
        plan("SELECT a + 1 AS k FROM S [Now] WHERE k > 1")


def test_equal_aggregates_are_computed_once() -> None:
    found = plan("SELECT sum(a) + 1 AS p, SUM( a ) * 2 AS q FROM S [Now] HAVING sum(S.a) > 0")
    [aggregate] = nodes(found.root, Aggregate)
    assert len(aggregate.calls) == 1
    assert aggregate.global_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT aa FROM S", "Did you mean a?"),
        ("SELECT S.bb FROM S", "S has no column bb. Did you mean b?"),
        ("SELECT z.a FROM S", "z.a is unknown here. FROM has S"),
        ("SELECT a FROM SS", "SS is no stream, relation or query. Did you mean S?"),
        ("SELECT a FROM S [Now], T [Now]", "column a is ambiguous: it is in S and in T. Write S.a or T.a"),
        ("SELECT S.a FROM S, S", "Give each entry of FROM its own alias"),
        ("SELECT ts AS t FROM S [Now], T [Now]", "column ts is ambiguous"),
        ("SELECT ts AS t FROM R, Fixed", "FROM has no stream here"),
        ("SELECT R.d FROM R JOIN T [Now] USING (d)", "USING names d, which the right side of the join lacks"),
        ("SELECT ts FROM S [Now]", "output column ts clashes"),
        ("SELECT a AS valid_to FROM S [Now]", "Give it an alias: valid_to AS valid_to_"),
        ("SELECT a AS Valid_From FROM S [Now]", "clashes"),
        ("SELECT k FROM (SELECT ts, a AS k FROM S) [Range 5]", "clashes with the instant"),
        ("SELECT b, sum(a) AS s FROM S", "column b is neither grouped nor inside an aggregate"),
        ("SELECT * FROM S GROUP BY a", "of * is neither grouped"),
        ("SELECT a FROM S WHERE sum(a) > 1", "cannot stand in WHERE. Use HAVING"),
        ("SELECT sum(max(a)) AS s FROM S", "cannot stand inside the aggregate SUM"),
        ("SELECT a FROM S GROUP BY 2", "GROUP BY 2 is no position"),
        ("SELECT uper(b) AS u FROM S", "there is no function uper. Did you mean upper?"),
        ("SELECT y FROM S AS t(y)", "the alias names 1 column, but there are 3"),
        ("SELECT T.* FROM S", "T is unknown here"),
        ("SELECT * EXCEPT (zz) FROM S", "EXCEPT names zz"),
        ("WITH w AS (SELECT a FROM S), W AS (SELECT a FROM T) SELECT 1 AS o FROM w", "WITH names W twice"),
        ("SELECT transform(array(1), c1 -> c1 + a) AS t FROM S", "c1 has a name that the engine gives"),
    ],
)
def test_wrong_names(text: str, message: str) -> None:
    with pytest.raises(SweepAreaError) as caught:
        plan(text)
    assert caught.value.type == "BindError"
    assert message in str(caught.value)
