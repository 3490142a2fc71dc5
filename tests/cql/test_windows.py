"""Windows as written, in ticks; and what is wrong with a window's text."""

from __future__ import annotations

import pytest

from sweeparea.cql.errors import ParseError, RefusedError, TypeError_
from sweeparea.operators.logical import Window
from sweeparea.operators.windows import Fixed, Hopping, Landmark, Range, Slide, Unbounded
from sweeparea.operators.windows import Window as Spec
from tests.cql.schemas import nodes, plan

HOUR, DAY = 3600, 86_400


def spec(window: str, stream: str = "S", **arguments: object) -> Spec:
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
        ("[Range 5] [Range 6]", "not expected"),
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
