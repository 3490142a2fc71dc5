"""Warms a Spark up that has just been started: small cases of what queries commonly do, through the whole engine.

What Numba has to compile on a machine is compiled then and kept on its disk, the server's JVM has loaded its classes,
and the Python workers of the session that the first task will lease run. Nobody's tables are touched. ``make up`` has
its supervisor run this after each start of the server.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from sweeparea.infra import settings
from sweeparea.infra.errors import exit_code_of

STREAMS: dict[str, Any] = {
    "S": {"columns": {"k": "int", "v": "double"}, "rows": [[t, [t % 3, t * 0.5]] for t in range(1, 13)]},
    "R": {"columns": {"k": "int", "name": "string"}, "rows": [[t, [t % 3, f"n{t}"]] for t in range(1, 13)]},
}
QUERIES = (
    "SELECT k, COUNT(*) AS n, AVG(v) AS average, MIN(v) AS least, SUM(v) AS total FROM S [RANGE 4] GROUP BY k",
    "SELECT S.k, name, v FROM S [RANGE 3] JOIN R [RANGE 2] ON S.k = R.k WHERE v > 1",
    "ISTREAM(SELECT DISTINCT k FROM S [ROWS 3])",
    "SELECT k, v FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM S [RANGE 6]) AS t"
    " WHERE r <= 2",
    "SELECT k, COUNT(DISTINCT v) AS n FROM S [TUMBLING 4] GROUP BY k",
    "SELECT S.k, name FROM S [RANGE 3] LEFT JOIN R [RANGE 2] ON S.k = R.k",
)


def cases() -> list[dict[str, Any]]:
    """Each query over the streams, in three slices."""
    return [{"name": q, "streams": STREAMS, "query": q, "heartbeats": [5, 13, 20]} for q in QUERIES]


def main() -> int:
    """``python -m sweeparea.spark_jobs.cases.warm_up``: once, on the server that runs."""

    def run() -> int:
        from sweeparea.spark_jobs.cases.replay import replay
        from sweeparea.spark_jobs.spark.session import spark_session

        os.environ.setdefault("SPARK_REMOTE", settings.spark_remote())  # else a Spark of this process would be warmed
        begun, wrong = time.monotonic(), 0
        with spark_session() as spark:
            for outcome in replay(map(json.dumps, cases()), spark):
                if "error" in outcome:
                    wrong += 1
                    print(f"warm-up: {outcome['name']}: {outcome['error']['message']}", flush=True)
        print(f"warm-up: Spark is warm after {time.monotonic() - begun:.0f} s", flush=True)
        return 1 if wrong else 0

    return exit_code_of(run, "what was compiled stays")


if __name__ == "__main__":
    sys.exit(main())
