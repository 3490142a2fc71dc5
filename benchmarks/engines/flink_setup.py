"""``make flink``: Flink into an environment of its own, ``.tools/flink``, from ``flink.lock`` and ``flink_jars.lock``.

``--lock`` writes ``flink.lock`` anew from ``flink.in``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from sweeparea.infra.errors import SetupError, exit_code_of
from sweeparea.infra.setup import jars
from sweeparea.infra.setup.bootstrap import TOOLS, UV
from sweeparea.infra.setup.lock import compile_lock

HERE = Path(__file__).parent
FOLDER = TOOLS / "flink"
PYTHON = FOLDER / "bin" / "python"
JARS = FOLDER / "jars"
PYTHONS = ">=3.10,<3.13"
"""Of which Flink has packages."""


def missing() -> str:
    """Why Flink cannot be run here; empty if it can."""
    stamp = FOLDER / ".stamp"
    if not stamp.is_file() or stamp.read_text() != _made_from():
        return "it is not set up: run `make flink` (730 MB)"
    return ""


def class_path() -> str:
    """What Flink's JVM needs besides its own jars."""
    spec = importlib.util.find_spec("pyspark")
    hadoop = sorted((Path(spec.origin).parent / "jars").glob("hadoop-client-*.jar")) if spec and spec.origin else []
    own = [JARS / jar.filename for jar in jars.read_lock(HERE / "flink_jars.lock")]
    return os.pathsep.join(map(str, [*hadoop, *own]))


def _made_from() -> str:
    names = ("flink.lock", "flink_jars.lock")
    return f"{FOLDER} {hashlib.sha256(b''.join((HERE / name).read_bytes() for name in names)).hexdigest()}"


def _set_up() -> None:
    if not missing():
        return
    print(f"[flink] into {FOLDER} ..", flush=True)
    _uv("venv", "--quiet", "--clear", "--python", PYTHONS, str(FOLDER))
    _uv("pip", "sync", "--quiet", "--compile-bytecode", "--require-hashes", "--python", str(PYTHON), "flink.lock")
    jars.fetch(folder=JARS, jars=jars.read_lock(HERE / "flink_jars.lock"))
    (FOLDER / ".stamp").write_text(_made_from())
    print("[flink] done", flush=True)


def _uv(*arguments: str) -> None:
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    done = subprocess.run([str(UV), *arguments], cwd=HERE, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SetupError(
            f"`uv {' '.join(arguments[:2])}` failed: {done.stderr.strip()[-600:]}\nFlink needs a Python {PYTHONS} on"
            " the path and its packages from PyPI. Without Flink: leave it out with --engine."
        )


def _main() -> None:
    if "--lock" in sys.argv:
        compile_lock(HERE / "flink.in", HERE / "flink.lock", [])
    else:
        _set_up()


if __name__ == "__main__":
    sys.exit(exit_code_of(_main, "run the same command again"))
