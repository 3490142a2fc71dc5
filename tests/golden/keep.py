"""``python -m tests.golden.keep FOLDER``: what the engine gives, as files, so that two commits compare by ``diff -r``.

- ``identities``, ``fingerprints``, ``deployed``: what is stored (``stored.py``);
- ``explain/``: every form of it for all queries of the example applications, the tree for the texts of ``texts.py``;
- ``cases/``: all replay cases of the repository, ``random/``: as many random ones as ``--random`` says; of each its
  result, its ledger rows, and the names and schemas of its tables. Random cases stand beside what they gave.

Run it once in a checkout of each commit. The folder lies outside the repository and is new. All cases share one Spark,
two side by side: about five seconds a case on two free cores, 45 minutes with 300 random ones. ``--only`` and
``--random`` make it shorter, the files that both commits have are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeparea.cql.explain import FORMS, explain
from sweeparea.infra.errors import exit_code_of
from sweeparea.spark_jobs.orchestration.explaining import explained
from sweeparea.spark_jobs.spark.session import spark_session
from tests.golden import stored, texts
from tests.golden.cases import run_all
from tests.replay.generate import generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
FILES = ("tests/replay/cases/*.jsonl", "queries/*/*.jsonl")
"""Where the repository has replay cases."""


def keep_stored(folder: Path) -> None:
    """All that needs no Spark."""
    with tempfile.TemporaryDirectory(prefix="sweeparea-kept-") as scratch:
        data = Path(scratch)
        sys.path.insert(0, scratch)
        try:
            made = {
                "identities": stored.identities(),
                "fingerprints": stored.fingerprints(data),
                "deployed": stored.deployed(data),
            }
        finally:
            sys.path.remove(scratch)
        for name in stored.EXAMPLES:
            application = stored.example(name, data / name)
            for query in application.catalog.queries:
                for form in FORMS:
                    made[f"explain/{name}.{query}.{form}"] = explained(application, query, form)
        for name in texts.QUERIES:
            for strategy in texts.STRATEGIES:
                made[f"explain/text.{name}.{strategy}"] = explain(texts.bound(name, strategy), ("Fixed",))
        for name, text in made.items():
            _write(folder / f"{name}.txt", text.replace(scratch, "<data>"))


def keep_cases(folder: Path, spark: SparkSession, files: Sequence[Path]) -> None:
    """A folder a file of cases."""
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        cases, broken = [], []
        for line in filter(str.strip, lines):
            try:
                cases.append(json.loads(line))
            except json.JSONDecodeError as error:
                broken.append(str(error))
        place = folder / "cases" / file.relative_to(ROOT).parent.name / file.stem
        _run(place, cases, spark)
        if broken:
            _write(place / "broken.txt", "\n".join(broken) + "\n")


def keep_random(folder: Path, spark: SparkSession, seeds: Iterable[int]) -> None:
    """A file a seed: the case and what came."""
    made = [(seed, generate(random.Random(seed), rows=10)) for seed in seeds]
    _run(folder / "random", [case for _, case in made], spark, [(f"{seed:05}", case) for seed, case in made])


def _run(
    place: Path, cases: list[Any], spark: SparkSession, names: list[tuple[str, dict[str, Any]]] | None = None
) -> None:
    started = time.monotonic()
    for i, found in enumerate(run_all(cases, spark)):
        name, beside = (f"{i:03}", {}) if names is None else (names[i][0], {"case": names[i][1]})
        _write(place / f"{name}.json", _text({**beside, **found}))
    print(f"{place.name}: {len(cases)} cases in {time.monotonic() - started:.0f} s", flush=True)


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden.keep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the files go: a new folder outside the repository")
    parser.add_argument("--random", type=int, default=300, metavar="N", help="how many random cases (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="that of the first random case (default 0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="of the repository's cases the files named so")
    options = parser.parse_args(arguments)
    folder = options.folder.absolute()
    if folder.resolve().is_relative_to(ROOT):
        parser.error(f"{folder} lies in the repository, whose commits are to be compared; name a folder elsewhere")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        parser.error(f"{folder} is there already; name a new one, or old files would be compared too")
    os.environ.setdefault("SWEEPAREA_SPARK_MASTER", "local[2]")
    os.environ.setdefault("SWEEPAREA_SYNC", "off")
    started = time.monotonic()
    keep_stored(folder)
    files = [f for pattern in FILES for f in sorted(ROOT.glob(pattern)) if options.only in f.name]
    with spark_session() as spark:
        keep_cases(folder, spark, files)
        keep_random(folder, spark, range(options.seed, options.seed + options.random))
    print(f"kept in {folder} after {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main, "name a new folder"))
