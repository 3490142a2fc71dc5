"""Errors of running jobs, and the translation of Spark's own into readable ones."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sweeparea.infra.errors import DataError, SetupError, SweepAreaError, WorkerMemoryError, shortened
from sweeparea.tables.log.write_errors import said_full, write_error


class ArgumentTypeError(SweepAreaError):
    """An argument has a type that its function or operator cannot take."""

    type = "TypeError"


class UnheldTypeError(ArgumentTypeError):
    """A column that rows must be remembered by has a type that no table holds; ``column`` is the engine's id of it."""

    def __init__(self, column: str, kind: str):
        self.column, self.kind = column, kind.upper()
        super().__init__(self.told("a column"))

    def told(self, what: str) -> str:
        """The sentence about ``what``, with the way out."""
        instead = "CAST NULL to a type, as in CAST(NULL AS INT)"
        if "INTERVAL" in self.kind:
            instead = "Take a number instead, as timestampdiff(SECOND, a, b) or datediff(b, a) give it"
        elif "VOID" not in self.kind:
            instead = "Take the parts of it that are needed"
        return (
            f"{what} is of type {self.kind}, which no table holds, and rows are remembered by it: to be grouped,"
            f" aggregated, sorted, compared or counted. {instead}."
        )


class ReservedNameError(SweepAreaError):
    """A column has a name that the engine keeps for itself."""

    type = "BindError"


class NotReadyError(SweepAreaError):
    """Something that must exist first does not: a stream never admitted, a query never processed."""

    exit_code = 2


class SliceError(SweepAreaError):
    """A slice could not be computed; nothing of it was published."""


_DATA = (
    "ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|CAST_INVALID_INPUT|CAST_OVERFLOW|INVALID_ARRAY_INDEX|NUMERIC_VALUE_OUT_OF_RANGE|"
    "BINARY_ARITHMETIC_OVERFLOW|CANNOT_PARSE|INVALID_FRACTION_OF_SECOND|DATETIME_OVERFLOW|MAP_KEY_DOES_NOT_EXIST|"
    "REMAINDER_BY_ZERO|INTERVAL_ARITHMETIC_OVERFLOW|INTERVAL_DIVIDED_BY_ZERO|DECIMAL_PRECISION|UNEXPECTED_|USER_RAISED|"
    "DUPLICATED_MAP_KEY|COLLECTION_SIZE_LIMIT"
)
"""Conditions that rows bring about, beside those whose SQLSTATE says so: class 22 is SQL's data exceptions."""
_TYPE = (
    "DATATYPE_MISMATCH|UNRESOLVED|WRONG_NUM_ARGS|MISMATCH|INCOMPARABLE|NON_FOLDABLE|INCOMPATIBLE_COLUMN_TYPE|"
    "NUM_COLUMNS_MISMATCH|PARSE_SYNTAX_ERROR"
)


@contextmanager
def told_if_gone(where: str) -> Iterator[None]:
    """An error inside that only says that Spark has gone is raised in words; others pass as they are."""
    try:
        yield
    except SweepAreaError:
        raise
    except Exception as error:
        if _is_lost(error):
            raise readable(error, where) from error
        raise


def _is_lost(error: Exception) -> bool:
    return isinstance(error, ConnectionError) or bool(re.search(_LOST, f"{type(error).__name__}: {error}"))


def readable(error: Exception, where: str, names: Mapping[str, str] | None = None) -> SweepAreaError:
    """``error`` of Spark or of a sweep as one paragraph that names ``where`` (a query and its slice, or a stream).

    ``names`` maps the engine's column ids to what their author wrote, for messages that quote expressions. A note of
    ``error`` says at which task a worker was (``slices/long_tasks.py``).
    """
    known = names or {}
    if isinstance(error, UnheldTypeError):
        label = known.get(error.column)
        return ArgumentTypeError(f"{where}: {error.told(f'column {label}' if label else 'an argument or key')}")
    if isinstance(error, SweepAreaError):
        return error

    def named(text: str) -> str:
        return re.sub(r"\bc\d+\b", lambda m: known.get(m.group(), m.group()), text)

    text = named(str(error))
    blamed = named(_blamed(str(error)))
    swept = re.search(r"sweeparea\.infra\.errors\.(\w+): (.+)", text)
    if swept and swept.group(1) == WorkerMemoryError.__name__:
        return WorkerMemoryError(f"{where}: {_WORKER}: {swept.group(2).strip()}. Nothing was published. {_FEWER}")
    if swept:
        kind = SetupError if swept.group(1).endswith("SetupError") else DataError
        return kind(f"{where}: {swept.group(2).strip()}")
    if (line := said_full(text)) and (explained := write_error("its files", OSError(line[:300]))):
        return SetupError(f"{where}: {explained}")
    at_work = "".join(f" It was at work on {note}." for note in getattr(error, "__notes__", ()))
    if isinstance(error, MemoryError):
        return SetupError(
            f"{where}: the process of this command has too little memory: {text or 'an allocation failed'}. Nothing was"
            f" published. Give the machine more; {_SMALLER} (docs/sizing.md)."
        )
    if re.search(_ALLOCATION, text, re.MULTILINE):
        return WorkerMemoryError(f"{where}: {_WORKER}.{at_work} Nothing was published. {_FEWER}")
    if re.search(_HEAP, text):
        return SetupError(
            f"{where}: Spark's JVM has too little memory.{at_work} Nothing was published. Give it a larger heap"
            f" (SWEEPAREA_SPARK_MEMORY, 4g unless set; of a server of its own, where that is started); {_SMALLER}"
            " (docs/sizing.md)."
        )
    if "spark.driver.maxResultSize" in text:
        return SetupError(
            f"{where}: the rows between two operators of one slice are more than Spark gives to its driver at once."
            f"{at_work} Nothing was published. What helps: {_SMALLER}; an ON condition by which fewer rows meet"
            " (docs/sizing.md)."
        )
    if re.search(_DIED, text):
        return SliceError(
            f"{where}: a Python worker of Spark died in the middle of its work: it was killed, or the machine ran out"
            f" of memory.{at_work} Nothing was published. Run again. If it dies again: with a SWEEPAREA_WORKER_MEMORY"
            f" below what the machine has, it says what it lacks before the system kills it. {_FEWER}"
        )
    if _is_lost(error):
        return SliceError(
            f"{where}: Spark is gone: its own process (the JVM, or the server of Spark Connect) was killed, ran out of"
            f" memory, or cannot be reached.{at_work} What was half done is ignored. Run again; under Airflow see the"
            " service's log, and make up starts it anew. If it ran out of memory: SWEEPAREA_SPARK_MEMORY is its heap."
        )
    condition = re.search(r"\[([A-Z_.]+)\]\s*(.*)", text, re.DOTALL)
    if condition:
        name, message = condition.group(1), " ".join(condition.group(2).split("SQLSTATE")[0].split())
        message = message.split(" == SQL")[0].split("JVM stacktrace")[0].split("If necessary set")[0]
        message = re.sub(r";? line \d+,? pos(ition)? \d+.*", "", _URL.sub("", message)).strip()
        message = f"[{name}] {shortened(message)}{f' It is in: {shortened(blamed, 200)}.' if blamed else ''}"
        state = re.search(r"SQLSTATE:? *(\w{5})", text)
        by_rows = re.search(_DATA, name) or (state and state.group(1).startswith("22"))
        if by_rows and not name.startswith("DATATYPE_MISMATCH"):
            return DataError(
                f"{where}: {message} Filter or guard the rows that cause it (try_cast, try_divide, NULLIF)."
            )
        if re.search(_TYPE, name) or "INVALID_PARAMETER" in name:
            return ArgumentTypeError(f"{where}: {message}")
        return SliceError(f"{where}: {message}")
    shown = " ".join(_URL.sub("", " ".join(text.split())).split("SQLSTATE")[0].split())
    return SliceError(f"{where}: {type(error).__name__}: {shown[:600]}")


_WORKER = "a Python worker of Spark has too little memory"
_SMALLER = "a lower slice.max_rows cuts slices smaller, down to the rows of one instant"
_FEWER = (
    "Let workers have more memory (SWEEPAREA_WORKER_MEMORY), or fewer of them at once"
    f" (SWEEPAREA_SPARK_CORES, local[1]); or a task fewer rows: {_SMALLER}, a shorter window holds fewer, and"
    " GROUP BY or PARTITION BY of more columns divides a key, whose rows one worker has (docs/sizing.md)."
)
"""What to do where one worker has too many rows."""
_ALLOCATION = r"^[\w. ]*MemoryError\b|\b(m|re)alloc of size \d+ failed"
"""How Python, numpy, numba and Arrow say in a trace that they were given no memory."""
_HEAP = "OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|Not enough memory to build|Cannot allocate memory"
_DIED = "Python worker exited unexpectedly|Python worker failed|Python process.*(crashed|exited)|ExecutorLostFailure"

_LOST = (
    "Py4JNetworkError|Answer from Java side is empty|StatusCode.UNAVAILABLE|failed to connect to all addresses"
    r"|RetriesExceeded|RETRIES_EXCEEDED|RESPONSE_ALREADY_RECEIVED|INVALID_HANDLE\.(SESSION|OPERATION)_(NOT_FOUND|CLOSED|CHANGED)"
)
"""How Python tells that the other side of its connection to Spark has gone, or that another was started in its place.
"""

_URL = re.compile(r"[^.!?]*https?://(?:\S*\.(?=\s|$)|\S+[^.!?]*[.!?]?)")
"""A sentence that sends its reader to a page about another product."""


def _blamed(text: str) -> str:
    """The expression that Spark underlines in its message, empty where it underlines none."""
    _, _, quoted = text.partition("\n== SQL")
    pairs = itertools.pairwise(quoted.splitlines())
    parts = [
        above[mark.start(1) : mark.end(1)] for above, below in pairs if (mark := re.fullmatch(r" *(\^+) *", below))
    ]
    return " ".join(" ".join(parts).split())
