"""Build the environment ``.venv`` from the lock files with nothing but Python's standard library.

Steps: uv into ``.tools/uv`` (by pip, hash checked), ``.venv``, every package of ``requirements.lock`` (hash checked,
bytecode compiled), SweepArea itself (editable), and with ``--example`` the flights data. A stamp per step holds what it
was made from, so that a second run does nothing and a changed lock is followed. Runs under the system's Python, hence
no import from outside the standard library here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from sweeparea.infra import machine
from sweeparea.infra.errors import SetupError, exit_code_of

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parents[2]
INFRA = ROOT / "infra"
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
UV = TOOLS / "uv" / "bin" / "uv"
PYTHON = VENV / "bin" / "python"


def main(arguments: list[str]) -> int:
    """``python3 -m sweeparea.infra.setup.bootstrap [--example]``."""
    return exit_code_of(
        lambda: build("--example" in arguments), "run the same command again: it goes on with the step that was at work"
    )


def build(example: bool) -> None:
    """Do the steps that are not done yet."""
    if sys.version_info[:2] < OLDEST:
        raise SetupError(
            f"This is Python {sys.version.split()[0]} ({sys.executable}); SweepArea needs 3.11 or newer. "
            "Install one and name it: make PYTHON=python3.12 .."
        )
    # a moved or copied checkout, or another Python, makes a new environment: scripts in it hold absolute paths
    here = f"{ROOT} {sys.version_info[0]}.{sys.version_info[1]}"
    steps = [
        ("uv", TOOLS / "uv" / ".stamp", here + _digest("uv.lock.txt"), install_uv),
        ("environment", VENV / ".stamp", here, create_environment),
        ("packages", VENV / ".stamp-packages", _digest("requirements.lock", "build.lock"), sync_packages),
        ("sweeparea", VENV / ".stamp-project", _digest("../pyproject.toml", "requirements.lock"), install_project),
    ]
    if example:
        steps.append(
            ("flights of 2013", VENV / ".stamp-example", _digest("example.lock", "requirements.lock"), install_example)
        )
    if all(_done(stamp, content) for _, stamp, content, _ in steps):
        return
    for number, (name, stamp, content, step) in enumerate(steps, 1):
        # asked again: making the environment anew undoes the steps after it
        if _done(stamp, content):
            continue
        label = f"[set-up] step {number} of {len(steps)}: {name}"
        print(f"{label} ..", flush=True)
        begin = time.monotonic()
        step(label)
        stamp.write_text(content)
        print(f"{label}: done in {time.monotonic() - begin:.0f} s", flush=True)


def install_uv(label: str) -> None:
    """A small environment that holds only uv, checked by hash."""
    shutil.rmtree(TOOLS / "uv", ignore_errors=True)
    TOOLS.mkdir(exist_ok=True)
    if subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True).returncode != 0:
        raise SetupError(
            f"{sys.executable} has no ensurepip, without which it cannot make a virtual environment. Install it (on"
            f" Debian and Ubuntu the package is python{sys.version_info[0]}.{sys.version_info[1]}-venv) or name another"
            " Python: make PYTHON=/path/to/python3.11 .."
        )
    _run(label, [sys.executable, "-m", "venv", str(TOOLS / "uv")], "uv-venv")
    pip = [str(TOOLS / "uv" / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    _run(label, [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(INFRA / "uv.lock.txt")], "uv")


def create_environment(label: str) -> None:
    """An empty ``.venv`` with the Python that runs this."""
    shutil.rmtree(VENV, ignore_errors=True)
    _run(label, [str(UV), "venv", "--quiet", "--no-python-downloads", "--python", sys.executable, str(VENV)], "venv")


def sync_packages(label: str) -> None:
    """Make ``.venv`` hold exactly ``requirements.lock``; ``build.lock`` holds what builds source packages."""
    command = [str(UV), "pip", "sync", "--python", str(PYTHON), "--require-hashes", "--compile-bytecode"]
    _run(
        label,
        [*command, "--build-constraints", str(INFRA / "build.lock"), str(INFRA / "requirements.lock")],
        "packages",
    )
    for stamp in (".stamp-project", ".stamp-example"):
        (VENV / stamp).unlink(missing_ok=True)


def install_project(label: str) -> None:
    """SweepArea itself, as links to this checkout; needs no network."""
    options = ["--no-deps", "--no-build-isolation", "--offline"]
    _run(
        label,
        [str(UV), "pip", "install", "--quiet", "--python", str(PYTHON), *options, "--editable", str(ROOT)],
        "project",
    )


def install_example(label: str) -> None:
    """The flights data package, hash checked, without what it would pull in: only its CSV files are read."""
    options = ["--no-deps", "--no-build-isolation", "--require-hashes", "-r", str(INFRA / "example.lock")]
    _run(label, [str(UV), "pip", "install", "--quiet", "--python", str(PYTHON), *options], "example")


def _run(label: str, command: list[str], name: str) -> None:
    """Run one tool; says every 15 seconds that it still works, and why it failed."""
    log = TOOLS / f"{name}.log"
    # the bytecode halves every later start: a setting that forbids writing it is meant for other things
    gone = ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PYTHONPATH")
    environment = {k: v for k, v in machine.python_environment(os.environ).items() if k not in gone}
    begin = time.monotonic()
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=environment)
        while True:
            try:
                code = process.wait(timeout=15)
                break
            except subprocess.TimeoutExpired:
                print(f"{label}: {time.monotonic() - begin:.0f} s {_last_line(log)}", flush=True)
            except KeyboardInterrupt:
                process.terminate()
                process.wait()
                raise
    if code != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
        raise SetupError(
            f"{label} failed. Check the network and the free space of {ROOT}, then run the same command again: it goes"
            f" on with this step. The end of {log}:\n{end}"
        )


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return f"({lines[-1].strip()[:80]})" if lines else ""


def _done(stamp: Path, content: str) -> bool:
    return stamp.is_file() and stamp.read_text() == content


def _digest(*names: str) -> str:
    total = hashlib.sha256()
    for name in names:
        total.update((INFRA / name).read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
