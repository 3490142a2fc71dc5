"""What a node says of itself where its file says nothing: slow perhaps, never wrong."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from sweeparea.operators import nodes
from sweeparea.operators.plan.edge import STRICT, Edge
from sweeparea.operators.plan.node import Evaluated, Node
from sweeparea.operators.plan.patterns import reach_of
from sweeparea.operators.plan.stretch import Stretch
from sweeparea.operators.plan.touched import touched
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sweeps.join import Join
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.time.ticks import INF
from sweeparea.operators.windows.time_windows import Range

SCAN = nodes.StreamScan("S", ((Column("c0", "v"), "v"),))
ROWS = nodes.Window(SCAN, Range(10))


@dataclass(frozen=True)
class Sampled(Node):
    """An operator that says what it must, and no more."""

    input: Node
    by: Expr

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def words(self, time: TimeDomain) -> str:
        return "Sampled"

    def edge(self, below: Sequence[Edge], static: Container[str]) -> Edge:
        return STRICT


@dataclass(frozen=True)
class Counted(Sampled):
    """One that looks back further than its input reaches."""

    @property
    def looks_back(self) -> int:
        return 5


SAMPLED = Sampled(ROWS, Expr("`c0` + 1", "v + 1", frozenset({"c0"})))


def test_rows_of_an_operator_of_which_nothing_is_known_are_kept_by_a_join_above_it():
    join = Join(SAMPLED, ROWS)
    assert ROWS.readable_again
    assert not SAMPLED.readable_again
    assert not join.readable_again
    assert join.read_again == (ROWS,)


def test_values_of_an_operator_of_which_nothing_is_known_must_be_storable():
    assert list(SAMPLED.evaluated()) == [Evaluated("(`c0` + 1)", ["v + 1"], remembered=True)]


def test_rows_of_an_input_matter_as_long_as_the_operator_looks_back():
    assert reach_of(Counted(ROWS, SAMPLED.by)) == {"S": reach_of(ROWS)["S"] + 5}


def test_a_leaf_of_which_nothing_is_known_may_change_at_any_time():
    class Clock(Sampled):
        @property
        def inputs(self) -> tuple[Node, ...]:
            return ()

    assert not Clock(ROWS, SAMPLED.by).settled({"S"})
    assert nodes.OneRow().settled(())
    assert nodes.OneRow().readable_again


def test_a_node_cannot_leave_out_its_inputs():
    assert "inputs" in Node.__abstractmethods__


def test_a_row_of_an_operator_of_which_nothing_is_known_matters_for_ever():
    """So a repair computes anew all that comes after, where it need not: slow, not wrong."""
    assert SAMPLED.looks_back == INF
    assert touched(SAMPLED, {"S": Stretch(5, 7)}) == Stretch(5, INF)
    kinds = {kind for kind in vars(nodes).values() if isinstance(kind, type) and issubclass(kind, Node)}
    kinds -= {kind for kind in kinds if getattr(kind, "__abstractmethods__", None)}
    assert not {kind for kind in kinds if kind.looks_back is Node.looks_back}
