"""What SweepArea stores of a plan and of an application, as texts for golden files: none of it needs Spark.

A deployed application finds its tables and its state by these texts. So they must not change when the code does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from queries.flights import importer
from queries.nexmark import loader
from sweeparea.cql.declarations.canonical import declaration
from sweeparea.cql.explain.state import state
from sweeparea.cql.rewrites.sharing import subplans
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.plan_identity import result_identity, state_identity
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.declarations.user_code import source_fingerprint
from sweeparea.spark_jobs.deployment.planned import Planned
from tests.golden import texts

_INSTANT = pa.timestamp("us", "UTC")
FLIGHTS = pa.schema(
    [
        *[("id", pa.int64()), ("departed", _INSTANT), ("scheduled", _INSTANT)],
        *[(name, importer._FLIGHTS[name]) for name in ("carrier", "flight", "tailnum", "origin", "dest")],
        *[(name, pa.int64()) for name in ("dep_delay", "arr_delay", "air_time", "distance")],
        *[("distance_km", pa.float64()), ("time_hour", _INSTANT)],
    ]
)
"""What the importer gives the source table ``flights``."""
EXAMPLES = ("flights", "nexmark")


def example(name: str, data: Path) -> Application:
    """An example application over source tables that are there and, those of flights, empty."""
    if name == "nexmark":
        loader.load(data)
    else:
        for table, schema in (("flights", FLIGHTS), ("planes", pa.schema(list(importer._PLANES.items())))):
            uri = str(data / "source" / table)
            if not DeltaTable.is_deltatable(uri):
                write_deltalake(uri, schema.empty_table(), mode="error")
    return Application.open(Path(importer.__file__).parents[1] / name, data)


def identities() -> str:
    """Per text and strategy: its identities, as it is bound and as it runs, the names of its SweepAreas and of the
    hidden queries that could be taken out of it.
    """
    told: dict[str, Any] = {}
    for name in texts.QUERIES:
        for strategy in texts.STRATEGIES:
            plan = texts.bound(name, strategy)
            told[f"{name} {strategy}"] = {
                "result": result_identity(plan),
                "state": state_identity(plan),
                "running": state_identity(lowered(plan)),
                "areas": [line.partition(":")[0] for line in state(plan, ("Fixed",))][:-1],
                "hidden": sorted(subplans(plan)),
            }
    built = texts.with_distinct()
    told["built analytic_distinct"] = {
        "result": result_identity(built),
        "state": state_identity(built),
    }
    return as_text(told)


def fingerprints(folder: Path) -> str:
    """Of declarations of every kind, and of a user's Python source, which is written into ``folder``."""
    told: dict[str, Any] = {}
    for text in STATEMENTS:
        taken = declaration(parse_text(text, "text")[0])
        told[text] = {"definition": taken.text, "is": taken.fingerprint}
    for module, text in SOURCES.items():
        file = folder / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for module in SOURCES:
        told[f"source of {module}"] = source_fingerprint(f"{module}:it")
    return as_text(told)


def deployed(folder: Path) -> str:
    """The rows by which the example applications are registered, and the identities of their plans."""
    told: dict[str, Any] = {}
    for name in EXAMPLES:
        application = example(name, folder / name)
        registry = application.registry
        found = [*application.catalog.declared(), *application.plans.propose(application.catalog.queries)]
        hidden = [s for q in application.catalog.queries for s in application.plans.fresh(q).shared]
        for declared in dict.fromkeys([*found, *hidden]):
            row = registry.wanted(declared)
            told[f"{name} {declared}"] = {
                **{key: getattr(row, key) for key in ("kind", "definition", "fingerprint", "depends_on", "settings")},
                **({} if is_hidden(declared) else {"planned": _planned(application, declared)}),
            }
            if application.is_query(declared):
                plan = application.plans.plan(declared)
                told[f"{name} {declared}"] |= {"state": state_identity(plan), "result": result_identity(plan)}
    return as_text(told)


def _planned(application: Application, name: str) -> dict[str, Any]:
    found = application.plans.fresh(name) if name in application.catalog.queries else Planned()
    return found.as_dict()


def as_text(told: dict[str, Any]) -> str:
    """JSON, a line for each."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, sort_keys=True)}" for key, value in told.items()
    )
    return "{\n" + ",\n".join(sorted(lines)) + "\n}\n"


STATEMENTS = (
    "CREATE STREAM s FROM DELTA 'x' TIMESTAMP BY at CHRONON INTERVAL 1 SECOND HEARTBEAT FOR at AS at - INTERVAL 1 HOUR",
    "CREATE RELATION r FROM DELTA 'x' NON RETROACTIVE",
    "CREATE FUNCTION celsius AS 'readings:celsius'",
    "CREATE AGGREGATE spread AS 'readings:spread'",
    "CREATE WINDOW hold_for AS 'readings:hold_for'",
    "CREATE CONTINUOUS QUERY q MATERIALIZE RELATION, DSTREAM CONSTRAINT sane EXPECT (n > 0) ON VIOLATION FAIL UPDATE "
    "WITH (strategy = 'direct') AS ISTREAM(SELECT a AS B, COUNT(*) AS n FROM s [RANGE INTERVAL 1 HOUR] GROUP BY a)",
)
SOURCES = {
    "stored_readings": "from stored_readings_units import half\nfrom stored_package import one\n\n"
    "def it(values):\n    return half(values)  # not part of it\n",
    "stored_readings_units": "def half(values):\n    return values\n",
    "stored_package.__init__": "from .one import it as one\n",
    "stored_package.one": "def it(values):\n    return values\n",
}
"""Modules of a user, by name."""
