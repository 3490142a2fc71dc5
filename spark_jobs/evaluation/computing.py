"""Columns of a worker's rows that are computed where they lie, without Spark SQL (``in_arrow.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from sweeparea.operators.bridge import Pipe
from sweeparea.operators.linear import computed
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.values.bag import BAG
from sweeparea.spark_jobs.evaluation import in_arrow


def renamed(below: Pipe, wanted: Mapping[str, str]) -> Pipe | None:
    """The rows with other names for their columns; None: one of the ``wanted`` ones is something else."""
    return below.renamed({name: _bare(sql) for name, sql in wanted.items()} | {name: name for name in BAG})


def behind(
    below: Pipe, wanted: Mapping[str, str], given: Mapping[str, pa.DataType], made: Mapping[str, pa.DataType]
) -> Pipe | None:
    """The rows with the columns ``wanted`` (name to text over theirs), and those of a bag; None: Spark has to compute
    one.

    ``given``: types of the columns below, of those that Arrow may compute with; ``made``: those that Spark says of the
    wanted ones.
    """
    columns = {name: _bare(sql) for name, sql in wanted.items()}
    kept = [(name, column) for name, column in columns.items() if column in below.columns]
    trees = [(name, in_arrow.computed(wanted[name], given)) for name in wanted if columns[name] not in below.columns]
    found = [(name, tree) for name, tree in trees if tree is not None and tree.type == made.get(name)]
    if len(found) < len(trees):
        return None
    read = [*(column for _, column in kept), *(column for _, tree in found for column in computed.columns_of(tree))]
    names = list(dict.fromkeys([*read, *BAG]))
    return below.mapped(partial(computed.projected, outputs=found, kept=kept), names, [*wanted, *BAG])


def _bare(sql: str) -> str:
    """The column that a text is, perhaps in parentheses."""
    sql = sql.strip()
    while sql.startswith("(") and sql.endswith(")"):
        sql = sql[1:-1].strip()
    return Expr(sql).bare
