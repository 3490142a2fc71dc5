"""A bound continuous query."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.stream_kind import ResultKind, StreamKind
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.user_code.user_modules import Modules


@dataclass(frozen=True)
class Constraint:
    """A row constraint: violated where ``condition`` is FALSE or cannot be computed. ``on_violation`` is fail,
    quarantine or warn.
    """

    name: str
    condition: Expr
    on_violation: str


@dataclass(frozen=True)
class Expectation:
    """What several rows together are expected to be; ``statements.ExpectationSpec`` says what ``kind``, ``type`` and
    ``arguments`` are. ``on_violation`` is fail or warn, ``per`` the unit of time (ticks) that is judged, None: each
    commit. Results are the same with and without it.
    """

    name: str
    kind: str
    type: str
    arguments: tuple[tuple[str, object], ...]
    on_violation: str
    per: int | None = None


class UserKind(StrEnum):
    """What a user's code is."""

    FUNCTION = "function"
    AGGREGATE = "aggregate"
    WINDOW = "window"


@dataclass(frozen=True)
class UserFunction:
    """What CREATE FUNCTION, AGGREGATE or WINDOW registered: ``target`` is ``module:object``, ``type`` the
    declared result type (Spark DDL; of a window: its declared update pattern), ``modules`` those of the application
    that registered it. ``running``: an aggregate has a state that adds and removes rows.
    """

    name: str
    kind: UserKind
    target: str
    type: str
    modules: Modules | None = field(default=None, compare=False, repr=False)
    running: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Plan:
    """A bound continuous query, ready to run.

    ``root`` is the relation whose instantaneous contents the query means; ``stream`` is istream / dstream / rstream
    where the query is stream-valued (the RelationToStream node itself is then not in ``root``), else None. Output
    columns are ``root.columns`` in order; their labels are the result table's column names. ``materialize`` lists
    which tables are kept: a subset of relation, istream, dstream, rstream, and quarantine where a constraint keeps rows
    out of the others. ``inputs`` are the names scanned.
    ``notes`` are the defaults applied, ``rewrites`` the rules that changed the plan, ``functions`` the user's own
    functions in it. ``every`` and ``anchor`` (ticks) belong to rstream. ``emits_each``: each row that ``root`` brings
    is an element of the stream, once, at the instant at which it begins; no difference is taken and nothing is kept.
    ``chars``: the output columns that hold CHAR values, with the types that these are declared as.
    """

    name: str
    root: Node
    stream: StreamKind | None
    time: TimeDomain
    start: int = 0
    every: int | None = None
    anchor: int = 0
    materialize: tuple[ResultKind, ...] = ()
    inputs: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())
    rewrites: tuple[str, ...] = ()
    functions: tuple[UserFunction, ...] = ()
    emits_each: bool = False
    chars: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    expectations: tuple[Expectation, ...] = ()

    @property
    def kind(self) -> ResultKind:
        """What the query itself is."""
        return ResultKind.RELATION if self.stream is None else ResultKind(self.stream)

    def table(self, kind: ResultKind) -> str:
        """The name of the result table of that kind: after the query what it is itself, others with a suffix."""
        return self.name if kind == self.kind else f"{self.name}__{kind}"
