"""Interval literals: what Spark's parser takes for one is one, what it refuses is refused with its place."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.text.errors import ParseError, TypeError_
from tests.cql.typed_expressions import INPUT

DAY_TIME = {
    "INTERVAL '1' DAY": "interval day",
    "INTERVAL 2 WEEKS 1 DAY": "interval day",
    "INTERVAL '1' DAY 1 HOUR": "interval day to hour",
    "INTERVAL '1' DAY + 1 HOUR": "interval day to hour",
    "INTERVAL 1 DAY -1 HOUR": "interval day to hour",
    "INTERVAL 1 HOUR - '1' DAY": "interval day to hour",
    "INTERVAL 1 DAY + 2 HOURS 3 MINUTES": "interval day to minute",
    "INTERVAL 1 DAY /* and */ 1 MILLISECOND": "interval day to second",
    "INTERVAL '1 day -2 hours'": "interval day to hour",
    "INTERVAL 'interval 1.5 seconds'": "interval second",
    "INTERVAL -.5 SECOND": "interval second",
    "INTERVAL '+1' DAY": "interval day",
    "INTERVAL - '1' DAY": "interval day",
    "INTERVAL r'1' DAY": "interval day",
    "INTERVAL '106751991' DAY": "interval day",
    "INTERVAL -'-1 2:3:4.5' DAY TO SECOND": "interval day to second",
    "INTERVAL '99:59' MINUTE TO SECOND": "interval minute to second",
}
MONTHS = {
    "INTERVAL '1' YEAR - 1 MONTH": "interval year to month",
    "INTERVAL '-1-11' YEAR TO MONTH": "interval year to month",
    "INTERVAL '178956970' YEAR": "interval year",
}


@pytest.mark.parametrize(("text", "type_"), [*DAY_TIME.items(), *MONTHS.items()])
def test_spark_s_intervals_are_taken_with_their_types(text: str, type_: str):
    (column,) = bind_select(f"SELECT {text} > NULL AS b, {text} AS z FROM S", INPUT).root.columns[1:]
    assert column.type == type_
    (column,) = bind_select(f"SELECT t + {text} AS z FROM S", INPUT).root.columns
    assert column.type == "timestamp"


@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize(
    "interval", ["INTERVAL '1' DAY", "INTERVAL 1 DAY + 2 HOURS", "INTERVAL '1 day'", "INTERVAL '1 02' DAY TO HOUR"]
)
def test_a_number_without_a_unit_is_an_operand(interval: str, sign: str):
    for number in ("1", "2.5"):
        with pytest.raises(TypeError_, match=rf"^<query>:1:13: TypeError: \{sign} cannot take INTERVAL"):
            bind_select(f"SELECT t + ({interval} {sign} {number}) AS z FROM S", INPUT)
    with pytest.raises(TypeError_, match=r"^<query>:1:8: TypeError: \+ cannot take t \+ INTERVAL"):
        bind_select("SELECT t + INTERVAL '1' DAY + 1 AS z FROM S", INPUT)
    with pytest.raises(TypeError_, match=r"^<query>:1:12: TypeError: \+ cannot take 2"):
        bind_select("SELECT t +(2 + INTERVAL '1' DAY) AS z FROM S", INPUT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INTERVAL 5", "no unit of time"),
        ("INTERVAL '5'", "'5' is no interval"),
        ("INTERVAL 'x'", "'x' is no interval"),
        ("INTERVAL '1day'", "'1day' is no interval"),
        ("INTERVAL '1.5 days'", "fraction"),
        ("INTERVAL '1.5' MINUTE", "fraction"),
        ("INTERVAL 1.1234567890 SECONDS", "too fine"),
        ("INTERVAL '1 02:03' DAY", "'1 02:03' is no number of days"),
        ("INTERVAL '1-2' YEAR", "'1-2' is no number of years"),
        ("INTERVAL '' DAY", "'' is no number of days"),
        ("INTERVAL 1L DAY", "no unit of time"),
        ("INTERVAL '1' QUARTER", "QUARTER is no unit .*INTERVAL 3 MONTHS"),
        ("INTERVAL '1 dya'", "dya is no unit .*Did you mean day"),
        ("INTERVAL 1 DAY 1 MONTH", "not both"),
        ("INTERVAL '1 day 1 month'", "not both"),
        ("INTERVAL '1 02:03' DAY TO SECOND", "does not fit DAY TO SECOND"),
        ("INTERVAL '1 24' DAY TO HOUR", "does not fit DAY TO HOUR"),
        ("INTERVAL '1-12' YEAR TO MONTH", "does not fit YEAR TO MONTH"),
        ("INTERVAL '1' HOUR TO DAY", "HOUR TO DAY is no interval"),
        ("INTERVAL '1' DAYS TO SECONDS", "DAYS TO SECONDS is no interval"),
        ("INTERVAL 1 DAY TO SECOND", "needs a text in quotes"),
        ("INTERVAL '106751992' DAY", "longer than Spark can hold"),
        ("INTERVAL '178956971' YEAR", "longer than Spark can hold"),
        ("INTERVAL 99999999999999999999 DAY", "longer than Spark can hold"),
    ],
)
def test_what_spark_s_parser_refuses_is_refused(text: str, said: str):
    with pytest.raises(ParseError, match=rf"(?s)^<query>:1:12: ParseError: .*{said}"):
        bind_select(f"SELECT t + {text} AS z FROM S", INPUT)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("INTERVAL k DAYS", r"Write k \* INTERVAL 1 DAYS"), ("INTERVAL DAY '1'", "Write INTERVAL '1' DAY")],
)
def test_an_amount_that_is_computed_or_misplaced_gets_the_spelling(text: str, hint: str):
    with pytest.raises(ParseError, match=rf"(?s)^<query>:1:21: ParseError: .*{hint}"):
        bind_select(f"SELECT t + {text} AS z FROM S", INPUT)
