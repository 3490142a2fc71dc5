"""What the ledger keeps of a commit: JSON as it was, read into types and written from them."""

import json

import pytest

from sweeparea.tables.publication.info import (
    AreaInfo,
    AreasInfo,
    ExchangeInfo,
    QueryInfo,
    RewriteInfo,
    SourceInfo,
    laid_over,
    without,
)

SLICE = (
    '{"definition": "d1", "plan": "p1", "h0": 4, "rows_in": 10, "rows": {"closed": 2, "open": 1}, "state_rows": {"b":'
    ' 3, "a": 0}, "state_bytes": {"b": 90, "a": 0}, "state_touched": {"b": 3}, "state_live": {"b": 2}, "state_keys":'
    ' {"b": ["k"]}, "verdicts": [{"table": "q", "rows": 3, "checks": 1, "warnings": {}}], "seconds": {"plan": 0.5},'
    ' "chronon": 0, "start": 1, "columns": {}, "zones": {"Europe/Berlin": ["x"]}, "correction_seq": 2,'
    ' "rewrite": {"cause": "c", "since": 1, "upto": 2, "rows": "1 out"}, "built": 1}'
)
SOURCE = (
    '{"source_version": 3, "instant": 5, "commit_time": 5, "policy": {"sources": {"a": [1, 2]}}, "correction_seq": 0,'
    ' "taken_back": false, "totals": {"rows": 2}, "rows": 2, "quarantined": 0, "clamped": 0, "definition": "d",'
    ' "source_id": "i", "chronon": 1000000, "chars": {"c": "char(2)"}}'
)


@pytest.mark.parametrize(("kind", "stored"), [(QueryInfo, SLICE), (SourceInfo, SOURCE)])
def test_what_is_stored_is_written_as_it_was_byte_for_byte(kind, stored):
    assert json.dumps(kind.of(json.loads(stored)).to_json()) == stored


def test_rows_of_earlier_versions_lack_fields():
    info = QueryInfo.of({"plan": "p", "state_rows": None})
    assert (info.plan, info.rows_in, info.zones, info.rewrite, info.exchanged) == ("p", None, None, None, None)
    assert info.state == AreasInfo()
    assert QueryInfo.of({"rewrite": {"cause": "c", "of_a_later_version": 1}}).rewrite == RewriteInfo("c")
    assert SourceInfo.of({}) == SourceInfo()
    assert SourceInfo().to_json() == QueryInfo().to_json() == {}


def test_a_commit_lays_its_part_over_what_others_keep():
    stored = {"built": 1, "of_others": [1], "rows": 5}
    told = laid_over(stored, QueryInfo(correction_seq=7), QueryInfo(built=7), QueryInfo(exchanged=None))
    assert json.dumps(told) == '{"built": 7, "of_others": [1], "rows": 5, "correction_seq": 7}'
    assert stored["built"] == 1
    assert without(told, ["of_others", "absent"]) == {"built": 7, "rows": 5, "correction_seq": 7}


def test_an_exchanged_definition_is_stored_from_one_to_another():
    info = QueryInfo(exchanged=ExchangeInfo("old", {"fingerprint": "new"}, False))
    told = {"exchanged": {"from": "old", "to": {"fingerprint": "new"}, "renewed": False}}
    assert info.to_json() == told
    assert QueryInfo.of(told).exchanged == info.exchanged
    assert ExchangeInfo.of({"from": "a", "to": {}}).to_json() == {"from": "a", "to": {}}


def test_facts_of_one_sweep_area():
    areas = AreasInfo.of(json.loads(SLICE))
    assert areas["b"] == AreaInfo(3, 90, 3, 2, ("k",))
    assert areas["a"] == AreaInfo(0, 0)
    areas.grew("a", 2, 50)
    areas.grew("c", 0, 0)
    assert (areas.rows, areas.bytes) == ({"b": 3, "a": 2, "c": 0}, {"b": 90, "a": 50, "c": 0})
