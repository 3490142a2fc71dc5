"""``python -m tests.mutations [--only TEXT]``: do the tests notice when the engine is wrong?

Applies each of ``mutants.MUTANTS`` alone to a copy of the sources, in a temporary folder, and runs the tests that
concern it there. Prints a line a mutant: caught, or survived, which the exit code tells too (DeMillo et al. 1978:
hints on test data selection). Takes minutes: not part of the test suite.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sweeparea.infra.errors import exit_code_of
from tests.mutations.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("cql", "dags", "heartbeats", "infra", "operators", "quality", "spark_jobs", "sweeparea", "tables", "tests")
_LINKED = (".jars", ".tools", ".venv")
_SECONDS = 400


def copied(folder: Path) -> Path:
    """The sources in ``folder``, with their own links; what is large and never changed is linked."""
    ignored = shutil.ignore_patterns("*.pyc")
    for name in _COPIED:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    for name in _LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return folder


def _environment(folder: Path) -> dict[str, str]:
    dropped = ("SPARK_REMOTE", "SWEEPAREA_HOME", "SWEEPAREA_DATA", "SWEEPAREA_RUN")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def is_caught(mutant: Mutant, folder: Path) -> bool:
    """Whether one of the mutant's tests fails in ``folder`` once it is applied there; leaves ``folder`` as it was."""
    file = folder / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(
            f"{mutant.file}: the text {mutant.old!r} stands there {text.count(mutant.old)} times, not once."
        )
    # what is compiled belongs to the text of all kernels (kernels/compiled.py): none of it is used by a changed one
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        return not all(_passes(test, folder) for test in mutant.tests)
    finally:
        file.write_text(text, encoding="utf-8")


def _passes(test: str, folder: Path) -> bool:
    quick = ("-p", "no:cacheprovider", "-p", "tests.mutations.unshrunk")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", *quick, test]
    try:
        done = subprocess.run(command, cwd=folder, env=_environment(folder), capture_output=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:  # it hangs: that is noticed too
        return False
    if done.returncode in (3, 4, 5):  # not those of a crash, which is noticed
        raise SystemExit(f"{test} could not be run:\n{done.stdout.decode()[-2000:]}")
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose file, text or fault contains this")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if options.only in f"{m.file} {m.old} {m.why}"]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = copied(Path(name).resolve())
        for number, mutant in enumerate(chosen, 1):
            begin = time.monotonic()
            caught = is_caught(mutant, folder)
            survived += not caught
            took = time.monotonic() - begin
            verdict = "caught  " if caught else "SURVIVED"
            print(f"{verdict} {number:3}/{len(chosen)} {took:5.1f} s  {mutant.file}: {mutant.why}", flush=True)
    print(f"{len(chosen)} mutants: {len(chosen) - survived} caught, {survived} survived.")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main, "ONLY=text runs some of the mutants"))
