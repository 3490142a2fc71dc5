"""Aggregates that Spark gathers as lists and a function of Arrow arrays evaluates: exact moments, users' aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from sweeparea.operators.values import keys


class OfLists(Protocol):
    """Gives one value of ``type`` for each list of an array."""

    @property
    def type(self) -> pa.DataType: ...

    def __call__(self, lists: pa.Array) -> pa.Array: ...


def finished_schema(schema: pa.Schema, functions: Mapping[str, OfLists]) -> pa.Schema:
    """The schema of ``finish``."""
    return pa.schema([pa.field(f.name, functions[f.name].type if f.name in functions else f.type) for f in schema])


def finish(table: pa.Table, functions: Mapping[str, OfLists]) -> pa.Table:
    """The table with the lists of the columns that ``functions`` names evaluated.

    >>> from sweeparea.operators.aggregates.moments import Exact
    >>> finish(pa.table({"k": [1], "v": [[1.0, 3.0]]}), {"v": Exact("VAR_POP")}).to_pylist()
    [{'k': 1, 'v': 1.0}]
    """
    for name, function in functions.items():
        column = function(keys.one_array(table.column(name)))
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table
