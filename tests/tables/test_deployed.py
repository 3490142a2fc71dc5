"""The table of what is deployed: rows survive, runs at the same time do not overwrite each other, handles see others'
changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweeparea.tables.deployed import Deployed, DeployedRow
from sweeparea.tables.errors import TableError

ROW = DeployedRow(
    name="q",
    kind="query",
    definition="CREATE CONTINUOUS QUERY q\nAS\nSELECT 'Größe'",
    fingerprint="0123456789abcdef",
    registration="r1",
    depends_on=("s", "t"),
    settings={"range_bounds": "exclusive"},
    engine="0.1.0",
    deployed_at=1_700_000_000_000_001,
)


def test_rows_come_back_as_they_were(tmp_path):
    deployed = Deployed(tmp_path)
    assert deployed.rows() == {}
    assert not (tmp_path / "_sweeparea").exists()  # reading creates nothing
    assert deployed.register(ROW) == ROW
    deployed.put(replace(ROW, name="s", kind="stream", depends_on=(), settings={}))
    assert Deployed(tmp_path).rows()["q"] == ROW
    assert sorted(Deployed(tmp_path).rows()) == ["q", "s"]


def test_who_registers_first_stands(tmp_path):
    one, other = Deployed(tmp_path), Deployed(tmp_path)
    assert one.register(ROW).registration == "r1"
    assert other.register(replace(ROW, registration="r2")).registration == "r1"
    other.put(replace(ROW, registration="r3"))
    assert one.rows()["q"].registration == "r3"


def test_a_change_that_was_overtaken_is_made_again(tmp_path):
    one, other = Deployed(tmp_path), Deployed(tmp_path)
    one.put(ROW)
    seen = []

    def slowly(rows):
        seen.append(sorted(rows))
        if len(seen) == 1:
            other.put(replace(ROW, name="x"))
        return {**rows, "y": replace(ROW, name="y")}

    assert sorted(one.change(slowly)) == ["q", "x", "y"]
    assert seen == [["q"], ["q", "x"], ["q", "x", "y"]]  # the last look shows that it stands
    assert sorted(other.rows()) == ["q", "x", "y"]


def test_pausing_and_removing(tmp_path):
    deployed = Deployed(tmp_path)
    deployed.put(ROW)
    deployed.pause("q", True)
    assert deployed.rows()["q"].paused
    deployed.pause("q", False)
    assert not Deployed(tmp_path).rows()["q"].paused
    with pytest.raises(TableError, match="x is not deployed"):
        deployed.pause("x", True)
    deployed.remove("q")
    deployed.remove("q")
    assert deployed.rows() == {}
