"""Peak memory of the process that admits a source, by what the source is and how many rows a version of it has.

``--rows`` in so many ``--commits``; each case is a process of its own, which tells its greatest resident memory (VmHWM)
before and after, that of its JVM, and seconds. Nothing of it may grow with the rows of a version. ``--query`` also
processes a grouped query over a stream.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.cpu import cpu_seconds, spent

PIECE = 1_000_000
START = 1_577_836_800_000_000
KINDS = {
    "plain": "STREAM s FROM DELTA 'src' TIMESTAMP BY at HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS",
    "policy": "STREAM s FROM DELTA 'src' TIMESTAMP BY at HEARTBEAT POLICY 'policies:last'",
    "dedup": "STREAM s FROM DELTA 'src' TIMESTAMP BY at HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS"
    " DEDUPLICATE BY k, id WITHIN INTERVAL 1 HOUR",
    "correct": "STREAM s FROM DELTA 'src' TIMESTAMP BY at HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS"
    " LATE REPAIR ON SOURCE CHANGE CORRECT",
    "correct_dedup": "STREAM s FROM DELTA 'src' TIMESTAMP BY at HEARTBEAT FOR at AS at - INTERVAL 10 SECONDS"
    " LATE REPAIR ON SOURCE CHANGE CORRECT DEDUPLICATE BY k, id WITHIN INTERVAL 1 HOUR",
    "late": "STREAM s FROM DELTA 'src' TIMESTAMP BY at HEARTBEAT FOR at AS at + INTERVAL 10000 DAYS"
    " DEDUPLICATE BY k, id WITHIN INTERVAL 1 HOUR",
    "static": "RELATION s FROM DELTA 'src' STATIC",
    "history": "RELATION s FROM DELTA 'src' HISTORY BY (at, till) HEARTBEAT FOR at AS at",
    "changes": "RELATION s FROM DELTA 'src' CHANGES BY (op, at) HEARTBEAT FOR at AS at",
    "keyed": "RELATION s FROM DELTA 'src' CHANGES BY (op, at) KEY (id) HEARTBEAT FOR at AS at",
    "feed": "RELATION s FROM DELTA 'src' CHANGE DATA FEED",
}
"""``correct``: half of the rows are deleted again by a last commit."""
QUERY = """
CREATE CONTINUOUS QUERY q AS SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [TUMBLING INTERVAL 1 HOUR] GROUP BY k;
"""


def table(first: int, count: int, operation: str) -> pa.Table:
    """Rows ``first`` on: a millisecond apart, 1,000 keys, one of ten a repetition of the one before."""
    at = np.arange(first, first + count, dtype=np.int64)
    same = at - (at % 10 == 9)
    return pa.table(
        {
            "at": pa.array(START + same * 1000).cast(pa.timestamp("us", tz="UTC")),
            "till": pa.array(START + same * 1000 + 60_000_000).cast(pa.timestamp("us", tz="UTC")),
            "op": pa.array(np.repeat(operation, count)),
            "k": pa.array(same % 1000),
            "id": pa.array(same),
            "v": pa.array((same * 7919 % 1_000_003) / 8.0),
            "note": pa.array(np.char.add("row ", same.astype("U12"))),
        }
    )


def write(source: str, rows: int, commits: int, kind: str) -> None:
    operation = "I" if kind == "keyed" else "insert"
    for commit in range(commits):
        first, end = rows * commit // commits, rows * (commit + 1) // commits
        pieces = (table(at, min(PIECE, end - at), operation) for at in range(first, end, PIECE))
        schema = table(0, 1, operation).schema
        batches = (batch for piece in pieces for batch in piece.to_batches())
        write_deltalake(source, pa.RecordBatchReader.from_batches(schema, batches), mode="append")
    if kind.startswith("correct"):
        DeltaTable(source).delete("k < 500")


def peak(pid: int | str = "self", line: str = "VmHWM") -> float:
    """The greatest resident memory of a process, in MB."""
    for text in Path(f"/proc/{pid}/status").read_text().splitlines():
        if text.startswith(f"{line}:"):
            return round(int(text.split()[1]) / 1024)
    return 0.0


@contextmanager
def watched(found: dict[str, float]) -> Iterator[None]:
    begun, before = time.perf_counter(), cpu_seconds()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    found["before"] = peak()
    yield
    found |= {"seconds": round(time.perf_counter() - begun, 1), "cpu": round(sum(spent(before).values()), 1)}
    found["driver"] = peak()
    found["jvm"] = max(
        (peak(p.pid) for p in psutil.Process().children(recursive=True) if p.name() == "java"), default=0
    )


def one(kind: str, folder: str, query: bool) -> None:
    """One case: a line of JSON."""
    from sweeparea.spark_jobs.admission.admit import admit
    from sweeparea.spark_jobs.application import Application
    from sweeparea.spark_jobs.orchestration.process import process
    from sweeparea.spark_jobs.spark.session import spark_session

    files = Path(folder) / "app"
    files.mkdir(exist_ok=True)
    (files / "app.cql").write_text(f"CREATE {KINDS[kind]};{QUERY if query else ''}")
    (files / "policies.py").write_text(POLICY)
    application = Application.open(files, Path(folder))
    with spark_session() as spark:
        spark.range(1).count()
        found: dict[str, float] = {}
        with watched(found):
            report = admit(application, "s", spark)
        told = {"rows": report.rows, "versions": report.versions, "deduplicated": report.deduplicated}
        print(json.dumps({"kind": kind, **told, **found}), flush=True)
        if query:
            found = {}
            with watched(found):
                process(application, "q", spark)
            print(json.dumps({"kind": f"{kind}: query", **found}), flush=True)


POLICY = """
def last(version):
    return version.elements["__tick"][-1].as_py()
"""


def main() -> None:
    told = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 5_000_000])
    told.add_argument("--commits", type=int, default=1)
    told.add_argument("--kind", nargs="+", default=list(KINDS), choices=list(KINDS))
    told.add_argument("--query", action="store_true")
    told.add_argument("--folder", help="of a case that was written before (used by the program itself)")
    given = told.parse_args()
    if given.folder:
        one(given.kind[0], given.folder, given.query)
        return
    for kind in given.kind:
        for rows in given.rows:
            with tempfile.TemporaryDirectory() as folder:
                write(f"{folder}/src", rows, given.commits, kind)
                command = [sys.executable, "-m", "benchmarks.admission_memory", "--folder", folder, "--kind", kind]
                command += ["--query"] if given.query else []
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
                if done.returncode:
                    print(json.dumps({"kind": kind, "of": rows, "failed": done.returncode}), flush=True)
                for line in done.stdout.splitlines():
                    print(json.dumps({"of": rows, "commits": given.commits, **json.loads(line)}), flush=True)


if __name__ == "__main__":
    main()
