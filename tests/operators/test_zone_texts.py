from __future__ import annotations

import pytest

from sweeparea.operators.zone_texts import guarded, named, varies

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
