"""Many queries due at once, through Airflow: from one commit in a source table until all results are there.

    SWEEPAREA_HOME=/some/folder make up
    SWEEPAREA_HOME=/some/folder python -m benchmarks.many_due --queries 1 20 50 200 --group

For each number an application is written into the installation's ``queries`` folder: that many small queries over one
stream, each in a DAG of its own or (``--group``) all in one. What is told: seconds from the commit until the stream is
admitted and until the last result is there, the runs of Airflow's that worked and that were skipped, CPU seconds of all
services while it works and while nothing is to do. The folders are removed at the end; DAGs of applications that are
gone become stale by themselves.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from deltalake import write_deltalake

from sweeparea.infra import settings
from sweeparea.infra.dag_names import admit_dag_id, group_dag_id, query_dag_id
from sweeparea.infra.services import processes
from sweeparea.infra.services.airflow_client import AirflowClient
from sweeparea.tables.publication.ledger import Ledger

STREAM = """
CREATE STREAM readings FROM DELTA 'source/readings' TIMESTAMP BY ts HEARTBEAT FOR ts AS ts - INTERVAL 0 SECONDS;
"""
QUERY = """
CREATE CONTINUOUS QUERY q{number} AS
SELECT k, COUNT(*) AS n, AVG(v) AS average FROM readings [RANGE INTERVAL {minutes} MINUTES] GROUP BY k;
"""
ROWS = 1_000
PATIENCE = 600.0


class Installation:
    """An application of so many queries in the running installation."""

    def __init__(self, queries: int, grouped: bool) -> None:
        self.name = f"due{'_grouped' if grouped else ''}_{queries}"
        self.queries = [f"q{number}" for number in range(queries)]
        folder = settings.applications_folder() / self.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(settings.data(self.name), ignore_errors=True)
        self.data = Path(str(settings.data(self.name)))
        self.at = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
        self.commit()
        folder.mkdir(parents=True)
        group = "SET dag = 'all'; SET parallelism = 2;\n" if grouped else ""
        texts = [QUERY.format(number=n, minutes=n % 50 + 1) for n in range(queries)]
        (folder / f"{self.name}.cql").write_text(group + STREAM + "".join(texts))
        live = [group_dag_id(self.name, "all")] if grouped else [query_dag_id(self.name, q) for q in self.queries]
        self.live = [admit_dag_id(self.name, "readings"), *live]
        self.folder = folder

    def commit(self) -> float:
        """One more version of the source; returns when it was there, in seconds since the epoch."""
        self.at += timedelta(minutes=1)
        rows = [(self.at - timedelta(milliseconds=50 * i), i % 20, float(i)) for i in range(ROWS)]
        ts, k, v = zip(*rows, strict=True)
        table = pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")), "k": pa.array(k, pa.int32()), "v": list(v)})
        write_deltalake(str(self.data / "source" / "readings"), table, mode="append")
        return time.time()

    def wait(self) -> dict[str, float]:
        """When the heartbeat and the last result had come to the newest commit, seconds since the epoch."""
        ledger, wanted = Ledger(str(self.data)), int(self.at.timestamp() * 1e6)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            head = ledger.head()
            rows = [head.get(name) for name in ("readings", *self.queries)]
            if all(row is not None and (row.committed or 0) >= wanted for row in rows):
                at = [row.at / 1e6 for row in rows if row is not None]
                return {"admitted": at[0], "first": min(at[1:]), "last": max(at[1:])}
            time.sleep(0.1)
        missing = [
            n
            for n, row in zip(("readings", *self.queries), rows, strict=True)
            if (row is None or (row.committed or 0) < wanted)
        ]
        raise SystemExit(f"after {PATIENCE:.0f} s {len(missing)} have no result yet: {', '.join(missing[:5])}")


def cpu() -> float:
    """CPU seconds that the processes of all services have taken, with those of their children that have ended."""
    total = 0.0
    for name in processes.services():
        found = processes.running(name)
        if found is None:
            continue
        leader = psutil.Process(found.pid)
        for process in [leader, *leader.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(queries: int, grouped: bool, commits: int, idle: float) -> dict[str, Any]:
    """Seconds, runs and CPU of an application of ``queries`` queries; the first commit warms up."""
    client, one = AirflowClient(), Installation(queries, grouped)
    begun = time.monotonic()
    client.wait_for_dags(one.live, timeout=300.0)
    known = time.monotonic() - begun
    one.wait()
    found: dict[str, Any] = {"queries": queries, "grouped": grouped, "known": round(known, 1), "commits": []}
    time.sleep(15)
    since = datetime.now(UTC)
    for _ in range(commits):
        before, at = cpu(), one.commit()
        done = one.wait()
        time.sleep(10)  # what is raised once more would come now
        found["commits"].append(
            {
                "admitted": round(done["admitted"] - at, 2),
                "first": round(done["first"] - at, 2),
                "last": round(done["last"] - at, 2),
                "cpu": round(cpu() - before, 1),
            }
        )
    states: dict[str, int] = {}
    for dag_id in one.live:
        for run in client.runs(dag_id, limit=200, start_date_gte=since.isoformat()):
            for task in client.task_instances(dag_id, run["dag_run_id"]):
                states[task["state"]] = states.get(task["state"], 0) + 1
    found["tasks"] = states
    before = cpu()
    time.sleep(idle)
    found["idle"] = round((cpu() - before) / idle, 3)
    shutil.rmtree(one.folder)
    return found


def main() -> None:
    """Prints a line for each number of queries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 20, 50])
    parser.add_argument("--group", action="store_true", help="all in one DAG")
    parser.add_argument("--commits", type=int, default=3)
    parser.add_argument("--idle", type=float, default=30.0, help="seconds in which nothing is to do")
    given = parser.parse_args()
    for queries in given.queries:
        one = measured(queries, given.group, given.commits, given.idle)
        last = [commit["last"] for commit in one["commits"]]
        what = f"{queries} queries{' in a group' if given.group else ''}"
        print(
            f"{what}: results {statistics.median(last):.1f} s after the commit ({min(last):.1f} to"
            f" {max(last):.1f}), tasks {one['tasks']}, idle {one['idle']:.2f} of a core"
        )
        print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
