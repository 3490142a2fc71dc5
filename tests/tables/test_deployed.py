"""The table of what is deployed: rows survive, runs at the same time do not overwrite each other, handles see others'
changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweeparea.tables.errors import TableError
from sweeparea.tables.publication.deployed import Deployed, DeployedRow, definition
from sweeparea.tables.publication.ledger import Ledger, LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.publish import apply, recover

ROW = DeployedRow(
    name="q",
    kind=NameKind.QUERY,
    definition="CREATE CONTINUOUS QUERY q\nAS\nSELECT 'Größe'",
    fingerprint="0123456789abcdef",
    registration="r1",
    depends_on=("s", "t"),
    settings={"range_bounds": "exclusive"},
    engine="0.1.0",
    deployed_at=1_700_000_000_000_001,
)


def put(deployed: Deployed, row: DeployedRow) -> None:
    """A name with whatever row a test wants."""
    deployed.change(lambda rows: {**rows, row.name: row})


def test_rows_come_back_as_they_were(tmp_path):
    deployed = Deployed(tmp_path)
    assert deployed.rows() == {}
    assert not (tmp_path / "_sweeparea").exists()  # reading creates nothing
    assert deployed.register(ROW) == ROW
    put(deployed, replace(ROW, name="s", kind=NameKind.STREAM, depends_on=(), settings={}))
    assert Deployed(tmp_path).rows()["q"] == ROW
    assert sorted(Deployed(tmp_path).rows()) == ["q", "s"]


def test_who_registers_first_stands(tmp_path):
    one, other = Deployed(tmp_path), Deployed(tmp_path)
    assert one.register(ROW).registration == "r1"
    assert other.register(replace(ROW, registration="r2")).registration == "r1"
    put(other, replace(ROW, registration="r3"))
    assert one.rows()["q"].registration == "r3"


def test_a_change_that_was_overtaken_is_made_again(tmp_path):
    one, other = Deployed(tmp_path), Deployed(tmp_path)
    put(one, ROW)
    seen = []

    def slowly(rows):
        seen.append(sorted(rows))
        if len(seen) == 1:
            put(other, replace(ROW, name="x"))
        return {**rows, "y": replace(ROW, name="y")}

    assert sorted(one.change(slowly)) == ["q", "x", "y"]
    assert seen == [["q"], ["q", "x"], ["q", "x", "y"]]  # the last look shows that it stands
    assert sorted(other.rows()) == ["q", "x", "y"]


def test_pausing_and_removing(tmp_path):
    deployed = Deployed(tmp_path)
    put(deployed, ROW)
    deployed.pause("q", True)
    assert deployed.rows()["q"].paused
    deployed.pause("q", False)
    assert not Deployed(tmp_path).rows()["q"].paused
    with pytest.raises(TableError, match="x is not deployed"):
        deployed.pause("x", True)
    deployed.remove("q", "r0")
    assert deployed.rows() == {"q": ROW}, "of another registration"
    deployed.remove("q", "r1")
    deployed.remove("q", "r1")
    assert deployed.rows() == {}


def test_only_what_stands_is_succeeded(tmp_path):
    deployed = Deployed(tmp_path)
    two, three = replace(ROW, registration="r2"), replace(ROW, registration="r3")
    assert deployed.succeed(ROW, "r0") is None
    assert deployed.succeed(ROW, None) == ROW
    deployed.pause("q", True)
    assert deployed.succeed(two, "r1") == replace(two, paused=True)
    assert deployed.succeed(three, "r1") == replace(two, paused=True), "somebody else was faster"
    assert deployed.succeed(three, None) == replace(two, paused=True)


def test_a_commit_of_a_new_definition_brings_it_once_however_often_it_is_applied(tmp_path):
    deployed, ledger = Deployed(tmp_path), Ledger(tmp_path)
    put(deployed, replace(ROW, paused=True))
    new = replace(ROW, definition="CREATE ..", fingerprint="f2", depends_on=("s",), settings={}, planned={"shared": []})
    info = {"exchanged": {"from": ROW.fingerprint, "to": definition(new)}}
    row = ledger.commit(
        LedgerRow("q", NameKind.QUERY, "r1", 1, 10, attempt="a" * 32, info=info, at=1_700_000_000_000_777), None
    )
    assert deployed.rows()["q"].fingerprint == ROW.fingerprint, "a run that was killed here"
    assert recover(tmp_path, ledger) == ["q"]
    brought = replace(new, paused=True, deployed_at=row.at)
    assert Deployed(tmp_path).rows()["q"] == brought
    put(deployed, replace(brought, planned={"shared": ["x"]}))
    apply(ledger, row)
    assert deployed.rows()["q"].planned == {"shared": ["x"]}, "it had been applied"
    put(deployed, replace(brought, fingerprint="f3", deployed_at=5))
    apply(ledger, row)
    assert deployed.rows()["q"].fingerprint == "f3", "what was deployed since stays"
    put(deployed, replace(ROW, registration="r2"))
    apply(ledger, row)
    assert deployed.rows()["q"].definition == ROW.definition, "a name that was made anew is another one"
