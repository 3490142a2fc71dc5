"""A DataFrame that is made when Spark is needed for it.

Most rows of a slice pass through Spark only where a task stands: sweeps stand one behind another in one worker
(``bridge.Pipe``), and what Spark would make of the rows in between is never asked. Each DataFrame costs Spark an
analysis, so one that a runner hands on is made when its rows are wanted. Meanwhile the types of its columns are those
of the columns that it shows; of an expression they are asked for alone, over no rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from sweeparea.operators.values.bag import BAG
from sweeparea.tables.log.schema import ddl_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

Types = Mapping[str, "str | DataType"]
"""Columns in their order, with their types: as DDL text what a table can hold, else as Spark has it."""

_NAME = r"(?:`((?:[^`]|``)+)`|([A-Za-z_]\w*))"
_SHOWN = re.compile(rf"(\()?{_NAME}(?(1)\))(?: AS {_NAME})?")
"""A column as it is, perhaps under another name."""
_CAST = re.compile(
    rf"CAST\((?:-?\d+|NULL|\(?{_NAME}\)?) AS"
    rf" (tinyint|smallint|int|bigint|float|double|boolean|date|timestamp|timestamp_ntz|binary|string)\) AS {_NAME}",
    re.IGNORECASE,
)
"""A column or a number as another type."""
_NAMED = re.compile(rf".* AS {_NAME}", re.DOTALL)


def deferred(spark: SparkSession, make: Callable[[], DataFrame], types: Types) -> DataFrame:
    """What ``make`` gives, made when it is needed; its columns are ``types``."""
    return cast("DataFrame", Deferred(spark, make, lambda: types))


class Deferred:
    """Behaves as the DataFrame that ``make`` gives; ``types`` tells its columns without it."""

    def __init__(self, spark: SparkSession, make: Callable[[], DataFrame], types: Callable[[], Types]) -> None:
        self._spark, self._make, self._types = spark, make, types

    @cached_property
    def _frame(self) -> DataFrame:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    @property
    def __class__(self) -> type:  # Spark Connect asks it of what is united or joined
        return type(self._frame)

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("a DataFrame that is yet to be made has the class of that one")

    @cached_property
    def types(self) -> Types:
        """Its columns."""
        return self._types()

    def of(self, make: Callable[[], DataFrame]) -> DataFrame:
        """What ``make`` gives, with these columns."""
        return cast("DataFrame", Deferred(self._spark, make, lambda: self.types))

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [*self.types]

    def selectExpr(self, *texts: str) -> DataFrame:
        """A projection. One that only Spark can name the columns of is made at once."""
        shown = [(*_column(text), text) for text in texts]
        if any(name is None for name, _, _ in shown):
            return self._frame.selectExpr(*texts)
        types = partial(self._projected, [(str(name), source, text) for name, source, text in shown])
        return cast("DataFrame", Deferred(self._spark, lambda: self._frame.selectExpr(*texts), types))

    def where(self, condition: Any) -> DataFrame:
        """A selection."""
        return self.of(lambda: self._frame.where(condition))

    def mapInArrow(self, task: Callable[..., Any], schema: Any, *more: Any) -> DataFrame:
        """What a task makes of the rows."""
        return self._frame.mapInArrow(task, schema, *more)

    def _projected(self, shown: Sequence[tuple[str, str, str]]) -> Types:
        found: dict[str, str | DataType] = {}
        asked: list[str] = []
        for name, source, text in shown:
            if source in self.types:
                found[name] = self.types[source]
            elif cast_to := _CAST.fullmatch(text):
                found[name] = cast_to[3].lower()
            elif name in BAG:
                found[name] = "bigint"
            else:
                found[name] = "void"  # its place among the columns
                asked.append(text)
        return {**found, **self._asked(asked)} if asked else found

    def _asked(self, texts: Sequence[str]) -> Types:
        """The types of expressions over the columns: an analysis of them alone."""
        columns = {f"`{name.replace('`', '``')}`": _ddl(kind) for name, kind in self.types.items()}
        nulls = (f"NULL AS {name}" if t == "void" else f"CAST(NULL AS {t}) AS {name}" for name, t in columns.items())
        return types_of(self._spark.range(0).selectExpr(*nulls).selectExpr(*texts))


def united(bags: Sequence[DataFrame]) -> DataFrame:
    """The rows of DataFrames whose columns stand in the same order: made when they are wanted, if the first one is and
    all have its types.
    """

    def union() -> DataFrame:
        total = bags[0]
        for other in bags[1:]:
            total = total.union(other)
        return total

    first: object = bags[0]
    if len(bags) == 1 or type(first) is not Deferred or any(type(bag) is not Deferred for bag in bags):
        return union()
    kinds = [[*map(_ddl, types_of(bag).values())] for bag in bags]
    return first.of(union) if all(other == kinds[0] for other in kinds[1:]) else union()


def types_of(frame: DataFrame) -> Types:
    """The columns of a DataFrame: one analysis, no job; none where they are known."""
    if type(frame) is Deferred:
        return frame.types
    return {field.name: field.dataType for field in frame.schema}


def _column(text: str) -> tuple[str | None, str]:
    """(name, column that it shows) of a projection's column; "" where it is computed, None where nothing names it."""
    shown = _SHOWN.fullmatch(text)
    if shown is not None:
        source = _unquoted(shown[2], shown[3])
        return (_unquoted(shown[4], shown[5]) if shown[4] or shown[5] else source), source
    named = _NAMED.fullmatch(text)
    return (None if named is None else _unquoted(named[1], named[2])), ""


def _unquoted(quoted: str | None, bare: str | None) -> str:
    return quoted.replace("``", "`") if quoted is not None else str(bare)


def _ddl(kind: str | DataType) -> str:
    return kind if isinstance(kind, str) else ddl_type(kind)
