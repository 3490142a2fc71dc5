"""Spark's errors as a reader of a query is told them: the sentence and the expression, without addresses and codes."""

from __future__ import annotations

import pytest

from sweeparea.infra.errors import DataError, SetupError, WorkerMemoryError
from sweeparea.spark_jobs.spark.errors import ArgumentTypeError, SliceError, readable

ARGUMENTS = (
    "[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] The `substr` requires 2 parameters but the actual number is 1. Please,"
    " refer to 'https://spark.apache.org/docs/latest/sql-ref-functions.html' for a fix. SQLSTATE: 42605; line 1 pos 7"
)
DIVIDED = """[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. \
If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22012
== SQL (line 1, position 12) ==
SELECT id, 1 / (`c1`-`c1`) AS r
           ^^^^^^^^^^^^^^^

JVM stacktrace: org.apache.spark.SparkArithmeticException"""
TWO_LINES = """[CAST_OVERFLOW] The value 300 cannot be cast. SQLSTATE: 22003
== SQL (line 1, position 1) ==
CAST(c2
^^^^^^^
  AS TINYINT) AS t
^^^^^^^^^^^^^
"""
FULL = """[TASK_WRITE_FAILED] Task failed while writing rows to file:/data/x. SQLSTATE: 58030
JVM stacktrace: org.apache.spark.SparkException
\tat org.apache.spark.sql.Foo.bar(Foo.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"""


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        (
            ARGUMENTS,
            ArgumentTypeError,
            "q: [WRONG_NUM_ARGS.WITHOUT_SUGGESTION] The `substr` requires 2 parameters but the actual number is 1.",
        ),
        (
            DIVIDED,
            DataError,
            "q: [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL"
            " instead. It is in: 1 / (`level`-`level`). Filter or guard the rows that cause it (try_cast, try_divide,"
            " NULLIF).",
        ),
        (
            TWO_LINES,
            DataError,
            "q: [CAST_OVERFLOW] The value 300 cannot be cast. It is in: CAST(amount AS TINYINT). Filter or guard the"
            " rows that cause it (try_cast, try_divide, NULLIF).",
        ),
        (
            FULL,
            SetupError,
            "q: There is no disk space left to write its files (Caused by: java.io.IOException: No space left on"
            " device). Free some space (old versions: VACUUM) and run the same command again: nothing is lost, and what"
            " was half written is ignored.",
        ),
        (
            "[INVALID_INDEX_OF_ZERO] The index 0 is invalid. SQLSTATE: 22003",
            DataError,
            "q: [INVALID_INDEX_OF_ZERO] The index 0 is invalid. Filter or guard the rows that cause it (try_cast,"
            " try_divide, NULLIF).",
        ),
        (
            "[DUPLICATED_MAP_KEY] Duplicate map key k was found. SQLSTATE: 23505",
            DataError,
            "q: [DUPLICATED_MAP_KEY] Duplicate map key k was found. Filter or guard the rows that cause it (try_cast,"
            " try_divide, NULLIF).",
        ),
        (
            "[INCOMPATIBLE_COLUMN_TYPE] UNION can only be performed on like columns. SQLSTATE: 42825",
            ArgumentTypeError,
            "q: [INCOMPATIBLE_COLUMN_TYPE] UNION can only be performed on like columns.",
        ),
        ("[ODD] No such thing; line 1 pos 7", SliceError, "q: [ODD] No such thing"),
        ("[ODD] It broke. See https://x.org/a.html. Try again.", SliceError, "q: [ODD] It broke. Try again."),
        ("Lost a thing. See http://x.org/a for more.", SliceError, "q: ValueError: Lost a thing."),
    ],
)
def test_errors_of_spark_are_told_in_words(text, kind, told):
    error = readable(ValueError(text), "q", {"c1": "level", "c2": "amount"})
    assert type(error) is kind
    assert str(error) == told


def test_spark_that_is_gone_is_told_as_that():
    """A killed JVM is a refused connection to Python, which tells nobody what to do, and so is a session that a server
    does not know which was started in the place of another.
    """
    for lost in (
        ConnectionRefusedError(111, "Connection refused"),
        ValueError("Answer from Java side is empty"),
        ValueError("[INVALID_HANDLE.SESSION_NOT_FOUND] The handle e5 is invalid. Session not found. SQLSTATE: HY000"),
        ValueError("[RESPONSE_ALREADY_RECEIVED] INVALID_HANDLE.SESSION_NOT_FOUND on the server but responses .."),
        ValueError("[RETRIES_EXCEEDED] The maximum number of retries has been exceeded."),
    ):
        error = readable(lost, "query q, slice (0, 5]")
        assert type(error) is SliceError
        assert str(error).startswith("query q, slice (0, 5]: Spark is gone: ")
        assert "Run again" in str(error)


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        (
            "Traceback\n  File x\nsweeparea.infra.errors.WorkerMemoryError: topk1, 9 rows (malloc)\n",
            WorkerMemoryError,
            "q: a Python worker of Spark has too little memory: topk1, 9 rows (malloc). Nothing was published.",
        ),
        (
            "PythonException: Traceback\n  File x\npyarrow.lib.ArrowMemoryError: malloc of size 640 failed\n",
            WorkerMemoryError,
            "q: a Python worker of Spark has too little memory. It was at work on topk1, 9 rows. Nothing was",
        ),
        (
            "PythonException: Traceback\n  File x\nMemoryError\n",
            WorkerMemoryError,
            "q: a Python worker of Spark has too",
        ),
        (
            "Job aborted: java.lang.OutOfMemoryError: GC overhead limit exceeded",
            SetupError,
            "q: Spark's JVM has too little memory. It was at work on topk1, 9 rows. Nothing was published. Give it a",
        ),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            SliceError,
            "q: a Python worker of Spark died in the middle of its work: it was killed, or the machine ran out of"
            " memory. It was at work on topk1, 9 rows. Nothing was published. Run again.",
        ),
        (
            "Job aborted: Total size of serialized results (2.0 GiB) is bigger than spark.driver.maxResultSize",
            SetupError,
            "q: the rows between two operators of one slice are more than Spark gives to its driver at once. It was at",
        ),
        (
            "[CAST_INVALID_INPUT] The value 'a MemoryError' of x. SQLSTATE: 22018",
            DataError,
            "q: [CAST_INVALID_INPUT] The",
        ),
    ],
)
def test_a_want_of_memory_is_told_with_the_task_that_had_it(text, kind, told):
    error = ValueError(text)
    error.add_note("topk1, 9 rows")
    found = readable(error, "q")
    assert type(found) is kind
    assert str(found).startswith(told)


def test_a_command_without_memory_is_no_fault_of_the_rows():
    error = readable(MemoryError(), "q")
    assert type(error) is SetupError
    assert "the process of this command has too little memory: an allocation failed." in str(error)
