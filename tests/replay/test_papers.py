"""The papers' queries of ``queries/papers``: the oracle states their results, the engine gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from queries.papers.check import files, judged
from tests.replay.compare import difference
from tests.replay.oracle import expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = ("kraemer_2005",)


@pytest.mark.parametrize("file", files(), ids=lambda f: f.stem)
def test_stated_results_are_those_of_plain_sql_at_every_instant(file: Path):
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if all(relation.get("retroactive", True) for relation in case.get("relations", {}).values()):
            wrong = difference(expected(case), case["expected"])
            assert not wrong, f"{case['name']}\n{wrong}"


@pytest.mark.spark
@pytest.mark.parametrize(
    "file", [pytest.param(f, marks=[] if f.stem in QUICK else [pytest.mark.slow], id=f.stem) for f in files()]
)
def test_the_engine_gives_the_stated_results(spark: SparkSession, file: Path):
    wrong = {case["name"]: result for case, result, members in judged(file, spark) if members}
    assert not wrong
