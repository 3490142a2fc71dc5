"""Time zones as literals: what Spark would refuse in every slice is told at registration, with what to write."""

from __future__ import annotations

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.text.errors import ParseError, TypeError_
from tests.cql.typed_expressions import INPUT


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("No/Such", "Write {}'Europe/Berlin'"),
        ("europe/berlin", "Write {}'Europe/Berlin'"),
        ("Europe/Berlni", "Did you mean Europe/Berlin?"),
        ("utc", "Write {}'UTC'"),
    ],
)
def test_no_zone_is_told_with_what_to_write(zone: str, hint: str):
    for before in ("from_utc_timestamp(t, ", "convert_timezone('UTC', ", "make_timestamp(1, 2, 3, 4, 5, 6, "):
        head = f"SELECT {before}"
        rest = ", TIMESTAMP_NTZ '2024-01-01 00:00:00')" if before.startswith("convert") else ")"
        with pytest.raises(TypeError_) as caught:
            bind_select(f"{head}'{zone}'{rest} AS x FROM S", INPUT)
        assert str(caught.value).startswith(f"<query>:1:{len(head) + 1}: TypeError: '{zone}' is no time zone")
        assert hint.format("") in str(caught.value)
    with pytest.raises(ParseError, match=f"'{zone}' is no time zone") as told:
        bind_select(f"SELECT k FROM S [Tumbling By day In '{zone}']", INPUT)
    assert hint.format("In ") in str(told.value)


@pytest.mark.parametrize(
    ("zone", "hint"),
    [("Z", "Write In 'UTC'"), ("+05", "Write In 'Etc/GMT-5'"), ("UTC-3", "Etc/GMT\\+3"), ("+05:30", "Asia/Kolkata")],
)
def test_an_offset_is_a_zone_of_sparks_functions_and_none_of_a_calendar(zone: str, hint: str):
    bind_select(f"SELECT to_utc_timestamp(t, '{zone}') AS x FROM S", INPUT)
    with pytest.raises(ParseError, match=hint):
        bind_select(f"SELECT k FROM S [Tumbling By day In '{zone}']", INPUT)


@pytest.mark.parametrize("zone", ["'Europe/Berlin'", "'EST'", "'PST'", "'Etc/GMT+5'", "s", "upper('utc')", "NULL"])
def test_taken(zone: str):
    plan = bind_select(f"SELECT from_utc_timestamp(t, {zone}) AS x FROM S", INPUT)
    assert [(c.label, c.type) for c in plan.root.columns] == [("x", "timestamp")]
    assert plan.root.words(plan.time) == f"Project from_utc_timestamp(t, {zone}) AS x"
