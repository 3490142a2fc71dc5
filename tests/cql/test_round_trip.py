"""Statements and plans as text: what is printed means the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import pytest

from sweeparea.cql.binding.binder import bind, bind_select
from sweeparea.cql.declarations.contents import contents
from sweeparea.cql.explain import explain
from sweeparea.cql.printing.plan_printer import NotPrintable, print_plan, print_query
from sweeparea.cql.printing.statement_printer import print_statement
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.linear.map import Map
from sweeparea.operators.nodes import Analytic, TopK
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.sql.expressions import Column
from sweeparea.operators.time.domain import TimeDomain
from tests.cql.generate_queries import QueryGenerator
from tests.cql.normal_form import normal_form
from tests.cql.schemas import TICKS, TIMES, plan
from tests.cql.test_papers import bound, files, schemas
from tests.cql.test_statements import APPLICATION

STREAM = "CREATE STREAM s FROM DELTA 'p' TIMESTAMP BY t "
RELATION = "CREATE OR REPLACE RELATION r FROM DELTA a.b.c "
STATEMENTS = [
    *APPLICATION.split(";")[:-1],
    *(
        STREAM + clause
        for clause in (
            "CHRONON INTERVAL 1 SECOND SEQUENCE BY `My Id`",
            "DEDUPLICATE BY a, `b c` WITHIN INTERVAL 36 HOURS",
            "DEDUPLICATE BY (id) WITHIN 100",
            "HEARTBEAT EACH BATCH",
            "HEARTBEAT MANUAL",
            "HEARTBEAT POLICY 'it\\'s'",
            "HEARTBEAT FROM COLUMN hb",
            "HEARTBEAT FROM CLOCK LAG INTERVAL 1 MINUTE",
            "HEARTBEAT FROM CLOCK",
            "HEARTBEAT PER source_id AS ts - INTERVAL 5 MINUTES IDLE AFTER INTERVAL 10 MINUTES",
            "HEARTBEAT PER source_id AS CASE WHEN a > 1 THEN t ELSE t - INTERVAL '1' DAY END /* why */",
            "MAX AHEAD 90 Minutes LATE REPAIR RETAIN INTERVAL '1 day 6 hours' ON SOURCE CHANGE CORRECT",
            "LATE REPAIR WITHIN INTERVAL 2 DAYS ON SOURCE CHANGE IGNORE",
            "CONSTRAINT c EXPECT gx.expect_column_values_to_be_in_set(column => 'a', "
            "value_set => ['x', 'i\\'s', NULL])",
            "CONSTRAINT c EXPECT gx.expect_table_row_count_to_be_between(min_value => -1, max_value => 2.5e3) "
            "ON VIOLATION WARN CONSTRAINT d EXPECT (a RLIKE '^\\\\d+$') ON VIOLATION FAIL",
            "CONSTRAINT c EXPECT gx.expect_column_values_to_not_be_null(column = 'a', mostly => 0.95, catch => true)",
            "CONSTRAINT c EXPECT FRESH WITHIN INTERVAL 90 MINUTES ON VIOLATION WARN SUITE 'a.json' PER 3 HOURS",
            "CONSTRAINT c EXPECT VOLUME BETWEEN NULL AND 5 PER 1 DAY CONSTRAINT d EXPECT `x y` REFERENCES r(id)",
            "CONSTRAINT c EXPECT VOLUME WITHIN 0.5 DEVIATIONS OF LAST 2 PER INTERVAL 2 DAYS ON VIOLATION FAIL",
            "CONSTRAINT c EXPECT (a, b) REFERENCES r(c, d) CONSTRAINT e EXPECT (a = (b)) ON VIOLATION WARN",
        )
    ),
    "CREATE STREAM s FROM FORMAT 'json' PATH 'dir' OPTIONS (multiLine true, 'a.b' = 'x', max.files = 10) "
    "SCHEMA (id BIGINT, at TIMESTAMP, `x y` STRUCT<a: INT, b: ARRAY<STRING>>, d DECIMAL(10, 2)) TIMESTAMP BY at",
    "CREATE STREAM s FROM FORMAT 'rate' TIMESTAMP BY at",
    "CREATE CONTINUOUS QUERY q START AT DATE '2024-01-01' + 6 HOURS CHRONON 2 * 30 SECONDS AS ISTREAM(planes)",
    *(
        RELATION + clause
        for clause in (
            "STATIC",
            "CHANGE DATA FEED",
            "HISTORY BY (valid_from, valid_to) HEARTBEAT FOR valid_from AS valid_from LATE REPAIR WITHIN 5",
            "CHANGES BY (op, ts) KEY (a, b) SEQUENCE BY n HEARTBEAT FOR ts AS ts NON RETROACTIVE",
            "CONSTRAINT c EXPECT (a > 0) ON VIOLATION WARN NON RETROACTIVE",
        )
    ),
    "CREATE CONTINUOUS QUERY q START AT 5 MATERIALIZE RSTREAM EVERY INTERVAL 90 MINUTES ANCHOR "
    "TIMESTAMP '2013-01-01 02:00:00.5+02:00', RELATION AS ISTREAM(SELECT max(a) AS Mx, `select` -- what\n"
    "FROM s [Range 5] WHERE b LIKE 'x;--%' GROUP BY `select`)",
    "CREATE CONTINUOUS QUERY q WITH (dag = 'x', strict = false, slice.max_rows = 5, backfill_slice = '6 hours') AS "
    "WITH w AS (SELECT a FROM s) SELECT * FROM w UNION ALL (SELECT a FROM t [Now])",
    "CREATE FUNCTION f AS 'package.module:object.attribute'",
    "CREATE OR REPLACE AGGREGATE f AS 'm:o'",
    "CREATE WINDOW f AS 'm:o'",
    *[
        "DROP STREAM s PURGE",
        "DROP RELATION `a b`",
        "DROP CONTINUOUS QUERY q",
        "REFRESH RELATION r",
        "SET strategy = negative",
        "SET slice.max_rows = 5",
        "EXPLAIN CONTINUOUS QUERY q",
        "EXPLAIN SELECT a FROM S [Now]",
        "SHOW STREAMS",
        "SHOW RELATIONS",
        "SHOW CONTINUOUS QUERIES",
        "DESC s",
        "PAUSE CONTINUOUS QUERY q",
        "RESUME CONTINUOUS QUERY q",
    ],
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_printed_statement_says_the_same(text: str) -> None:
    [statement] = parse_text(text)
    printed = print_statement(statement)
    [again] = parse_text(printed)
    assert contents(again) == contents(statement), printed
    assert print_statement(again) == printed


def test_the_look_of_a_statement() -> None:
    [statement] = parse_text(
        "create or replace stream s from delta 'p' retain 48 hours timestamp by t heartbeat for t as t-interval 5 day "
        "late repair within interval 60 seconds constraint c expect (a>0)"
    )
    assert print_statement(statement) == (
        "CREATE OR REPLACE STREAM s\n  FROM DELTA 'p'\n  TIMESTAMP BY t\n"
        "  HEARTBEAT FOR t AS t-interval 5 day\n  LATE REPAIR WITHIN INTERVAL 1 MINUTE\n  RETAIN INTERVAL 2 DAYS\n"
        "  CONSTRAINT c EXPECT (a>0) ON VIOLATION QUARANTINE ROW"
    )


# -- plans -------------------------------------------------------------------------------------------------------------

QUERIES = [
    "SELECT origin, AVG(dep_delay) AS d FROM flights [RANGE INTERVAL 6 HOURS SLIDE INTERVAL 1 HOUR] GROUP BY origin",
    "SELECT f.origin, p.seats FROM flights [Tumbling By Month In 'Europe/Berlin'] f JOIN planes p USING (tailnum)",
    "SELECT WINDOW_START(S) AS w, a, COUNT(*) AS n FROM S [Session 5 Partition By a] GROUP BY w, a HAVING n > 1",
    "SELECT a, ts AS at FROM S [Partition By b, a + 1 Rows 3 Range 7 Slide 2] WHERE b LIKE '%`c0`''%' AND ts > 5",
    "SELECT b, a FROM S [Tumbling When (a > 3 OR b = ']') Partition By b]",
    "RSTREAM(SELECT dest FROM flights [From TIMESTAMP '2013-01-01' Until DATE '2014-01-01'] EVERY 1 Day ANCHOR 1 Day)",
    "SELECT n.k AS c1, m.k FROM (SELECT a AS k FROM S [Now] UNION ALL SELECT a FROM R) n, (SELECT 5 AS k FROM T) m",
    "SELECT 3 AS three, 'x' AS b, max(a) AS m FROM S [Fixed 4 Anchor -1] GROUP BY three, b, 'x' HAVING max(a) IS NULL",
    "SELECT struct(a, b AS c0) AS s, (a, b).a AS f FROM S [Hopping 9 Slide 4]",
    "SELECT count(*) AS n, sum(r) AS s FROM (DSTREAM(SELECT a AS r, x FROM S [Range 4 Lag 2])) [Range Unbounded] d",
]


def again(first: Plan, inputs: dict) -> Plan:
    """The plan of a plan's text, as it was bound."""
    return bind_select(print_query(first), inputs, {"rewrites": "projection_pruning"}, name=first.name)


@pytest.mark.parametrize("text", QUERIES)
def test_a_printed_plan_is_the_same_plan(text: str) -> None:
    first = plan(text)
    assert normal_form(again(first, {**TICKS, **TIMES})) == normal_form(first), print_query(first)


def test_a_printed_plan_is_a_statement() -> None:
    [statement] = parse_text(
        "CREATE CONTINUOUS QUERY k START AT TIMESTAMP '2013-01-01' MATERIALIZE RELATION, RSTREAM EVERY 1 Hour ANCHOR "
        "60 Seconds, ISTREAM CONSTRAINT c EXPECT (n > 0) ON VIOLATION WARN CONSTRAINT d EXPECT gx."
        "expect_column_values_to_be_in_set(column => 'N', value_set => [1, 'it\\'s'], mostly => 0.5) PER 1 DAY "
        "CONSTRAINT e EXPECT VOLUME WITHIN 2 DEVIATIONS OF LAST 3 PER 2 HOURS ON VIOLATION WARN "
        "CONSTRAINT f EXPECT (origin) REFERENCES r(id) WITH (range_bounds = 'exclusive') AS "
        "SELECT origin, count(*) AS n FROM flights [Range 1 Hour] GROUP BY origin"
    )
    assert isinstance(statement, CreateQuery)
    first = bind(statement, TIMES)
    [printed] = parse_text(print_plan(first))
    assert isinstance(printed, CreateQuery)
    second = bind(printed, TIMES)
    assert normal_form(second) == normal_form(first)
    assert (second.materialize, second.settings, second.start) == (first.materialize, first.settings, first.start)
    assert [(c.name, c.on_violation) for c in second.constraints] == [("c", "warn")]
    assert len(first.expectations) == 3
    assert second.expectations == first.expectations


@pytest.mark.parametrize("text", [q for q in QUERIES if "Rows 3" not in q])
def test_explain_gives_a_statement_of_the_same_plan(text: str) -> None:
    first = plan(text, rewrites="all")
    [statement] = parse_text(explain(first, form="cql"))
    assert isinstance(statement, CreateQuery)
    # a rank that is compared with a constant has no other words than those of the query before its rewrites
    assert normal_form(bind(statement, {**TICKS, **TIMES}, {"rewrites": "first_of_groups"})) == normal_form(first)


def test_explain_names_what_has_no_text() -> None:
    shown = explain(plan("SELECT a, (SELECT a FROM R WHERE R.d = S.b) AS v FROM S"), form="cql")
    assert "SINGLE_VALUE" in shown
    assert all(line.startswith("--") for line in shown.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT S.a FROM S, LATERAL (SELECT d FROM R WHERE R.a = S.a ORDER BY d LIMIT 1) t",
        "SELECT a, r FROM (SELECT a, RANK() OVER (PARTITION BY b ORDER BY x) AS r FROM S) q WHERE r BETWEEN 2 AND 4",
        "SELECT a, RANK() OVER w AS r, ROW_NUMBER() OVER w AS n, DENSE_RANK() OVER w AS d FROM S "
        "WINDOW w AS (PARTITION BY b ORDER BY x DESC) QUALIFY r < 3 AND d <> 1",
    ],
)
def test_explain_gives_the_first_rows_of_each_group_as_a_condition_on_their_numbers(text: str) -> None:
    first = plan(text, rewrites="all")
    shown = explain(first, form="cql")
    assert "QUALIFY" in shown
    [statement] = parse_text(shown)
    assert isinstance(statement, CreateQuery)
    second = bind(statement, {**TICKS, **TIMES}, {"rewrites": "all"})
    assert [type(n) for n in second.root.walk() if isinstance(n, TopK)] == [TopK]
    assert not any(isinstance(n, Analytic) for n in second.root.walk())
    if "LATERAL" in text:  # its order is completed with what the groups have in common
        first = second
        [statement] = parse_text(explain(first, form="cql"))
        assert isinstance(statement, CreateQuery)
        second = bind(statement, {**TICKS, **TIMES}, {"rewrites": "all"})
    assert normal_form(second) == normal_form(first)


def test_plans_that_differ_have_other_normal_forms() -> None:
    texts = [
        "SELECT a FROM S [Range 5] WHERE a > 1 AND b = 'x'",
        "SELECT a FROM S [Range 5] WHERE a > 1 AND b = 'y'",
        "SELECT a FROM S [Range 6] WHERE a > 1 AND b = 'x'",
        "SELECT a AS c FROM S [Range 5] WHERE a > 1 AND b = 'x'",
        "SELECT DISTINCT a FROM S [Range 5] WHERE a > 1 AND b = 'x'",
    ]
    assert len({str(normal_form(plan(text))) for text in texts}) == len(texts)
    same = plan("SELECT k AS a FROM (SELECT b AS l, a AS k FROM S AS z [Range 5]) q WHERE l = 'x' AND (k > 1)")
    assert normal_form(same) == normal_form(plan(texts[0]))


def round_trips(seed: int, count: int) -> Counter[str]:
    """What became of generated queries: ``same``, where the text of the plan is the plan, and ``settled``, where that
    is so of the text's plan only. Unnesting leaves aggregates that nothing reads and conditions without columns, which
    binding the plain text puts in their places.
    """
    generator = QueryGenerator(Random(seed), TICKS)
    found: Counter[str] = Counter()
    for _ in range(count):
        text = generator.query()
        try:
            first = plan(text)
        except SweepAreaError as error:
            found[error.type] += 1
            continue
        try:
            second = again(first, TICKS)
        except NotPrintable:
            found["no text"] += 1
            continue
        if normal_form(second) == normal_form(first):
            found["same"] += 1
        else:
            found["settled"] += 1
            assert normal_form(again(second, TICKS)) == normal_form(second), text
    return found


def test_generated_queries() -> None:
    found = round_trips(20260129, 250)
    assert found["same"] > 200
    assert found["settled"] < 10
    assert set(found) <= {"same", "settled", "no text"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_generated_queries(seed: int) -> None:
    found = round_trips(seed, 2000)
    assert found["same"] > 1900
    assert set(found) <= {"same", "settled", "no text"}


def test_rewritten_plans_have_texts_too() -> None:
    generator, printed = QueryGenerator(Random(5), TICKS), 0
    for _ in range(150):
        try:
            first = bind_select(generator.query(), TICKS)
            text = print_query(first)
        except SweepAreaError:
            continue
        printed += 1
        assert [c.label for c in bind_select(text, TICKS).root.columns] == [c.label for c in first.root.columns], text
    assert printed > 40


@pytest.mark.parametrize("file", files())
def test_the_plans_of_the_papers(file: str) -> None:
    found = bound(file)
    inputs = schemas(file)
    for first in found.values():
        if isinstance(first, Plan):
            try:
                second = again(first, inputs)
            except NotPrintable:
                continue
            assert normal_form(again(second, inputs))[:4] == normal_form(second)[:4], print_query(first)
            assert [c.label for c in second.root.columns] == [c.label for c in first.root.columns]


@dataclass(frozen=True)
class Sampled(Map):
    """An operator that the language has no words for."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    def words(self, time: TimeDomain) -> str:
        return "Sampled"


def test_an_operator_of_which_the_printer_knows_nothing_is_told_by_its_name():
    bound = plan("SELECT a FROM R")
    with pytest.raises(NotPrintable, match="Sampled has no text"):
        print_plan(replace(bound, root=Sampled(bound.root)))
