"""NEXMark's queries give their known answers, whatever the strategy and however time is cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from queries.nexmark import answers, demo, loader
from sweeparea.cql.declarations.catalog import Catalog
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.orchestration.process import process
from sweeparea.tables.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = ("q7",)
"""A join of windows with an aggregate."""
SECOND = 1000


def test_each_query_has_an_answer():
    assert set(Catalog.load(loader.FOLDER).queries) == set(answers.expected())


def test_answers_are_compared_by_value():
    known = answers.expected()["q4"]
    assert known["10 6221.5"] == 1


@pytest.fixture(scope="module")
def admitted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Application:
    return demo.take_in(tmp_path_factory.mktemp("nexmark"), spark)


@pytest.mark.spark
@pytest.mark.parametrize(
    "query", [pytest.param(q, marks=[] if q in QUICK else [pytest.mark.slow]) for q in answers.expected()]
)
def test_answer(spark: SparkSession, admitted: Application, query: str):
    assert demo.answer(admitted, query, spark) == ([], [])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("query", ["q3", "q4", "q5", "q8", "q101", "q104"])
def test_answer_in_slices_of_three_seconds(spark: SparkSession, tmp_path: Path, query: str):
    application = demo.take_in(tmp_path, spark)
    cuts = [loader.TICK - k * 3 * SECOND for k in range(1, 21)]
    process(application, query, spark, cuts=cuts)
    table = DeltaTable(Layout(application.data).result(query)).to_pyarrow_table()
    assert answers.final(query, table) == answers.expected()[query]
