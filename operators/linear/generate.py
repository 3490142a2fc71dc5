"""Each row beside what a generator makes of it: LATERAL VIEW (explode, inline, stack, ..). Linear, without state.

A record's n copies become n copies of each generated record, for as long as the record is valid: a map on bags that
gives several records for one (Kraemer & Seeger 2005, section 3.2.2). ``outer`` keeps a row of which the generator makes
none, with NULLs. Bag in, bag of ``node.columns`` out. Spark evaluates the generator itself.

>>> outer_call("explode(`c1`)"), outer_call("stack(2, `c1`, `c2`)")
('explode_outer(`c1`)', 'stack(2, `c1`, `c2`)')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.linear.map import Map
from sweeparea.operators.plan.node import Evaluated, ExpressionKind, Ids, ids_of
from sweeparea.operators.plan.words import columns_text, cut
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.values.bag import BAG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@stored("Generate", "input", "generator", "outputs", "outer")
@dataclass(frozen=True)
class Generate(Map):
    """Each row beside the rows that a generator (explode, inline, ..) makes of it: LATERAL VIEW.

    ``outer`` keeps a row for which the generator makes none, with NULLs. Output: the input's columns, then ``outputs``.
    """

    generator: Expr
    outputs: tuple[Column, ...]
    outer: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns + self.outputs

    def words(self, time: TimeDomain) -> str:
        outer = " OUTER" if self.outer else ""
        return f"Lateral view{outer} {cut(self.generator.text)} AS {columns_text(self.outputs)}"

    def needs(self, needed: Ids) -> Iterator[Ids]:
        yield (needed | self.reads) & ids_of(self.input)

    def evaluated(self) -> Iterator[Evaluated]:
        return self.computed()

    def computed(self) -> Iterator[Evaluated]:
        yield Evaluated(self.generator.sql, [self.generator.text], kind=ExpressionKind.GENERATOR, columns=self.outputs)


_MAY_BE_EMPTY = re.compile(r"\s*(explode|posexplode|inline)\s*\(", re.IGNORECASE)


def outer_call(sql: str) -> str:
    """The generator that gives a row of NULLs where ``sql`` gives none; most always give one."""
    found = _MAY_BE_EMPTY.match(sql)
    return sql if found is None else f"{found[1]}_outer({sql[found.end() :]}"


def apply(node: Generate, bag: DataFrame) -> DataFrame:
    """Bag in, bag of ``node.columns`` out."""
    call = outer_call(node.generator.sql) if node.outer else node.generator.sql
    names = ", ".join(c.id for c in node.outputs)
    return bag.selectExpr(*(f"`{c.id}`" for c in node.input.columns), f"{call} AS ({names})", *BAG)
