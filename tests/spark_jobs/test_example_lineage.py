"""Lineage of the example applications' queries: what is named is read, and the parts that one can tell by eye."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from queries.nexmark import loader
from sweeparea.infra import settings
from sweeparea.operators.linear.scan import Scan
from sweeparea.operators.plan.influence import Influence
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.lineage import Lineage, lineage

FLIGHTS = {
    "flights": [
        *(("id", pa.int64()), ("departed", pa.timestamp("us", "UTC")), ("tailnum", pa.string())),
        *(("origin", pa.string()), ("dest", pa.string()), ("dep_delay", pa.int64()), ("distance_km", pa.float64())),
    ],
    "planes": [("tailnum", pa.string()), ("year", pa.int64()), ("manufacturer", pa.string()), ("seats", pa.int64())],
}
INSTANTS = {"__tick", "valid_from", "valid_to", "ts"}
TIES = {Influence.SORT, Influence.WINDOW}


@pytest.fixture(scope="module")
def examples(tmp_path_factory) -> dict[str, Application]:
    """The examples over source tables of their own."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("flights", "nexmark"):
        (folder / name).mkdir()
        for file in (settings.applications_folder() / name).glob("*.cql"):
            shutil.copy(file, folder / name)
    for table, columns in FLIGHTS.items():
        write_deltalake(str(folder / "flights/.data/source" / table), pa.schema(columns).empty_table())
    loader.load(folder / "nexmark/.data")
    return {name: Application.open(folder / name) for name in ("flights", "nexmark")}


def named(found: Lineage) -> Iterator[tuple[str, str, frozenset[Influence]]]:
    """All columns of inputs that a lineage names, each behind the last part of its table's address."""
    for output in found.outputs:
        for given in (output.decided, *output.made.values()):
            yield from ((Path(address).name, column, how) for (address, column), how in given.items())


@pytest.mark.parametrize("name", ["flights", "nexmark"])
def test_every_column_that_is_named_is_read(examples, name):
    """By the plan's scans, and by the query's own text."""
    app = examples[name]
    for query in app.catalog.queries:
        plan, text = app.plans.whole(query), app.query(query).written
        words = {word.lower() for word in re.findall(r"\w+", text)}
        scans = [node for node in plan.root.walk() if isinstance(node, Scan)]
        read = {(scan.name, column) for scan in scans for _, column in scan.source}
        found = lineage(app, query)
        assert [*named(found)], query
        for table, column, how in named(found):
            if column in INSTANTS:
                continue
            assert (table, column) in read, f"{query}: {table}.{column}"
            # an order is made complete by all columns of its rows, written or not
            assert column.lower() in words or "*" in text or how <= TIES, f"{query}: {table}.{column}"
        for output in found.outputs:
            assert {"valid_from", "valid_to"} <= set(output.made) or "ts" in output.made


def test_flights(examples):
    app = examples["flights"]
    flights, planes = (str(app.data / f"admitted/{name}") for name in ("flights", "planes"))
    found = lineage(app, "seats_in_air")
    (result,) = found.outputs
    assert {table.address for table in found.inputs} == {flights, planes}
    both = {(flights, "distance_km"), (planes, "seats")}
    assert set(result.made["seat_km"]) == both
    assert {how for each in result.made["seat_km"].values() for how in each} == {Influence.AGGREGATION}
    assert result.made["manufacturer"] == {(planes, "manufacturer"): frozenset({Influence.IDENTITY})}
    assert result.made["departures"] == {}
    assert result.decided == {
        (flights, "tailnum"): frozenset({Influence.JOIN}),
        (planes, "tailnum"): frozenset({Influence.JOIN}),
        (planes, "manufacturer"): frozenset({Influence.GROUP_BY}),
    }
    alerts = lineage(app, "congestion_alerts").outputs[0]
    assert alerts.made["worst_hours"] == {(flights, "dep_delay"): frozenset({Influence.AGGREGATION})}
    assert alerts.decided[flights, "dep_delay"] == frozenset({Influence.FILTER})
    assert set(alerts.made["ts"]) == {(flights, "__tick")}  # planes is static, and not read


def test_nexmark_top(examples):
    app = examples["nexmark"]
    bid = str(app.data / "admitted/bid")
    (result, *_) = lineage(app, "q19").outputs
    assert result.made["price"] == {(bid, "price"): frozenset({Influence.IDENTITY})}
    assert all(how == frozenset({Influence.WINDOW}) for how in result.made["place"].values())
    assert {(bid, "price"), (bid, "auction")} <= set(result.made["place"])
    assert {(bid, "price"), (bid, "auction")} <= set(result.decided)
    assert Influence.GROUP_BY in result.decided[bid, "auction"]
