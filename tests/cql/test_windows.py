"""Windows as written, in ticks; and what is wrong with a window's text."""

from __future__ import annotations

from typing import Any

import pytest

from sweeparea.cql.binding.binder import bind, bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text.errors import BindError, ParseError, RefusedError, TypeError_
from sweeparea.operators.nodes import Aggregate, RelationToStream, Window
from sweeparea.operators.plan.plan import Plan, UserFunction, UserKind
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.windows import (
    Calendar,
    Fixed,
    Hopping,
    Landmark,
    Range,
    Rows,
    Session,
    Slide,
    Unbounded,
    UserWindow,
    When,
)
from sweeparea.operators.windows import WindowDefinition as Spec
from tests.cql.schemas import TICKS, TIMES, nodes, plan

HOUR, DAY = 3600, 86_400


def spec(window: str, stream: str = "S", **arguments: Any) -> Spec:
    column = "a" if stream == "S" else "origin"
    [found] = nodes(plan(f"SELECT {column} FROM {stream} {window}", **arguments).root, Window)
    return found.spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Unbounded()),
        ("[Now]", Range(1)),
        ("[Range Unbounded]", Unbounded()),
        ("[ROWS UNBOUNDED]", Unbounded()),
        ("[Range 10]", Range(11)),
        ("[Range 0]", Range(1)),
        ("[Range 10 Inclusive]", Range(11)),
        ("[Range 10 Exclusive]", Range(10)),
        ("[Range 10 Slide 5]", Slide(10, 5)),
        ("[Range 10 Inclusive Slide 5]", Slide(11, 5)),
        ("[Range 0 Inclusive Slide 5]", Slide(1, 5)),
        ("[Range 10 Slide 5 Lag 2 Anchor -3]", Slide(10, 5, 2, -3)),
        ("[Range 10 Lag 2]", Slide(10, 1, 2)),
        ("[Tumbling 10]", Hopping(10, 10)),
        ("[Tumbling 10 Anchor 3]", Hopping(10, 10, 3)),
        ("[Hopping 10 Slide 5]", Hopping(10, 5)),
        ("[Hopping 10 Slide 5 Anchor 1]", Hopping(10, 5, 1)),
        ("[Fixed 10]", Fixed(10)),
        ("[Fixed 10 Anchor 4]", Fixed(10, 4)),
        ("[From 5]", Landmark(5)),
        ("[Until -5]", Landmark(None, -5)),
        ("[From 5 Until 7]", Landmark(5, 7)),
        ("[Rows 5]", Rows(5)),
        ("[Rows 5 Slide 2]", Rows(5, 2)),
        ("[Partition By a Rows 2]", Rows(2)),
        ("[Partition By a, b Rows 2 Range 5]", Rows(2, 1, 6)),
        ("[Partition By a Rows 2 Range 5 Exclusive Slide 3]", Rows(2, 3, 5)),
        ("[Partition  By a Rows 2 Range 0]", Rows(2, 1, 1)),
        ("[Session 5]", Session(5)),
        ("[Session 5 Partition By a]", Session(5)),
        ("[Tumbling When (a > 3)]", When()),
        ("[Tumbling When a > 3 Partition By b]", When()),
    ],
)
def test_windows_in_ticks(text: str, expected: Spec) -> None:
    assert spec(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Range INTERVAL 6 HOURS SLIDE INTERVAL 1 HOUR]", Slide(6 * HOUR, HOUR)),
        ("[Range 30 Seconds]", Range(31)),
        ("[Range 5 Minutes Exclusive]", Range(300)),
        ("[Range 1 Hour Slide 5 Minutes]", Slide(HOUR, 300)),
        ("[Range INTERVAL '1' DAY Exclusive]", Range(DAY)),
        ("[Range INTERVAL '1 02:03:04' DAY TO SECOND Exclusive]", Range(DAY + 2 * HOUR + 184)),
        ("[Range INTERVAL '02:30' HOUR TO MINUTE Exclusive]", Range(9000)),
        ("[Range INTERVAL '1 day 6 hours' Exclusive]", Range(30 * HOUR)),
        ("[Range INTERVAL 1 DAY 6 HOURS Exclusive]", Range(30 * HOUR)),
        ("[Range INTERVAL 2000 MILLISECONDS Exclusive]", Range(2)),
        ("[Range INTERVAL 1 WEEK Exclusive]", Range(7 * DAY)),
        ("[Tumbling INTERVAL 1 DAY ANCHOR TIMESTAMP '1970-01-02 06:00:00']", Hopping(DAY, DAY, 30 * HOUR)),
        ("[Tumbling INTERVAL 1 DAY ANCHOR INTERVAL 6 HOURS]", Hopping(DAY, DAY, 6 * HOUR)),
        ("[From TIMESTAMP '1970-01-01 00:01:00']", Landmark(60)),
        ("[Session 30 Minutes]", Session(1800)),
        ("[Tumbling By Month]", Calendar("month", "UTC", 1_000_000)),
        ("[Tumbling By Days In 'Europe/Berlin']", Calendar("day", "Europe/Berlin", 1_000_000)),
        ("[From DATE '1970-01-02' Until TIMESTAMP '1970-01-02T02:00:00+02:00']", Landmark(DAY, DAY)),
    ],
)
def test_windows_with_units(text: str, expected: Spec) -> None:
    assert spec(text, "flights") == expected


def test_range_bounds_decides_plain_ranges_only() -> None:
    settings = {"range_bounds": "exclusive"}
    assert spec("[Range 10]", defaults=settings) == Range(10)
    assert spec("[Range 10 Inclusive]", defaults=settings) == Range(11)
    assert spec("[Now]", defaults=settings) == Range(1)
    with pytest.raises(ParseError, match="range_bounds"):
        spec("[Range 0]", defaults=settings)


def test_the_alias_stands_before_or_behind() -> None:
    before = plan("SELECT x.a FROM S AS x [Range 5]")
    behind = plan("SELECT x.a FROM S [Range 5] x")
    assert before.root == behind.root


def test_columns_may_be_named_like_words_of_windows() -> None:
    assert plan("SELECT a AS range, b AS rows, x AS slide FROM S [Range 5] AS now").root


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Range 0 Exclusive]", "holds nothing"),
        ("[Range 0 Slide 2]", "holds nothing"),
        ("[Range -5]", "must not be negative"),
        ("[Range 5 Slide 0]", "Slide must be longer than zero"),
        ("[Range 5 Lag -1]", "Lag must not be negative"),
        ("[Tumbling 0]", "Tumbling must be longer than zero"),
        ("[Hopping 5 Slide -1]", "Slide must be longer than zero"),
        ("[Fixed 0]", "Fixed must be longer than zero"),
        ("[Rows 0]", "at least 1"),
        ("[Rows x]", "whole number of rows"),
        ("[Range 5.5]", "no whole number"),
        ("[Range 5 Seconds]", "has a unit of time, but time is BIGINT"),
        ("[Range 5 Anchor 3]", "Anchor needs a Slide"),
        ("[From 5 Until 3]", "ends before it begins"),
        ("[Range 99999999999999999999]", "longer than time itself"),
        ("[Hopping 5]", "Hopping needs Slide"),
        ("[Range]", "needs a length of time"),
        ("[Range 5", "']' is expected"),
        ("[]", "a window is expected"),
        ("[Rnage 5]", "Did you mean Range?"),
        ("[Range 5 Sldie 2]", "Did you mean Slide?"),
        ("[Range 5] AS x [Range 6]", "found two"),
        ("[Range 5] [Range 6]", "takes one window, found two"),
        ("[Rows 5 Minutes]", "Rows counts rows, but 'Minutes' is a unit of time"),
        ("[Rows 5 Slide 2 Seconds]", "Slide counts rows"),
        ("[Rows 5 Slide 0]", "at least 1"),
        ("[Rows 5 Range 3]", "Rows with Range needs Partition By"),
        ("[Range 3 Rows 5]", "Rows stands before Range"),
        ("[Rows 5 Partition By a]", "Partition By stands before Rows"),
        ("[Partition By a Range 5]", "Partition By needs Rows"),
        ("[Partition By a Rows 5 Range 0 Exclusive]", "holds nothing"),
        ("[Partition By Rows 5]", "Partition By needs Rows behind it"),
        ("[Rows 99999999999999999999]", "more rows than a window can count"),
        ("[Session 0]", "Session must be longer than zero"),
        ("[Session 5 Seconds]", "has a unit of time, but time is BIGINT"),
        ("[Tumbling When]", "needs a condition"),
        ("[Tumbling By Day]", "needs a calendar, but time is BIGINT"),
        ("[Tumbling By fortnight]", "Units are Second, Minute"),
        ("[Tumbling By 2 Months]", "takes one unit, without a number"),
    ],
)
def test_wrong_windows(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        plan(f"SELECT a FROM S {text}")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Range 5]", "has no unit, but time is TIMESTAMP"),
        ("[Range INTERVAL 1500 MILLISECONDS]", "no multiple of the chronon, 1 second"),
        ("[Range 5 Secnds]", "Did you mean seconds?"),
        ("[Range INTERVAL '5 parsecs']", "no unit of time"),
        ("[From TIMESTAMP 'soon']", "is no TIMESTAMP"),
        ("[From TIMESTAMP '2013-02-30']", "is no TIMESTAMP"),
        ("[Tumbling By Mnth]", "Did you mean Month?"),
        ("[Tumbling By Day In Berlin]", "needs a time zone in quotes"),
        ("[Tumbling By Day In 'Europe/Berln']", "Did you mean Europe/Berlin?"),
        ("[Session 5]", "has no unit, but time is TIMESTAMP"),
    ],
)
def test_wrong_lengths_of_time(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        plan(f"SELECT origin FROM flights {text}")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["INTERVAL 1 MONTH", "2 Years", "INTERVAL '1' YEAR", "INTERVAL '3 months'"])
def test_months_and_years_are_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="no fixed length"):
        plan(f"SELECT origin FROM flights [Range {text}]")


def test_a_window_on_a_relation_is_a_type_error() -> None:
    with pytest.raises(TypeError_, match="R is a relation, and a window needs a stream"):
        plan("SELECT a FROM R [Range 5]")


def window(text: str, **arguments: Any) -> Window:
    [found] = nodes(plan(text, **arguments).root, Window)
    return found


def test_partition_condition_and_ties_are_bound() -> None:
    rows = window("SELECT a FROM S [Partition By x.b, a + 1 Rows 2] AS x")
    assert [e.sql for e in rows.partition] == ["`c1`", "`c0` + 1"]
    assert rows.ties == ("c0", "c1", "c2")
    when = window("SELECT a FROM S [Tumbling When (x > 3 AND ts > 5) Partition By b]")
    assert when.condition is not None
    assert (when.condition.sql, when.ties) == ("(`c2` > 3 AND `c3` > 5)", ("c0", "c1", "c2"))
    assert window("SELECT a FROM S [Session 5 Partition By b]").ties == ()
    assert window("SELECT a FROM S [Range 5]").ties == ()


def test_a_declared_sequence_comes_before_the_record_in_ties() -> None:
    inputs = {"E": InputSchema("E", "stream", (("a", "int"), ("id", "bigint")), sequence_by="ID")}
    [found] = nodes(bind_select("SELECT a FROM E [Rows 2]", inputs).root, Window)
    assert found.ties == ("c1", "c0")
    derived = bind_select("SELECT a FROM (ISTREAM(SELECT * FROM E [Now])) [Rows 2] d", inputs)
    assert nodes(derived.root, Window)[-1].ties == ("c3", "c4")


def test_pruning_keeps_what_a_window_needs() -> None:
    scan = window("SELECT a FROM S [Rows 2]").input
    assert [c.label for c in scan.columns] == ["a", "b", "x"]
    assert [c.label for c in window("SELECT a FROM S [Session 5 Partition By b]").input.columns] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[Partition By zz Rows 2]", BindError, "column zz is unknown"),
        ("[Partition By sum(a) Rows 2]", BindError, "aggregate SUM cannot stand in Partition By"),
        ("[Tumbling When (a)]", TypeError_, "Tumbling When needs a condition"),
        ("[Tumbling When (rand() > 1)]", RefusedError, "not deterministic"),
        ("[Bigest(a)]", BindError, "Did you mean Biggest?"),
        ("[Twice(a)]", TypeError_, "is registered by CREATE FUNCTION and is no window"),
        ("[Biggest(a b)]", ParseError, "',' or ')' is expected"),
        ("[Biggest(,)]", ParseError, "an argument of Biggest is expected"),
    ],
)
def test_wrong_names_and_types_in_windows(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        plan(f"SELECT a FROM S {text}", functions=FUNCTIONS)
    assert message in str(caught.value)


FUNCTIONS = [
    UserFunction("Biggest", UserKind.WINDOW, "m:f", "WK"),
    UserFunction("Twice", UserKind.FUNCTION, "m:g", "int"),
]


def test_a_window_of_the_user() -> None:
    bound = plan("SELECT a FROM S [biggest(x, 5)]", functions=FUNCTIONS)
    [found] = nodes(bound.root, Window)
    assert found.spec == UserWindow("Biggest", "WK")
    assert [e.sql for e in found.arguments] == ["`c2`", "5"]
    assert bound.functions == (FUNCTIONS[0],)


@pytest.mark.parametrize("text", ["WINDOW_END(S) * 2", "(window_end( s )*2)", "2 * WINDOW_START(S) + WINDOW_END(S)"])
def test_expressions_of_bounds_are_grouped(text: str) -> None:
    bound = plan(f"SELECT {text} AS e, count(*) AS n FROM S [Tumbling 3] GROUP BY {text}")
    [found], [grouped] = nodes(bound.root, Window), nodes(bound.root, Aggregate)
    assert found.bounds is not None
    assert grouped.reads <= {c.id for c in found.bounds}
    assert bound.root.columns[0].type == "bigint"


def test_bounds_of_windows() -> None:
    text = "SELECT a, WINDOW_START(S) AS f, window_end(s) AS t, count(*) AS n FROM S [Tumbling 5] "
    bound = plan(text + "GROUP BY a, WINDOW_START(S), t HAVING WINDOW_END(S) > 3")
    [found] = nodes(bound.root, Window)
    assert found.bounds is not None
    assert [(c.label, c.type) for c in found.bounds] == [("window_start", "bigint"), ("window_end", "bigint")]
    [grouped] = nodes(bound.root, Aggregate)
    assert [e.sql for _, e in grouped.keys[1:]] == [f"`{c.id}`" for c in found.bounds]
    assert [(c.label, c.type) for c in bound.root.columns][1:3] == [("f", "bigint"), ("t", "bigint")]
    assert window("SELECT a FROM S [Tumbling 5]").bounds is None
    for text in ("Hopping 5 Minutes Slide 1 Minute", "Fixed 1 Hour", "Session 5 Minutes", "Tumbling By Day"):
        found = window(f"SELECT origin FROM flights [{text}] f WHERE WINDOW_END(f) > TIMESTAMP '2013-01-01'")
        assert found.bounds is not None
        assert found.bounds[1].type == "timestamp"
    joined = plan("SELECT WINDOW_START(y) AS w FROM S [Tumbling 5] x, S [Fixed 5] y WHERE WINDOW_START(y) = x.a")
    assert [w.bounds is None for w in nodes(joined.root, Window)] == [True, False]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT WINDOW_START(S) AS w FROM S [Range 5]", TypeError_, "the window of S has no bounds"),
        ("SELECT WINDOW_START(S) AS w FROM S [Rows 5]", TypeError_, "the window of S has no bounds"),
        ("SELECT WINDOW_START(S) AS w FROM S [Tumbling When (a > 1)]", TypeError_, "has no bounds"),
        ("SELECT WINDOW_START(S) AS w FROM S", TypeError_, "the window of S has no bounds"),
        ("SELECT WINDOW_START(R) AS w FROM S [Now], R", TypeError_, "R is none"),
        ("SELECT WINDOW_START(z) AS w FROM S [Now]", BindError, "z is unknown here"),
        ("SELECT WINDOW_START() AS w FROM S [Tumbling 5]", TypeError_, "takes the name of one windowed stream"),
        ("SELECT WINDOW_START(a + 1) AS w FROM S [Tumbling 5]", TypeError_, "takes the name of one"),
        (
            "SELECT WINDOW_START(S) AS w, count(*) AS n FROM S [Tumbling 5]",
            BindError,
            "Add WINDOW_START(S) to GROUP BY",
        ),
    ],
)
def test_wrong_bounds(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        plan(text)
    assert message in str(caught.value)


# -- RSTREAM .. EVERY --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RSTREAM(SELECT a FROM S [Now] EVERY 5 ANCHOR 1)", (5, 1)),
        ("SELECT RSTREAM(a, b EVERY 5) FROM S [Now]", (5, 0)),
        ("SELECT Rstream(a) FROM S [Now]", (None, 0)),
        ("RSTREAM(SELECT origin FROM flights [Now])", (None, 0)),
        ("RSTREAM(SELECT origin FROM flights [Now] EVERY INTERVAL 1 HOUR ANCHOR INTERVAL 5 MINUTES)", (HOUR, 300)),
    ],
)
def test_rstream(text: str, expected: tuple[int | None, int]) -> None:
    bound = plan(text)
    assert (bound.stream, bound.materialize) == ("rstream", ("rstream",))
    assert (bound.every, bound.anchor) == expected


def test_a_nested_rstream_keeps_its_instants() -> None:
    bound = plan("SELECT count(*) AS n FROM (RSTREAM(SELECT a FROM S [Range 5] EVERY 7 ANCHOR 2)) [Range 10] r")
    [inner] = nodes(bound.root, RelationToStream)
    assert (inner.kind, inner.every, inner.anchor) == ("rstream", 7, 2)
    assert (bound.stream, bound.every) == (None, None)


def materialized(clause: str, query: str = "SELECT count(*) AS n FROM flights [Range 1 Hour]") -> Plan:
    [statement] = parse_text(f"CREATE CONTINUOUS QUERY k MATERIALIZE {clause} AS {query}")
    assert isinstance(statement, CreateQuery)
    return bind(statement, TIMES)


def test_materialize_rstream_every() -> None:
    bound = materialized("RELATION, RSTREAM EVERY INTERVAL 1 HOUR ANCHOR INTERVAL 1 MINUTE, ISTREAM")
    assert bound.materialize == ("relation", "rstream", "istream")
    assert (bound.stream, bound.every, bound.anchor) == (None, HOUR, 60)
    assert materialized("RSTREAM").every is None  # one second a tick
    same = "RSTREAM(SELECT origin FROM flights [Now] EVERY 1 Hour)"
    assert materialized("RSTREAM EVERY 60 Minutes", same).every == HOUR
    assert materialized("RSTREAM", same).every == HOUR
    with pytest.raises(ParseError, match="asks for other instants"):
        materialized("RSTREAM EVERY 2 Hours", same)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT ISTREAM(a EVERY 5) FROM S [Now]", ParseError, "EVERY belongs to RSTREAM"),
        ("SELECT a FROM (DSTREAM(SELECT a FROM S [Now] EVERY 5)) [Now] d", ParseError, "EVERY belongs to RSTREAM"),
        ("SELECT RSTREAM(a EVERY 0) FROM S [Now]", ParseError, "EVERY must be longer than zero"),
        ("SELECT RSTREAM(a EVERY 5 Seconds) FROM S [Now]", ParseError, "has a unit of time, but time is BIGINT"),
        ("SELECT RSTREAM(origin EVERY 5) FROM flights [Now]", ParseError, "has no unit"),
        ("SELECT RSTREAM(k) FROM fine [Now]", RefusedError, "a tick is 1 microsecond here"),
        ("SELECT k FROM (SELECT RSTREAM(k) FROM fine [Now]) [Now] r", RefusedError, "RSTREAM without EVERY"),
        ("SELECT RSTREAM(a EVERY INTERVAL 1 MONTH) FROM S", RefusedError, "no fixed length"),
    ],
)
def test_wrong_rstreams(text: str, error: type[Exception], message: str) -> None:
    fine = InputSchema("fine", "stream", (("k", "int"),), TimeDomain("TIMESTAMP", 1))
    with pytest.raises(error) as caught:
        bind_select(text, {**TICKS, **TIMES, "fine": fine})
    assert message in str(caught.value)
