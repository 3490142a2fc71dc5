"""The Python code that CREATE FUNCTION, AGGREGATE and WINDOW name: found for planning, registered for a slice.

Modules are looked for beside the ``.cql`` files first. They are sent to Spark's workers by value, so a worker need not
have them on its own path.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeparea.cql import user_functions
from sweeparea.operators import user
from sweeparea.operators.logical import UserFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.cql.statements import CreateFunction


def registered(declared: Iterable[CreateFunction], folder: str | Path | None) -> tuple[UserFunction, ...]:
    """What the declarations name, imported and checked. BindError with the statement's place where one is no good."""
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return tuple(user_functions.register(statement) for statement in declared)


def register(spark: SparkSession, functions: Iterable[UserFunction]) -> None:
    """Makes a plan's scalar functions known to a session under their names, and all its modules to the workers."""
    from pyspark import cloudpickle
    from pyspark.sql.functions import arrow_udf

    for function in functions:
        module = importlib.import_module(function.target.partition(":")[0])
        cloudpickle.register_pickle_by_value(module)
        if function.kind == "function":
            call: Any = user.load(function.target, "function").call
            made: Any = arrow_udf(_variadic(call), function.type)  # pyright: ignore
            spark.udf.register(function.name, made)


def _variadic(call: Any) -> Any:
    """``call`` as Spark wants it: annotated as a function from Arrow arrays to an Arrow array."""
    import pyarrow as pa

    def columns(*arguments: pa.Array) -> pa.Array:
        made = call(*arguments)
        return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made

    columns.__annotations__ = {"arguments": pa.Array, "return": pa.Array}
    return columns
