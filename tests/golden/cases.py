"""Replay cases, and what they leave behind: the ledger's rows, the names and schemas of their tables.

Only what differs from run to run by right is taken out: instants of the clock, seconds, names by chance and the sizes
of files.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from sweeparea.spark_jobs.cases.case import Case
from sweeparea.spark_jobs.spark.errors import readable
from sweeparea.tables.publication.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

_BY_CHANCE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b|(?<=-)[0-9a-f]{8}(?=\.parquet)"
)
_OF_THE_CLOCK = ("seconds", "at", "size")


def run_all(cases: Iterable[dict[str, Any]], spark: SparkSession, threads: int = 2) -> Iterator[dict[str, Any]]:
    """``run`` of each case, in order, ``threads`` side by side on one session."""
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(partial(run, spark=spark), cases)


def run(case: dict[str, Any], spark: SparkSession) -> dict[str, Any]:
    """``result``: what replay gives; ``tables``: schemas by path; ``ledger``: each commit's row, as it is stored."""
    folder = Path(tempfile.mkdtemp(prefix="sweeparea-kept-"))
    try:
        try:
            result = Case(case, folder, spark).run()
        except Exception as error:
            told = readable(error, "replay")
            result = {"error": {"type": told.type, "message": _fixed(str(told), folder)}}
        return {"name": case.get("name"), "result": result, **stored(folder)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stored(data: Path) -> dict[str, Any]:
    """``tables`` and ``ledger`` of a data folder."""
    logs = sorted(p.parent for p in data.rglob("_delta_log"))
    tables = {str(p.relative_to(data)): json.loads(DeltaTable(str(p)).schema().to_json()) for p in logs}
    ledger = Ledger(str(data))
    rows = sorted(ledger.history(), key=lambda row: (row.name, row.seq))
    told = [{f.name: getattr(row, f.name) for f in fields(row)} for row in rows]
    return {"tables": {path: _columns(schema) for path, schema in tables.items()}, "ledger": _fixed(told, data)}


def _columns(schema: dict[str, Any]) -> dict[str, Any]:
    return {column["name"]: column["type"] for column in schema["fields"]}


def _fixed(value: Any, folder: Path) -> Any:
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        return {
            _fixed(key, folder): "" if key in _OF_THE_CLOCK else _fixed(each, folder) for key, each in value.items()
        }
    if isinstance(value, list):
        made = [_fixed(each, folder) for each in value]
        # files of one commit are listed by their names
        return sorted(made, key=json.dumps) if made and isinstance(made[0], dict) and "path" in made[0] else made
    return _BY_CHANCE.sub("*", value.replace(str(folder), "<data>")) if isinstance(value, str) else value
