"""Heartbeat to result through Airflow: what the ledger's history of an application says of its live slices.

For each commit of a stream that moved its heartbeat, the time until each query had committed up to it. The first
argument is the application (default: flights, as ``make demo`` leaves it).
"""

from __future__ import annotations

import statistics
import sys

from sweeparea.infra import settings
from sweeparea.tables.publication.ledger import Ledger


def main() -> None:
    """Prints per query the median, best and worst seconds from the heartbeat's commit to the query's."""
    application = sys.argv[1] if len(sys.argv) > 1 else "flights"
    rows = Ledger(str(settings.data(application))).history()
    streams = [r for r in rows if r.kind == "stream"]
    for query in sorted({r.name for r in rows if r.kind == "query"}):
        commits = [r for r in rows if r.name == query]
        waits = []
        for heartbeat in streams:
            reached = [c for c in commits if c.pins.get(heartbeat.name, {}).get("seq") == heartbeat.seq]
            if reached and reached[0].committed == heartbeat.committed:
                waits.append((reached[0].at - heartbeat.at) / 1e6)
        if waits:
            print(
                f"{query}: {len(waits)} heartbeats, median {statistics.median(waits):.2f} s, best {min(waits):.2f} s,"
                f" worst {max(waits):.2f} s to the result"
            )


if __name__ == "__main__":
    main()
