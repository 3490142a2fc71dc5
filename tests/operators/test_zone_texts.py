from __future__ import annotations

import pytest

from sweeparea.operators.sql.zone_texts import bounded, elsewhere, guarded, named, varies

ZONES = frozenset({"Europe/Berlin", "America/Mexico_City", "Cuba", "CET", "EST", "Etc/GMT+5", "UTC"})


@pytest.mark.parametrize(
    ("text", "zones", "in_rows"),
    [
        ("from_utc_timestamp(`c0`, 'Cuba')", {"Cuba"}, False),
        ("To_Utc_Timestamp (`c0`, ('EST'))", {"EST"}, False),
        ("`c1` = 'Cuba'", set(), False),
        ("IF(`c1` = 'Cuba', from_utc_timestamp(`c0`, 'CET'), `c0`)", {"CET"}, False),
        ("from_utc_timestamp(IF(`c1` = 'Cuba', `c0`, `c2`), 'CET')", {"CET"}, False),
        ("convert_timezone('CET', 'EST', `c0`)", {"CET", "EST"}, False),
        ("convert_timezone(upper('cet'), 'EST', `c0`)", {"EST"}, True),
        ("make_timestamp(2024, 1, 1, 0, 0, 0)", set(), False),
        ("make_timestamp(2024, 1, 1, 0, 0, 0, `z`)", set(), True),
        ("make_timestamp(2024, 1, 1, 0, 0, 0, 'Etc/GMT+5')", {"Etc/GMT+5"}, False),
        ("`c0` > TIMESTAMP '2024-01-01 00:00:00 Cuba'", {"Cuba"}, False),
        ("`c0` > TIMESTAMP '2024-01-01 00:00:00.5 America/Mexico_City'", {"America/Mexico_City"}, False),
        ("from_json(`c0`, 'a TIMESTAMP', map('timeZone', 'Cuba'))", {"Cuba"}, False),
        ("from_utc_timestamp(`c0`, 'No/Such')", set(), False),
        ("from_utc_timestamp(`c0`, CASE WHEN `c1` THEN 'CET' ELSE `z` END)", {"CET"}, True),
    ],
)
def test_zones_of_an_expression(text: str, zones: set[str], in_rows: bool):
    assert named(text, ZONES) == zones
    assert varies(text) == in_rows
    assert (guarded(text, ["Cuba"], "it's {zone}") != text) == in_rows


def test_only_the_zone_of_a_call_is_guarded():
    text = "convert_timezone('CET', `z`, to_utc_timestamp(`c0`, `y`))"
    made = guarded(text, ["Cuba", "EST"], "no {zone}")
    assert made.startswith("convert_timezone('CET', CASE WHEN (`z`) IN ('Cuba', 'EST') THEN raise_error(")
    assert "to_utc_timestamp(`c0`, CASE WHEN (`y`) IN ('Cuba', 'EST')" in made


def test_a_zone_that_differs_at_some_instants_fails_there_alone():
    spans = {"Cuba": [(None, 0), (5, 8)], "CET": [(None, None)]}

    def made(text: str) -> str:
        return bounded(text, spans, "it's {}".format)

    inner = "from_utc_timestamp(`a` + f(1, 2), 'EST')"
    assert made(inner) == inner
    one = made(f"to_utc_timestamp({inner}, ('Cuba')) > `t`")
    assert one.startswith(f"to_utc_timestamp(transform(array(CAST({inner} AS TIMESTAMP)), __at -> CASE WHEN")
    assert one.endswith("raise_error('it\\'s Cuba') ELSE __at END)[0], ('Cuba')) > `t`")
    # a local time is that of an instant within a day of it
    assert "(unix_seconds(__at) < 86400) OR (unix_seconds(__at) >= -86395 AND unix_seconds(__at) < 86408)" in one
    both = made("from_utc_timestamp(to_utc_timestamp(x, 'Cuba'), 'CET') || from_utc_timestamp(x, 'Cuba')")
    assert (both.count("transform("), both.count("IS NOT NULL"), both.count("(x AS")) == (3, 1, 2)


@pytest.mark.parametrize(
    ("text", "zones"),
    [
        ("from_utc_timestamp(to_utc_timestamp(`c0`, 'CET'), ('Cuba'))", set()),
        ("from_utc_timestamp(`c0`, 'CET') > TIMESTAMP '2024-01-01 00:00:00 CET'", {"CET"}),
        ("convert_timezone('CET', 'EST', `c0`)", {"CET", "EST"}),
        ("from_utc_timestamp(`c0`, IF(`c1`, 'CET', 'EST'))", {"CET", "EST"}),
        ("from_utc_timestamp(TIMESTAMP '2024-01-01 America/Mexico_City', 'CET')", {"America/Mexico_City"}),
    ],
)
def test_zones_that_are_named_where_no_instant_is(text: str, zones: set[str]):
    assert elsewhere(text, ZONES) == zones
