"""Windows as written to windows of a plan, in ticks (semantics of each: ``operators/windows/definitions.py``).

A new window of time has a method in ``_Maker``; what it reads of the stream's columns is bound in ``bind_window``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from sweeparea.cql.binding.expressions.registry import binder_over
from sweeparea.cql.binding.scope.around import QueryAround
from sweeparea.cql.binding.scope.binder import Binder
from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.scopes import Item, Scope
from sweeparea.cql.syntax.windows.window_text import WindowKind, WindowText
from sweeparea.cql.text.durations import DurationText
from sweeparea.cql.text.errors import BindError, ParseError, TypeError_, raise_all
from sweeparea.cql.text.unknown_names import unknown_window
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import windows as spec
from sweeparea.operators.nodes import Window
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import UserFunction, UserKind
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.time.domain import TimeDomain, TimeKind

ORDERED = (spec.Rows, spec.When, spec.UserWindow)
"""Windows whose contents depend on which of several elements of one instant comes first."""


def bind_window(context: Context, stream: Node, item: Item, text: WindowText, sequence: str | None = None) -> Window:
    """A stream under a window. ``item`` names its columns; ``sequence`` is the id of its SEQUENCE BY column. What a
    subquery can name of the queries around it does not belong into a window.

    Raises ParseError (sizes and units), BindError (columns, names of user windows) or TypeError_ (conditions, columns
    of the query around).
    """
    made = _spec(text, context)
    scope = Scope.of(item)

    def bind(tree: Any, what: str) -> Expr:
        binder = binder_over(text.source, scope, _no_aggregate, what)
        _refuse_outer(tree, binder, context.outer)
        return binder.condition(tree) if what == "Tumbling When" else binder.kept(tree).expr

    parts = text.parts
    faults: list[SweepAreaError] = []
    for tree in (*parts.get("partition", ()), *parts.get("arguments", ())):
        try:
            bind(tree, "Partition By" if "partition" in parts else f"the window {parts['name']}")
        except SweepAreaError as error:
            faults.append(error)
    raise_all(faults)
    return Window(
        stream,
        made,
        tuple(bind(tree, "Partition By") for tree in parts.get("partition", ())),
        bind(parts["condition"], "Tumbling When") if "condition" in parts else None,
        tuple(bind(tree, f"the window {parts['name']}") for tree in parts.get("arguments", ())),
        ties(item.columns, sequence) if isinstance(made, ORDERED) else (),
    )


def _refuse_outer(tree: exp.Expr, binder: Binder, outer: QueryAround | None) -> None:
    for column in tree.find_all(exp.Column) if outer is not None else ():
        names = [part.name for part in column.parts]
        if not binder.scope.has(names) and outer is not None and outer.knows(names):
            name = ".".join(names)
            raise TypeError_(
                f"{binder.where} reads {name} of the query around, but windows cannot depend on it: a stream has one "
                "window for all rows",
                binder.place(column),
                f"Use columns of the stream itself, and compare them with {name} in WHERE",
            )


def ties(columns: Sequence[Column], sequence: str | None) -> tuple[str, ...]:
    """The order of elements of one instant: by SEQUENCE BY, then by the record from left to right."""
    record = [c.id for c in columns]
    return tuple(dict.fromkeys([sequence, *record] if sequence is not None else record))


def _no_aggregate(label: str, type_: str | None) -> Column:
    raise BindError(f"the aggregate {label} cannot stand in a window: windows see one element at a time")


def _spec(text: WindowText, context: Context) -> spec.WindowDefinition:
    """The specification of a window in the query's time domain; the setting ``range_bounds`` decides plain ``Range T``:
    inclusive or exclusive."""
    bounds = context.settings.get("range_bounds", "inclusive")
    return _Maker(text, context.time, bounds, context.functions).make()


class _Maker:
    def __init__(
        self, text: WindowText, time: TimeDomain, range_bounds: str, functions: Mapping[str, UserFunction]
    ) -> None:
        self.text, self.time, self.range_bounds, self.functions = text, time, range_bounds, functions

    def make(self) -> spec.WindowDefinition:
        makers: dict[WindowKind, Callable[[], spec.WindowDefinition]] = {
            WindowKind.NOW: lambda: spec.Range(1),
            WindowKind.UNBOUNDED: spec.Unbounded,
            WindowKind.RANGE: self._range,
            WindowKind.TUMBLING: self._tumbling,
            WindowKind.HOPPING: self._hopping,
            WindowKind.FIXED: self._fixed,
            WindowKind.LANDMARK: self._landmark,
            WindowKind.ROWS: self._rows,
            WindowKind.SESSION: lambda: spec.Session(self._size("size", "Session")),
            WindowKind.WHEN: spec.When,
            WindowKind.CALENDAR: self._calendar,
            WindowKind.USER: self._user,
        }
        return makers[self.text.kind]()

    def _part(self, name: str) -> DurationText | None:
        return self.text.parts.get(name)

    def _fail(self, message: str, part: DurationText | None, hint: str = "") -> ParseError:
        span = part.span if part is not None else self.text.span
        return ParseError(message, self.text.source.place(span[0]), hint)

    def _ticks(self, name: str, what: str) -> int:
        part = self._part(name)
        if part is None:
            raise self._fail(f"{what} is missing in {self.text.text}", None)
        return part.in_ticks(self.time, what)

    def _length(self) -> str:
        """A length of one in the time domain, for advice."""
        return "1" if self.time.kind == TimeKind.BIGINT else "1 Second"

    def _size(self, name: str, what: str) -> int:
        value = self._ticks(name, what)
        if value <= 0:
            raise self._fail(
                f"{what} must be longer than zero", self._part(name), f"Write {what} {self._length()} or longer"
            )
        return value

    def _anchor(self) -> int:
        return self._ticks("anchor", "Anchor") if self._part("anchor") is not None else 0

    def _rows(self) -> spec.WindowDefinition:
        length = None
        if self._part("range") is not None:
            length = self._ticks("range", "Range") + self._inclusive(False)
            if length <= 0:
                raise self._fail(
                    f"{self.text.text} holds nothing: its Range must be longer than zero", self._part("range")
                )
        return spec.Rows(self.text.parts["rows"], self.text.parts.get("row_slide", 1), length)

    def _calendar(self) -> spec.WindowDefinition:
        unit = self.text.parts["unit"]
        if self.time.kind == TimeKind.BIGINT:
            raise self._fail(
                f"Tumbling By {unit.title()} needs a calendar, but time is BIGINT here", None, "Write [Tumbling 10]"
            )
        return spec.Calendar(unit, self.text.parts.get("zone", "UTC"), self.time.chronon)

    def _user(self) -> spec.WindowDefinition:
        name = self.text.parts["name"]
        place = self.text.source.place(self.text.span[0])
        known = {n.lower(): f for n, f in self.functions.items()}
        function = known.get(name.lower())
        if function is None:
            raise unknown_window(name, place, [f.name for f in self.functions.values() if f.kind == UserKind.WINDOW])
        if function.kind != UserKind.WINDOW:
            raise TypeError_(f"{function.name} is registered by CREATE {function.kind.upper()} and is no window", place)
        return spec.UserWindow(function.name, function.type)

    def _inclusive(self, hops: bool) -> bool:
        bounds = self.text.parts.get("bounds")
        return bounds == "inclusive" or (bounds is None and not hops and self.range_bounds == "inclusive")

    def _range(self) -> spec.WindowDefinition:
        length = self._ticks("range", "Range")
        bounds = self.text.parts.get("bounds")
        hops = any(self._part(p) is not None for p in ("slide", "lag", "anchor"))
        if self._part("anchor") is not None and self._part("slide") is None:
            raise self._fail(
                "Anchor needs a Slide: without one every tick is a hop",
                self._part("anchor"),
                "Add Slide, or leave it out",
            )
        inclusive = self._inclusive(hops)
        if length < 0:
            raise self._fail(
                "Range must not be negative: it looks back from each instant",
                self._part("range"),
                f"Write [Range {self._length()}], or [Now]",
            )
        if length == 0 and not inclusive:
            why = (
                "Exclusive"
                if bounds == "exclusive"
                else "with Slide or Lag"
                if hops
                else "with range_bounds = 'exclusive'"
            )
            raise self._fail(
                f"Range 0 {why} holds nothing", self._part("range"), "Write [Now], or a Range of at least one tick"
            )
        length += inclusive
        if not hops:
            return spec.Range(length)
        slide = self._size("slide", "Slide") if self._part("slide") is not None else 1
        lag = self._ticks("lag", "Lag") if self._part("lag") is not None else 0
        if lag < 0:
            raise self._fail(
                "Lag must not be negative: the future is not known",
                self._part("lag"),
                f"Write Lag {self._length()}, or leave it out",
            )
        return spec.Slide(length, slide, lag, self._anchor())

    def _tumbling(self) -> spec.WindowDefinition:
        size = self._size("size", "Tumbling")
        return spec.Hopping(size, size, self._anchor())

    def _hopping(self) -> spec.WindowDefinition:
        return spec.Hopping(self._size("size", "Hopping"), self._size("slide", "Slide"), self._anchor())

    def _fixed(self) -> spec.WindowDefinition:
        return spec.Fixed(self._size("size", "Fixed"), self._anchor())

    def _landmark(self) -> spec.WindowDefinition:
        start = self._ticks("start", "From") if self._part("start") is not None else None
        end = self._ticks("end", "Until") if self._part("end") is not None else None
        if start is not None and end is not None and end < start:
            raise self._fail(f"{self.text.text} ends before it begins, so it holds nothing", self._part("end"))
        return spec.Landmark(start, end)
