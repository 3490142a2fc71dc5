"""Replay: small cases through the real engine, from JSON lines to JSON lines. For trying the language, and for tests.

A case names streams and relations with their rows, a query and the heartbeats. It gets a data folder of its own; each
heartbeat admits the rows that its slice brings and processes the queries: parser, planner, slices, SweepAreas, ledger
and Delta tables are those of production. Only the source tables and Airflow are left out.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.spark_jobs.cases.case import Case
from sweeparea.spark_jobs.spark.errors import readable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def replay(
    lines: Iterable[str], spark: SparkSession, trace: Callable[[str], object] | None = None
) -> Iterator[dict[str, Any]]:
    """One result per case line, in order. A failing case gives its error and does not stop the others; ``trace`` is
    told where it came from.

    Cases run side by side on the one session, one a core: a small case leaves Spark idle half of its time.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        ahead: collections.deque[Future[dict[str, Any]]] = collections.deque()
        for line in lines:
            if not line.strip():
                continue
            ahead.append(pool.submit(_outcome, line, spark, trace))
            if len(ahead) > 2 * (os.cpu_count() or 1):  # so that a long file is read as it is needed
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _outcome(line: str, spark: SparkSession, trace: Callable[[str], object] | None) -> dict[str, Any]:
    name = None
    try:
        case = json.loads(line)
        if not isinstance(case, dict):
            raise DataError("A case is a JSON object, one a line.")
        name = case.get("name")
        folder = Path(tempfile.mkdtemp(prefix="sweeparea-replay-"))
        try:
            return {"name": name, **Case(case, folder, spark).run()}
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except json.JSONDecodeError as error:
        return _failure(None, DataError(f"The line is no JSON: {error}."))
    except Exception as error:
        if trace is not None:
            trace(f"case {name}:\n{''.join(traceback.format_exception(error))}")
        return _failure(name, readable(error, "replay"))


def _failure(name: Any, error: SweepAreaError) -> dict[str, Any]:
    return {"name": name, "error": {"type": error.type, "message": str(error)}}
