"""``python -m queries.papers.check [FILE ..]``: runs the papers' queries and compares each result with the stated one.

Without files all of this folder. Members ``expected`` of the cases hold what must come out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeparea.infra.errors import exit_code_of
from sweeparea.spark_jobs.cases.replay import replay
from sweeparea.spark_jobs.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent


def files() -> list[Path]:
    """The folder's files of cases."""
    return sorted(FOLDER.glob("*.jsonl"))


def judged(file: Path, spark: SparkSession) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[str]]]:
    """Each case of a file, its result, and the members of the result that are not as expected."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for line, result in zip(lines, replay(lines, spark), strict=True):
        case = json.loads(line)
        yield case, result, [m for m, value in case["expected"].items() if result.get(m) != value]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m queries.papers.check", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files of cases (default: all of this folder)")
    options = parser.parse_args(arguments)
    wrong = 0
    with spark_session() as spark:
        for file in options.files or files():
            print(file.stem)
            for case, result, members in judged(file, spark):
                print(f"  {'right' if not members else 'WRONG'}  {case['name']}", flush=True)
                for member in members:
                    print(f"         {member}: {json.dumps(result.get(member, result.get('error')))}")
                wrong += bool(members)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main, "run the same command again"))
