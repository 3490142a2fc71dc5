"""The user's own functions, a non-retroactive relation and a materialized Rstream, from ``.cql`` files to tables."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea.cql.errors import BindError
from sweeparea.infra import settings
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.slices.process import process
from tests.spark_jobs import shop

MODULE = """
import pyarrow as pa
import pyarrow.compute as pc

from sweeparea.operators.user import aggregate, function, window


@function(returns="double")
def doubled(values):
    return pc.multiply(values, 2.0)


@aggregate(returns="double")
def spread(values):
    bounds = pc.min_max(values)
    return pc.subtract(bounds["max"], bounds["min"])


@window(pattern="WK")
def hold_for(instants, lengths):
    return instants, pc.add(instants, lengths)
"""
FUNCTIONS = """
CREATE FUNCTION doubled AS '{module}:doubled';
CREATE AGGREGATE spread AS '{module}:spread';
CREATE WINDOW hold_for AS '{module}:hold_for';
CREATE RELATION towns FROM DELTA 'source/towns' NON RETROACTIVE;
CREATE CONTINUOUS QUERY twice MATERIALIZE ISTREAM AS SELECT shop, doubled(amount) AS d FROM sales;
CREATE CONTINUOUS QUERY spreads START AT TIMESTAMP '2020-01-01 00:00:00' AS
  SELECT shop, spread(amount) AS s FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop;
CREATE CONTINUOUS QUERY held START AT TIMESTAMP '2020-01-01 00:00:00' AS
  SELECT shop, items FROM sales [hold_for(items)];
CREATE CONTINUOUS QUERY placed START AT TIMESTAMP '2020-01-01 00:00:00' MATERIALIZE RSTREAM EVERY INTERVAL 60 SECONDS AS
  SELECT town, COUNT(*) AS n FROM sales [RANGE INTERVAL 60 SECONDS] JOIN towns ON sales.shop = towns.shop GROUP BY town;
"""


def _application(folder: Path, module: str):
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / f"{module}.py").write_text(MODULE)
    towns = pa.table({"shop": ["a", "b"], "town": ["Ulm", "Bonn"]})
    write_deltalake(str(folder / "data" / "source" / "towns"), towns)
    for day in shop.DAYS:
        shop.sell(folder, day)
    return shop.application(folder, shop.STREAM + FUNCTIONS.format(module=module))


@pytest.mark.spark
def test_the_users_code_runs_on_the_workers(tmp_path: Path, spark) -> None:
    app = _application(tmp_path, "shop_measures")
    admit(app, "towns", spark)
    admit(app, "sales", spark)
    for query in ("twice", "spreads", "held", "placed"):
        process(app, query, spark)
    assert {row[:2] for row in shop.contents(app, "twice")} >= {("a", 0.2), ("b", 2e16), ("b", 5.0), ("a", 1.4)}
    spreads = {(town, round(spread, 9)) for town, spread, *_ in shop.contents(app, "spreads")}
    assert {("a", 0.0), ("b", 0.0), ("a", 0.1), ("a", 0.2)} <= spreads
    held = {(s, n): (b - a).total_seconds() for s, n, a, b in shop.contents(app, "held") if b is not None}
    assert held[("a", 7)] == 7
    assert held[("b", 4)] == 4
    # at 12:01:00 the window holds a at 0, 9, 30 and b at 5, 40; the relation's own tables are beside it
    at_one = {row[:2] for row in shop.contents(app, "placed__rstream") if row[2] == shop.NOON.replace(minute=1)}
    assert at_one == {("Ulm", 3), ("Bonn", 2)}


@pytest.mark.spark
def test_the_example_of_the_documentation(tmp_path: Path, spark) -> None:
    """docs/functions.md, word for word."""
    text = (settings.source_root() or Path()).joinpath("docs", "functions.md").read_text("utf-8")
    own = text.partition("## Your own, in Python")[2]
    (code,), sql = re.findall(r"```python\n(.*?)```", own, re.S), re.findall(r"```sql\n(.*?)```", own, re.S)
    (tmp_path / "shop").mkdir()
    module = f"measures_{tmp_path.name}"
    (tmp_path / "shop" / f"{module}.py").write_text(code)
    rows = {"sensor": ["a", "a"], "level": [212.0, 32.0], "at": [shop.NOON, shop.NOON + timedelta(seconds=9)]}
    write_deltalake(str(tmp_path / "data" / "source" / "readings"), pa.table(rows))
    stream = "CREATE STREAM readings FROM DELTA 'source/readings' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND\n"
    declared = "".join(sql).replace("'measures:", f"'{module}:")
    app = shop.application(tmp_path, f"{stream} HEARTBEAT FOR at AS at + INTERVAL 1 DAY;\n{declared}")
    admit(app, "readings", spark)
    for query in ("warm", "swing"):
        process(app, query, spark)
    assert {(c, (b - a).total_seconds()) for _, c, a, b in shop.contents(app, "warm")} == {(100.0, 60), (0.0, 60)}
    assert {row[1] for row in shop.contents(app, "swing")} == {0.0, 180.0}


def test_code_that_is_not_there_is_told_with_its_place(tmp_path: Path) -> None:
    text = (
        shop.STREAM
        + "CREATE FUNCTION f AS 'no_such_module:f';\nCREATE CONTINUOUS QUERY q AS SELECT f(items) FROM sales;"
    )
    shop.sell(tmp_path, shop.DAYS[0])
    app = shop.application(tmp_path, text)
    with pytest.raises(
        BindError, match=r"function f: There is no Python module no_such_module.*\n?.*CREATE FUNCTION f"
    ) as told:
        app.plan("q")
    assert f"that are searched: {tmp_path / 'shop'}, " in str(told.value)
