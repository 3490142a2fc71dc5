from __future__ import annotations

from pathlib import Path

from sweeparea.tables.publication.incidents import Incident, Incidents


def test_an_incident_is_opened_once_and_closed(tmp_path: Path):
    one, two = Incidents(tmp_path), Incidents(tmp_path)
    assert one.open() == {}
    assert not list(tmp_path.iterdir())  # asking makes nothing
    first = Incident("lag orders", "behind", 1_700_000_000_000_001)
    one.change([first])
    two.change([Incident("lag orders", "told again", 5), Incident("failed q", "no", 7)])
    assert one.open() == two.open() == {"lag orders": first, "failed q": Incident("failed q", "no", 7)}
    two.change(closed=["lag orders", "nothing of this name"])
    assert [*one.open()] == ["failed q"]
