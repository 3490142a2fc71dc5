"""What the machine may not decide: the environment and options of each JVM and each Python worker that we start.

Language and country change UPPER and LOWER, the encoding changes names of files, the time zone changes what a worker
takes for local, and settings of another Spark installation change everything. So none is inherited. Who wants one of
his own for our Spark names it in ``SWEEPAREA_SPARK_INHERIT``, by comma: ``HADOOP_CONF_DIR,JAVA_TOOL_OPTIONS``.
"""

from __future__ import annotations

import codecs
import os
import pwd
import re
import sys
from collections.abc import Mapping

from sweeparea.infra import settings
from sweeparea.infra.errors import SetupError, UnfitSetupError

INHERIT = "SWEEPAREA_SPARK_INHERIT"
"""Variables of other installations that our Spark takes over all the same."""
JVM_OPTIONS = ("-Duser.language=en", "-Duser.country=US", "-Dfile.encoding=UTF-8", "-Duser.timezone=UTC")
STACK = "-Xss128m"
"""Of every thread of a JVM, since Spark walks expressions by recursion. Memory is taken as it is used."""
WORKER = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0"}
"""What every JVM and worker finds in its environment. A JVM takes the encoding of file names from LC_ALL alone."""

_SPARK = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "HIVE_")
_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS", "CLASSPATH")
_PYTHON = re.compile(r"PYTHON[A-Z0-9]+")
_PYTHON_KEPT = {
    # where modules are found
    *("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "PYTHONUSERBASE"),
    # what no result depends on, often set in images of containers
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED", "PYTHONFAULTHANDLER", "PYTHONHASHSEED"),
}
"""Settings of Python that hold for our processes too. All others are somebody's for programs of his own: warnings as
errors would end what the libraries do, a debugger's allocator slow it down."""
_PYTHON_OF_COMMANDS = ("PYTHONINSPECT", "PYTHONIOENCODING", "PYTHONINTMAXSTRDIGITS")
"""Under these a command would wait for input when it is done and lose its exit code, print texts escaped, or read no
long numbers."""
_LOCALE = ("LANGUAGE", "LC_")
_AGAIN = "SWEEPAREA_STARTED_AGAIN"


def jvm_options(*more: str) -> str:
    """Options of a JVM as one text: ``more``, then those that hold for all."""
    return " ".join([*filter(None, more), *JVM_OPTIONS])


def foreign_spark(environ: Mapping[str, str]) -> list[str]:
    """The variables of ``environ`` that belong to another installation of Spark, Hadoop or Java."""
    kept = _inherited(environ)
    return [name for name in environ if name not in kept and (name.startswith(_SPARK) or name in _JAVA)]


def taken_over(environ: Mapping[str, str]) -> list[str]:
    """The variables that ``INHERIT`` names and that are set, by which our Spark may fail or answer otherwise."""
    return sorted(_inherited(environ) & environ.keys())


def _foreign_python(environ: Mapping[str, str]) -> list[str]:
    """The variables of ``environ`` by which Python would run otherwise than it does for us."""
    kept = _PYTHON_KEPT | _inherited(environ)
    return [name for name in environ if _PYTHON.fullmatch(name) and name not in kept]


def _inherited(environ: Mapping[str, str]) -> set[str]:
    return {name.strip() for name in environ.get(INHERIT, "").split(",")}


def jvm_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a JVM of ours, which its Python workers inherit: ``environ`` without what is foreign."""
    environ = os.environ if environ is None else environ
    gone = {*foreign_spark(environ), *_foreign_python(environ), _AGAIN}
    return {k: v for k, v in environ.items() if k not in gone and not k.startswith(_LOCALE)} | WORKER


def with_names_as_utf8(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` for a JVM that is no Spark, such as the one that fetches jars: names of files are UTF-8, and its
    user's options stay, since they may name a proxy.
    """
    return {k: v for k, v in environ.items() if not k.startswith(_LOCALE)} | WORKER


_TOLD = (settings.WORKER_MEMORY_VARIABLE, settings.SYNC_VARIABLE, "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ALLOW_HTTP")
"""Settings of this process that hold for Python workers too, where those of a cluster would not hear of them. Keys of
object stores are not among them: Spark's settings are shown to whoever may look at its page."""


def executor_conf() -> dict[str, str]:
    """The same for the executors of a cluster, whose JVMs its own workers start, as settings of Spark."""
    told = {name: os.environ[name] for name in _TOLD if os.environ.get(name)}
    return {
        "spark.executor.extraJavaOptions": jvm_options(STACK),
        "spark.executor.memory": settings.executor_memory(),
        **{f"spark.executorEnv.{name}": value for name, value in {**WORKER, **told}.items()},
    }


def python_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a Python process of ours that is no worker of Spark's: UTF-8, and settings that are ours."""
    gone = {*_foreign_python(environ), _AGAIN}
    return {k: v for k, v in environ.items() if k not in gone} | {"PYTHONUTF8": "1"}


def faults() -> list[str]:
    """What is wrong with this Python process, and the setting to change."""
    found = []
    if not _utf8(sys.getfilesystemencoding()):
        found.append(
            f"This Python takes names of files for {sys.getfilesystemencoding()}, not for UTF-8, and would not find"
            " those with other signs. Set PYTHONUTF8=1, or LC_ALL=C.UTF-8."
        )
    if sys.flags.optimize > 1:
        found.append(
            "This Python runs without docstrings (PYTHONOPTIMIZE=2 or -OO), and Great Expectations cannot be imported"
            " so. Unset PYTHONOPTIMIZE, or set it to 1."
        )
    if any(_makes_errors(option) for option in sys.warnoptions):
        found.append(
            "This Python takes warnings for errors (PYTHONWARNINGS or -W), and libraries that warn would fail. Unset"
            " PYTHONWARNINGS, or name the modules it is meant for: error:::my_module."
        )
    return found


def require_fit_python() -> None:
    """UnfitSetupError where this process would misread names of files or libraries would fail in it."""
    if found := faults():
        raise UnfitSetupError(" ".join(found))


def require_named_user() -> None:
    """SetupError where the system has no name for this user: Hadoop asks for one when a Spark starts, and takes it from
    nowhere else.
    """
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        user, group = os.geteuid(), os.getegid()
        raise SetupError(
            f"This system has no name for the user id {user}, and Spark does not start without one. Add a line such as"
            f" 'spark:x:{user}:{group}::/tmp:/bin/sh' to /etc/passwd, run as a user who has a name, or let SPARK_REMOTE"
            " name a Spark Connect server that somebody else started."
        ) from None


def fit_command() -> None:
    """Starts a command again where its Python is unfit, as UTF-8, with docstrings and without settings that are meant
    for others; returns where it is fit. What is printed is never refused for its encoding: signs that it lacks are
    escaped.
    """
    _open_streams()
    unfit = faults() or any(os.environ.get(name) for name in _PYTHON_OF_COMMANDS)
    if unfit and _AGAIN not in os.environ:
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], python_environment(os.environ) | {_AGAIN: "1"})
    os.environ.pop(_AGAIN, None)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]


def _open_streams() -> None:
    """Where standard input, output or errors are closed (``>&-``), nothing is read or said: else the next file that is
    opened would get their number, and what is meant for a user.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def _makes_errors(option: str) -> bool:
    """Whether a filter ``action:message:category:module:line`` makes errors of warnings in whatever module."""
    action, *fields = option.split(":")
    # an action may be shortened, as `python -We` does
    return bool(action.strip()) and "error".startswith(action.strip()) and not any(map(str.strip, fields[2:3]))


def _utf8(name: str) -> bool:
    return codecs.lookup(name).name == "utf-8"
