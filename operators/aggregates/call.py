"""One aggregate of a plan, as its author wrote it. (What a sweep keeps for it: ``calls.py``.)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sweeparea.operators.aggregates.names import ADDITIVE, AVERAGES, INCREMENTAL, OF_VALUES, ORDERED, SKIP_NULLS
from sweeparea.operators.base.stored_names import stored
from sweeparea.operators.plan.influence import Influence, Made, made_by, read_by
from sweeparea.operators.plan.node import Evaluated, ExpressionKind, plain
from sweeparea.operators.plan.words import listed, order_text
from sweeparea.operators.sql.expressions import Expr, Part, SortKey


@stored(
    "AggregateCall", "function", "argument", "extra", "distinct", "filter", "order", "ignore_nulls", later=("running",)
)
@dataclass(frozen=True)
class AggregateCall(Part):
    """One aggregate. ``function`` is Spark's name in upper case (COUNT, SUM, PERCENTILE, ..), SINGLE_VALUE (what
    a scalar subquery gives: NULL of no row, an error of more than one), or the name of a user's aggregate.

    ``argument`` None stands for COUNT(*); ``extra`` are further arguments (CORR(x, y)). ``order`` is a total order of
    the rows, complete with its ties, where the function depends on one (FIRST, COLLECT_LIST, WITHIN GROUP).
    ``running``: it is a user's whose state adds and removes rows.
    """

    function: str
    argument: Expr | None = None
    extra: tuple[Expr, ...] = ()
    distinct: bool = False
    filter: Expr | None = None
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False
    running: bool = False

    @property
    def given(self) -> tuple[Expr, ...]:
        """Its arguments."""
        return self.extra if self.argument is None else (self.argument, *self.extra)

    @property
    def words(self) -> str:
        """The call, for explain."""
        order = f" ORDER BY {order_text(self.order)}" if self.order else ""
        where = f" FILTER (WHERE {self.filter.words})" if self.filter is not None else ""
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{listed(self.given) or '*'}{order}){where}"

    @property
    def sql(self) -> str:
        """What gives Spark the call's type."""
        if self.function == "SINGLE_VALUE":
            assert self.argument is not None
            return self.argument.sql
        if self.function in ("PERCENTILE_CONT", "PERCENTILE_DISC"):
            assert self.argument is not None
            return f"{self.function}({self.extra[0].sql}) WITHIN GROUP (ORDER BY {self.argument.sql})"
        arguments = ["1"] if self.argument is None else [e.sql for e in self.given]
        return f"{self.function}({', '.join(arguments)})"

    @property
    def expansion(self) -> str | None:
        """Why no sweep keeps it up to date."""
        if self.running:
            return None
        if self.function not in INCREMENTAL:
            return f"the aggregate {self.function}"
        if self.function == "PERCENTILE" and len(self.extra) > 1:
            return "PERCENTILE(.., .., frequency)"
        if self.function in ("MAX_BY", "MIN_BY") and len(self.extra) > 1:
            return f"{self.function}(.., .., number)"
        return None

    @property
    def sums(self) -> bool:
        """Whether its state is a sum."""
        return not self.distinct and not self.running and self.function in ADDITIVE | AVERAGES

    @property
    def chooses(self) -> bool:
        """Whether it is the value of one element, the first of an order."""
        return not self.running and self.function in ORDERED | {"MIN", "MAX"}

    def made(self, column: str) -> Made:
        """What goes into its value, which is called ``column``."""
        if self.function == "SINGLE_VALUE" and self.argument is not None:
            return made_by(column, self.argument)
        beside = [(Influence.SORT, read_by(key.expr for key in self.order))]
        beside += [] if self.filter is None else [(Influence.FILTER, self.filter.columns)]
        return Made(column, read_by(self.given), Influence.AGGREGATION, tuple(beside))

    def without_filter(self) -> AggregateCall:
        """The same value, without FILTER where the function leaves out NULLs."""
        if self.filter is None or self.running or self.function not in SKIP_NULLS:
            return self
        value = self.argument or Expr("1", "*")
        columns = value.columns | self.filter.columns
        argument = Expr(f"IF(({self.filter.sql}), ({value.sql}), NULL)", value.text, columns)
        return replace(self, argument=argument, filter=None)

    def kept(self, known: bool) -> str | None:
        """What is kept beside counts and sums, for explain; ``known``: of elements whose expiry is."""
        if self.running:
            return f"the rows' arguments of each group ({self.function})"
        if self.function in ("MIN", "MAX"):
            return (
                "the undominated elements of each group (MIN, MAX)" if known else "the values of each group (MIN, MAX)"
            )
        if self.function in ORDERED:
            kind = "undominated" if known else "live"
            return f"the {kind} elements of each group in the order of {self.function}"
        if self.distinct:
            return f"the distinct values of each group ({self.function} DISTINCT)"
        return f"the values of each group ({self.function})" if self.function in OF_VALUES else None


def evaluated_call(call: AggregateCall, remembered: bool = False) -> Iterator[Evaluated]:
    """What Spark is given of a call: its arguments, its condition, the call itself."""
    yield from plain(*call.given, *(key.expr for key in call.order), remembered=remembered)
    if call.filter is not None:
        yield Evaluated(f"({call.filter.sql})", [call.filter.text], condition=True)
    if call.function != "SINGLE_VALUE":
        yield Evaluated(call.sql, [e.text for e in call.given], kind=ExpressionKind.AGGREGATE)
