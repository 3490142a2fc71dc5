"""``python -m benchmarks.engines.child NAME``: one engine, which is told by lines of JSON and answers by such lines.

What the engine itself prints goes to standard error.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import sys
import time
import traceback
from typing import IO, Any

from benchmarks.engines.task import Query, Source


def main(name: str) -> None:
    """Reads orders until there are no more."""
    with os.fdopen(os.dup(1), "w") as told:
        os.dup2(2, 1)
        engine: Any = None
        for line in sys.stdin:
            order = json.loads(line)
            begun = time.perf_counter()
            try:
                if order["do"] == "start":
                    engine = importlib.import_module(f"benchmarks.engines.{name}").Engine(Source.of(order["source"]))
                    _say(told, {"seconds": time.perf_counter() - begun, "versions": engine.versions()})
                else:
                    given = order["query"]
                    query = Query(**{**given, "answer": [tuple(column) for column in given["answer"]]})
                    does = engine.run if order["do"] == "run" else engine.answer
                    _say(told, dataclasses.asdict(does(query)))
            except Exception as error:
                traceback.print_exc()
                _say(told, {"error": f"{type(error).__name__}: {error}"})


def _say(told: IO[str], what: dict[str, Any]) -> None:
    told.write(json.dumps(what) + "\n")
    told.flush()


if __name__ == "__main__":
    main(sys.argv[1])
