"""The landing table as the scheduler sees it: is there something in the source's folder that was not read?"""

from __future__ import annotations

from pathlib import Path

from sweeparea.tables.sources.landing import LandingTable, arrived, listing, note, source_files


def test_what_came_since_the_source_was_read_is_noticed(tmp_path: Path) -> None:
    source, landing = tmp_path / "in", tmp_path / "landing"
    landing.mkdir()
    assert listing(source_files(str(source))) == {"files": 0, "newest": 0}
    assert arrived(str(landing), str(source), 0.0) == {"files": 0, "newest": 0}
    source.mkdir()
    (source / "a.json").write_text("{}")
    (source / "day=1").mkdir()
    (source / "day=1" / "b.json").write_text("{}")
    for hidden in (".tmp", "_SUCCESS"):
        (source / hidden).write_text("")
    found = arrived(str(landing), str(source), 0.0)
    assert found["files"] == 2
    note(str(landing), found)
    assert arrived(str(landing), str(source), 0.0) == {}
    (source / "c.json").write_text("{}")
    assert arrived(str(landing), str(source), 0.0)["files"] == 3
    assert arrived(str(landing), "", 125.0) == {"minute": 2}


def test_a_table_that_is_not_there_yet_has_the_declared_columns(tmp_path: Path) -> None:
    table = LandingTable(str(tmp_path / "none"), (("t", "BIGINT"), ("s", "struct<a: INT>")))
    assert (table.version(), table.exists()) == (-1, False)
    assert table.spark_schema() == [("t", "bigint"), ("s", "struct<a:int>")]
    assert table.schema().names == ["t", "s"]
