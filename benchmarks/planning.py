"""How long a query takes from its text to its plan, without Spark: ``python -m benchmarks.planning [--profile]``.

A join of five inputs with three nested subqueries, all rules on; the median of many plans, in milliseconds, and what
the parser, the binder and the rules take of it. The first plan of a process is told apart: it loads modules and fills
caches. A query is planned when it is registered and once in each process that runs a slice of it.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time
from collections.abc import Callable
from typing import Any

QUERY = """
SELECT o.region, c.segment, COUNT(*) AS n, SUM(l.price * (1 - l.discount)) AS revenue, MAX(q.top) AS top
FROM orders [Range 1 Hour Slide 1 Minute] o
  JOIN lines [Range 1 Hour Slide 1 Minute] l ON l.order_id = o.id
  JOIN payments [Range 2 Hours] p ON p.order_id = o.id AND p.state = 'paid'
  JOIN customers c ON c.id = o.customer_id
  JOIN (SELECT product, MAX(price) AS top
        FROM (SELECT product, price, order_id
              FROM (SELECT DISTINCT product, price, order_id FROM lines [Range 1 Day] WHERE price > 0) AS d
              WHERE order_id IS NOT NULL) AS e
        GROUP BY product) q ON q.product = l.product
WHERE o.region = 'north' AND c.segment <> 'none' AND l.price BETWEEN 1 AND 1000
GROUP BY o.region, c.segment
HAVING COUNT(*) > 3
"""


def inputs() -> dict[str, Any]:
    """Four streams and relations."""
    from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
    from sweeparea.operators.time.domain import TimeDomain, TimeKind

    seconds = TimeDomain(TimeKind.TIMESTAMP, 1_000_000)

    def schema(name: str, kind: SchemaKind, /, **columns: str) -> InputSchema:
        return InputSchema(name, kind, tuple(columns.items()), seconds)

    return {
        "orders": schema(
            "orders", SchemaKind.STREAM, id="bigint", customer_id="bigint", region="string", note="string"
        ),
        "lines": schema(
            "lines",
            SchemaKind.STREAM,
            order_id="bigint",
            product="string",
            price="decimal(10,2)",
            discount="decimal(4,2)",
        ),
        "payments": schema("payments", SchemaKind.STREAM, order_id="bigint", state="string", amount="decimal(10,2)"),
        "customers": schema("customers", SchemaKind.RELATION, id="bigint", name="string", segment="string"),
    }


def timed(action: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each of so many runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        action()
        found.append(1000 * (time.process_time() - start))
    return found


def main() -> None:
    """Prints one line for each measurement."""
    arguments = argparse.ArgumentParser(description="planning time")
    arguments.add_argument("--times", type=int, default=30)
    arguments.add_argument("--profile", action="store_true", help="show where the time goes")
    options = arguments.parse_args()

    from sweeparea.cql.binding.binder import bind_select
    from sweeparea.cql.syntax.parser import parse_query_text

    given = inputs()

    def planned(rewrites: str) -> object:
        return bind_select(QUERY, given, {"rewrites": rewrites})

    print(f"first plan of the process   {timed(lambda: planned('all'), 1)[0]:8.1f} ms of CPU")
    for name, action in (
        ("text to plan, all rules", lambda: planned("all")),
        ("text to plan, no rules", lambda: planned("none")),
        ("parser alone", lambda: parse_query_text(QUERY)),
    ):
        runs = timed(action, options.times)
        print(f"{name:27} {statistics.median(runs):8.1f} ms of CPU (least {min(runs):.1f}, most {max(runs):.1f})")
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(lambda: [planned("all") for _ in range(options.times)])
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()
