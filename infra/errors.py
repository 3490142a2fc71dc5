"""The root of every error that a user is meant to read, and how commands of set-up end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any


class SweepAreaError(Exception):
    """One readable paragraph: what is wrong, with which thing, and what to do. The command line prints no trace.

    ``type`` is the class of failure that ``replay`` reports: ParseError, BindError, TypeError, RefusedError, DataError.
    """

    type: str = "Error"
    exit_code: int = 1


class UsageError(SweepAreaError):
    """What was asked for means nothing here: a name that nobody has, an instant or a range that is none."""

    exit_code = 2


class DataError(SweepAreaError):
    """Caused by rows: overflow, division by zero, a cast, a net count below zero, a heartbeat that goes back."""

    type = "DataError"


class SetupError(SweepAreaError):
    """The machine lacks something: Java, a jar, a port, disk space."""

    type = "SetupError"
    exit_code = 3


class WorkerMemoryError(SetupError):
    """A process that computes could not have the memory that it asked for."""


class UnfitSetupError(SetupError):
    """What is there would give other answers: a Python or a Spark with another language, encoding or rules of zones."""


OF_SPARK = ("delta", "google", "great_expectations", "grpc", "grpc_status", "numba", "pandas", "pyspark", "zstandard")
"""What is imported of the packages of the extra ``spark``, without which an installation parses and shows only."""


def missing_extra(error: ImportError) -> SetupError | None:
    """What to tell of an import that failed because the extra ``spark`` was not installed; None: it failed otherwise.

    >>> missing_extra(ModuleNotFoundError("No module named 'x'", name="x")) is None
    True
    """
    package = (error.name or "").partition(".")[0]
    if package not in OF_SPARK or not isinstance(error, ModuleNotFoundError):
        return None
    return SetupError(
        f"The environment {sys.prefix} has no {package}, which what computes needs: install sweeparea[spark] there, or"
        " use another environment that has it. Tasks of Airflow do with python = '/path/to/its/python'."
    )


def shortened(text: str, length: int = 800) -> str:
    """A text for a message: of a long one, which quotes an expression or a plan, its beginning and its end."""
    if len(text) <= length:
        return text
    return f"{text[: length * 2 // 3].rstrip()} .. {text[-length // 3 :].lstrip()}"


def drop_output() -> None:
    """From now on nobody sees what is written to standard output: its reader, such as ``head -1``, has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class _LastingOutput:
    """Standard output whose reader may go: what is written then is dropped, and the work goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            drop_output()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            drop_output()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def exit_code_of(command: Callable[[], int | None], interrupted: str) -> int:
    """Runs a command of set-up; returns its exit code. An error is one paragraph; after Ctrl-C or SIGTERM, which ends
    as Ctrl-C does, ``interrupted`` tells how things stand. A reader of the output that goes does not end the command.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    output = sys.stdout
    sys.stdout = _LastingOutput(output)
    try:
        return command() or 0
    except SweepAreaError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"interrupted; {interrupted}", file=sys.stderr)
        return 130
    finally:
        sys.stdout.flush()
        sys.stdout = output
