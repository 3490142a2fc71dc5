"""What is stored stays what deployed applications have. ``SWEEPAREA_GOLDEN=write`` writes the golden files anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden import stored
from tests.golden.cases import run_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).parent / "files"
KINDS: dict[str, Callable[[Path], str]] = {
    "identities": lambda _: stored.identities(),
    "fingerprints": stored.fingerprints,
    "deployed": stored.deployed,
}
CASES = ("join_side_waits", "outer_joins")
"""Files of cases whose first one shows what a ledger row and a SweepArea of each layout look like."""


def _same(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.json"
    if os.environ.get("SWEEPAREA_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    known = file.read_text(encoding="utf-8")
    # not one assertion over the whole: the lines that differ are what one wants to see
    lines, held = text.splitlines(), known.splitlines()
    gone, come = ([line for line in a if line not in b] for a, b in ((held, lines), (lines, held)))
    told = "\n".join(["deployed applications have", *gone[:3], "and now it is", *come[:3]])
    assert text == known, told


@pytest.mark.parametrize("name", KINDS)
def test_what_is_stored_is_as_deployed_applications_have_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    _same(name, KINDS[name](tmp_path))


@pytest.mark.spark
def test_ledger_rows_and_tables_are_as_deployed_applications_have_them(spark: SparkSession) -> None:
    folder = Path(__file__).parents[1] / "replay" / "cases"
    texts = ((folder / f"{name}.jsonl").read_text(encoding="utf-8") for name in CASES)
    found: dict[str, Any] = {f["name"]: f for f in run_all((json.loads(t.splitlines()[0]) for t in texts), spark)}
    rows = {f"{name}: {row['name']} {row['seq']}": row for name, case in found.items() for row in case["ledger"]}
    tables = {f"{name}: tables": case["tables"] for name, case in found.items()}
    _same("ledger", stored.as_text({**rows, **tables}))
