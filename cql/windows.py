"""Windows as written to window specifications in ticks (semantics of each: ``operators/windows.py``).

A window that an operator covers has a method here; one that none covers yet is named in ``_NOT_OFFERED``.
"""

from __future__ import annotations

from sweeparea.cql.durations import DurationText
from sweeparea.cql.errors import ParseError, not_offered
from sweeparea.cql.window_text import WindowText
from sweeparea.operators import windows as spec
from sweeparea.operators.logical import TimeDomain

_NOT_OFFERED = {
    "rows": "the window Rows N",
    "partition": "the window Partition By .. Rows N",
    "session": "the window Session",
    "when": "the window Tumbling When",
    "calendar": "the calendar window Tumbling By",
}


def window_spec(text: WindowText, time: TimeDomain, range_bounds: str) -> spec.Window:
    """The specification of a window in a time domain; ``range_bounds`` decides plain ``Range T``: inclusive or
    exclusive."""
    if text.kind in _NOT_OFFERED:
        raise not_offered(
            _NOT_OFFERED[text.kind],
            text.source.place(text.span[0]),
            "Offered are the time windows: Now, Range, Tumbling, Hopping, ..",
        )
    return _Maker(text, time, range_bounds).make()


class _Maker:
    def __init__(self, text: WindowText, time: TimeDomain, range_bounds: str) -> None:
        self.text, self.time, self.range_bounds = text, time, range_bounds

    def make(self) -> spec.Window:
        return {
            "now": lambda: spec.Range(1),
            "unbounded": spec.Unbounded,
            "range": self._range,
            "tumbling": self._tumbling,
            "hopping": self._hopping,
            "fixed": self._fixed,
            "landmark": self._landmark,
        }[self.text.kind]()

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

    def _size(self, name: str, what: str) -> int:
        value = self._ticks(name, what)
        if value <= 0:
            raise self._fail(f"{what} must be longer than zero", self._part(name))
        return value

    def _anchor(self) -> int:
        return self._ticks("anchor", "Anchor") if self._part("anchor") is not None else 0

    def _range(self) -> spec.Window:
        length = self._ticks("range", "Range")
        bounds = self.text.parts.get("bounds")
        hops = any(self._part(p) is not None for p in ("slide", "lag", "anchor"))
        if self._part("anchor") is not None and self._part("slide") is None:
            raise self._fail(
                "Anchor needs a Slide: without one every tick is a hop",
                self._part("anchor"),
                "Add Slide, or leave it out",
            )
        inclusive = bounds == "inclusive" or (bounds is None and not hops and self.range_bounds == "inclusive")
        if length < 0:
            raise self._fail("Range must not be negative", self._part("range"))
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
            raise self._fail("Lag must not be negative", self._part("lag"))
        return spec.Slide(length, slide, lag, self._anchor())

    def _tumbling(self) -> spec.Window:
        size = self._size("size", "Tumbling")
        return spec.Hopping(size, size, self._anchor())

    def _hopping(self) -> spec.Window:
        return spec.Hopping(self._size("size", "Hopping"), self._size("slide", "Slide"), self._anchor())

    def _fixed(self) -> spec.Window:
        return spec.Fixed(self._size("size", "Fixed"), self._anchor())

    def _landmark(self) -> spec.Window:
        start = self._ticks("start", "From") if self._part("start") is not None else None
        end = self._ticks("end", "Until") if self._part("end") is not None else None
        if start is not None and end is not None and end < start:
            raise self._fail(f"{self.text.text} ends before it begins, so it holds nothing", self._part("end"))
        return spec.Landmark(start, end)
