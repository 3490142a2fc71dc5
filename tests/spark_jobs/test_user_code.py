"""The user's own functions, a non-retroactive relation and a materialized Rstream, from ``.cql`` files to tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sweeparea.cql.text.errors import BindError
from sweeparea.infra import settings
from sweeparea.operators import user
from sweeparea.operators.plan.plan import UserKind
from sweeparea.operators.user_code.user_modules import Modules
from sweeparea.spark_jobs.admission.admit import admit
from sweeparea.spark_jobs.commands import jobs
from sweeparea.spark_jobs.declarations.user_code import source_fingerprint
from sweeparea.spark_jobs.orchestration.planner import plan
from sweeparea.spark_jobs.orchestration.process import process
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


class Items:
    def __init__(self):
        self.total = 0

    def add(self, items, shop):
        self.total += (items or 0) * len(shop or "")

    def remove(self, items, shop):
        self.total -= (items or 0) * len(shop or "")

    def merge(self, other):
        self.total += other.total

    def value(self):
        return self.total


@aggregate(returns="bigint", state=Items)
def weighed(items, shops):
    return sum((n or 0) * len(shop or "") for n, shop in zip(items.to_pylist(), shops.to_pylist()))


@window(pattern="WK")
def hold_for(instants, lengths):
    return instants, pc.add(instants, lengths)
"""
FUNCTIONS = """
CREATE FUNCTION doubled AS '{module}:doubled';
CREATE AGGREGATE spread AS '{module}:spread';
CREATE AGGREGATE weighed AS '{module}:weighed';
CREATE WINDOW hold_for AS '{module}:hold_for';
CREATE RELATION towns FROM DELTA 'source/towns' NON RETROACTIVE;
CREATE CONTINUOUS QUERY twice MATERIALIZE ISTREAM AS SELECT shop, doubled(amount) AS d FROM sales;
CREATE CONTINUOUS QUERY spreads START AT TIMESTAMP '2020-01-01 00:00:00' AS
  SELECT shop, spread(amount) AS s FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop;
CREATE CONTINUOUS QUERY weights WITH (strict = true) START AT TIMESTAMP '2020-01-01 00:00:00' AS
  SELECT shop, weighed(items, shop) AS w, SUM(items) AS s FROM sales [RANGE INTERVAL 60 SECONDS] GROUP BY shop;
CREATE CONTINUOUS QUERY near WITH (strict = true) START AT TIMESTAMP '2020-01-01 00:00:00' AS
  SELECT shop, weighed(items, shop) OVER w AS a, SUM(items) OVER w AS b FROM sales [RANGE INTERVAL 60 SECONDS]
  WINDOW w AS (PARTITION BY shop ORDER BY items ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
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
    for query in ("twice", "spreads", "weights", "near", "held", "placed"):
        process(app, query, spark)
    for query in ("weights", "near"):
        weights = shop.contents(app, query)
        assert len(weights) > 4
        assert all(weight == total for _, weight, total, *_ in weights)
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


HELPED = """
import pyarrow.compute as pc

import types
from queue import shifted
from sweeparea.operators.user import aggregate, function, window


@function(returns="double")
def doubled(values):
    import profile

    return pc.multiply(values, profile.factor() * 1.0)


@aggregate(returns="double")
def spread(values):
    import http.status as lazily

    return types.FACTOR * lazily.ONE * 1.0


@window(pattern="WK")
def hold_for(instants, lengths):
    return instants, shifted(instants, lengths)


def behind(version):
    from queue import FACTOR

    ticks = version.elements["__tick"].to_pylist()
    return max(ticks) - FACTOR if ticks else None
"""
SAME = """
CREATE STREAM sales FROM DELTA 'source/sales' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND
  HEARTBEAT POLICY 'measures:behind' CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION QUARANTINE ROW;
CREATE FUNCTION doubled AS 'measures:doubled';
CREATE AGGREGATE spread AS 'measures:spread';
CREATE WINDOW hold_for AS 'measures:hold_for';
CREATE CONTINUOUS QUERY twice MATERIALIZE ISTREAM AS SELECT shop, doubled(items) AS d FROM sales;
CREATE CONTINUOUS QUERY spreads START AT TIMESTAMP '2020-01-01 00:00:00' AS
  SELECT shop, spread(items) AS s FROM sales [hold_for(1)] GROUP BY shop;
"""


def _helped(folder: Path, factor: int):
    """An application whose helpers are named as modules of the standard library, and those of every other like it."""
    beside = folder / "shop"
    (beside / "http").mkdir(parents=True, exist_ok=True)
    (beside / "measures.py").write_text(HELPED)
    (beside / "types.py").write_text(f"FACTOR = {factor}\n")
    (beside / "queue.py").write_text(
        "import pyarrow.compute as pc\nfrom types import FACTOR\n\n\n"
        "def shifted(instants, lengths):\n    return pc.add(instants, pc.multiply(lengths, FACTOR))\n"
    )
    (beside / "profile.py").write_text("def factor():\n    from . import types\n\n    return types.FACTOR\n")
    (beside / "http" / "__init__.py").write_text("")
    (beside / "http" / "status.py").write_text("ONE = 1\n")
    return shop.application(folder, SAME)


def _found(folder: Path) -> tuple[set, set, int | None]:
    """The factors by which an application's function, aggregate and window, and its heartbeat policy worked."""
    for job, names in ((jobs.admit, ["sales"]), (jobs.process, ["twice", "spreads"])):
        for name in names:
            job(shop.application(folder, SAME), name)
    app = shop.application(folder, SAME)
    assert not plan(app).problems
    assert not plan(app).changes
    lengths = {(s, (b - a).total_seconds()) for _, s, a, b in shop.contents(app, "spreads") if b is not None}
    heartbeat = app.ledger.head()["sales"].committed
    return {d for _, d, *_ in shop.contents(app, "twice")}, lengths, heartbeat and shop.tick(30) - heartbeat


@pytest.mark.spark
def test_applications_in_one_process_have_their_own_modules(tmp_path: Path, spark) -> None:
    """And an edited one its new code: driver, workers and fingerprints."""
    path = list(sys.path)
    for name, factor in (("a", 2), ("b", 3), ("c", 2)):
        shop.sell(tmp_path / name, [(0, "a", 1.0, 1), (30, "a", 1.0, 1)])
        _helped(tmp_path / name, factor)
    expected = {k: ({1.0 * k}, {(1.0 * k, 1.0 * k)}, k) for k in (2, 3)}
    assert _found(tmp_path / "a") == expected[2]
    assert _found(tmp_path / "b") == expected[3]
    (code_a, code_b) = (
        {n: row.settings for n, row in shop.application(tmp_path / n, SAME).registry.deployed.rows().items()}
        for n in "ab"
    )
    assert code_a["doubled"] != code_b["doubled"]
    _helped(tmp_path / "c", 3)
    assert _found(tmp_path / "c") == expected[3]
    assert sys.path == path


def test_fingerprints_are_as_they_always_were(tmp_path: Path) -> None:
    """What is deployed was registered with these."""
    (tmp_path / "pkg").mkdir()
    for name, source in {
        "measures": "import pyarrow.compute as pc\nimport helper\nfrom pkg import mod\nfrom pkg.one import K\nX = 1\n",
        "helper": "K = 1\n",
        "unused": "K = 2\n",
        "pkg/__init__": "",
        "pkg/mod": "from . import one\n",
        "pkg/one": "K = 1\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(source)
    assert source_fingerprint("measures:f", Modules.of(tmp_path)) == "3c83fef901d0"
    assert source_fingerprint("pkg.mod:f", Modules.of(tmp_path)) == "239631380af2"


SHADOWED = """
import sys
from pathlib import Path
from sweeparea.spark_jobs.commands import jobs
from tests.spark_jobs import shop, test_user_code

folder = Path(sys.argv[1])
assert test_user_code._found(folder) == ({2.0}, {(2.0, 2.0)}, 2)
import profile, queue, types, pandas, concurrent.futures
assert profile.run and queue.Queue and types.ModuleType
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_inside_a_folder_with_such_helpers(tmp_path: Path) -> None:
    shop.sell(tmp_path, [(0, "a", 1.0, 1), (30, "a", 1.0, 1)])
    _helped(tmp_path, 2)
    root = Path(__file__).parents[2]
    (tmp_path / "run.py").write_text(SHADOWED)
    command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path)]
    environment = {k: v for k, v in os.environ.items() if k != "SPARK_REMOTE"} | {
        "PYTHONPATH": str(root),
        "SWEEPAREA_SPARK_MASTER": "local[2]",
    }
    done = subprocess.run(
        command, cwd=tmp_path / "shop", env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


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
        app.plans.plan("q")
    assert f"that are searched: {tmp_path / 'shop'}, " in str(told.value)


def test_the_fingerprint_of_an_application_is_never_anothers(tmp_path: Path) -> None:
    """Both are opened in one process, with a module of the same name."""
    codes, values = [], []
    for name, factor in (("a", "2.0"), ("b", "3.0")):
        beside = tmp_path / name / "shop"
        beside.mkdir(parents=True)
        (beside / "measures.py").write_text(MODULE.replace("2.0", factor))
        app = shop.application(tmp_path / name, shop.STREAM + "CREATE FUNCTION doubled AS 'measures:doubled';")
        [function] = app.functions
        code = user.load(function.target, UserKind.FUNCTION, app.modules)
        values += code(pa.array([1.0])).to_pylist()
        codes.append(app.registry.wanted("doubled").settings["code"])
    assert values == [2.0, 3.0]
    assert len(set(codes)) == 2
