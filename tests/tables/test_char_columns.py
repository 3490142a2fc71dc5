"""CHAR(n) columns of a source are padded when they are read; other notes beside a column are followed or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake

from sweeparea.tables.errors import TableError
from sweeparea.tables.sources.source import SourceTable

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
KINDS = {
    "c": ("string", "char(3)"),
    "v": ("string", "varchar(3)"),
    "st": (pa.struct([("x", pa.string()), ("y", pa.int32())]), "struct<x:char(3),y:int>"),
    "ar": (pa.list_(pa.string()), "array<char(3)>"),
    "m": (pa.map_(pa.string(), pa.string()), "map<char(2),varchar(9)>"),
}


def made(path: Path, partitioned: bool = False) -> None:
    """A table as Spark declares it, written by another engine, which pads nothing."""
    arrow = pa.schema([(n, pa.string() if k == "string" else k) for n, (k, _) in KINDS.items()])  # type: ignore[misc]
    plain = Schema.from_arrow(arrow)
    fields = [Field(f.name, f.type, metadata={DECLARED: KINDS[f.name][1]}) for f in plain.fields]
    DeltaTable.create(str(path), Schema(fields), partition_by=["c"] if partitioned else None)
    rows = [
        {"c": "é", "v": "é", "st": {"x": "a", "y": 1}, "ar": ["a", None], "m": [("k", "w")]},
        {"c": None, "v": None, "st": None, "ar": None, "m": None},
        {"c": "long", "v": "long", "st": {"x": None, "y": 2}, "ar": [], "m": []},
    ]
    for row in (rows[:1], rows[1:]):
        write_deltalake(str(path), pa.Table.from_pylist(row, schema=arrow), mode="append")


@pytest.mark.parametrize("partitioned", [False, True])
def test_char_values_are_padded_and_longer_ones_stay(tmp_path: Path, partitioned: bool) -> None:
    made(tmp_path / "t", partitioned)
    source = SourceTable(tmp_path / "t")
    assert source.version() == 2
    by_commit = [
        *source.changes(1).drop_columns(["__n"]).to_pylist(),
        *source.changes(2).drop_columns(["__n"]).to_pylist(),
    ]
    whole = source.snapshot(2).to_pylist()
    assert sorted(by_commit, key=repr) == sorted(whole, key=repr)
    assert sorted((r["c"], r["v"]) for r in whole if r["c"]) == [("long", "long"), ("é  ", "é")]
    padded = next(r for r in whole if r["c"] == "é  ")
    assert (padded["st"], padded["ar"], padded["m"]) == ({"x": "a  ", "y": 1}, ["a  ", None], [("k ", "w")])
    source.padded = {}
    assert sorted(r["c"] for r in source.snapshot(2).to_pylist() if r["c"]) == ["long", "é"]


def rewritten(path: Path, column: str, metadata: dict[str, object]) -> None:
    """The table's columns with other notes beside one of them."""
    log = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            next(f for f in schema["fields"] if f["name"] == column)["metadata"] = metadata
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_a_collation_is_refused_by_its_name(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1], "s": ["x"]}))
    rewritten(tmp_path / "t", "s", {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}})
    with pytest.raises(TableError, match=r"Column s of the source table .* has the collation spark\.UTF8_LCASE"):
        SourceTable(tmp_path / "t").version()
    rewritten(tmp_path / "t", "s", {"__COLLATIONS": {"s": "spark.UTF8_BINARY"}})
    assert SourceTable(tmp_path / "t").version() == 0


def test_defaults_generated_and_identity_columns_are_as_they_were_stored(tmp_path: Path) -> None:
    """Delta gives a file that lacks a column NULL there, whatever the column's default or expression."""
    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1], "s": ["x"], "i": [7]}))
    rewritten(tmp_path / "t", "s", {"CURRENT_DEFAULT": "'d'", "delta.generationExpression": "upper('q')"})
    rewritten(tmp_path / "t", "i", {"delta.identity.start": 1, "delta.identity.step": 1})
    rows = pa.table({"a": pa.array([2], pa.int64())})
    write_deltalake(str(tmp_path / "plain"), rows)
    file = next((tmp_path / "plain").glob("*.parquet"))
    file.rename(tmp_path / "t" / "lacks.parquet")
    add = {"path": "lacks.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": add}) + "\n")
    source = SourceTable(tmp_path / "t")
    assert source.version() == 1
    assert source.changes(0).to_pylist() == [{"a": 1, "s": "x", "i": 7, "__n": 1}]
    assert source.changes(1).to_pylist() == [{"a": 2, "s": None, "i": None, "__n": 1}]
