"""Windows in which later elements decide, by their definitions (semantics, section 3): what is shown at an instant.

Each looks at all elements up to the instant, in their order, one partition at a time. Shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Element:
    """The ``row``-th element of a stream: its instant, its place among those of one instant, its partition's values,
    and whether it meets the condition of Tumbling When.
    """

    row: int
    s: int
    order: tuple = ()
    partition: tuple = ()
    meets: bool = False


Seen = tuple[int, int | None, int | None]
"""A row that a window shows, with WINDOW_START and WINDOW_END where it has them."""
Show = Callable[[Sequence[Element], int], list[Seen]]
"""``(elements, tau)`` -> what the window holds at tau."""


@dataclass
class Shown:
    """A window: what it shows; whether nothing ever leaves it; what of PARTITION BY and WHEN must be computed first."""

    show: Show
    endless: bool = False
    partition: list[str] = field(default_factory=list)
    condition: str = ""


def each(visible: Callable[[int, int], bool], bounds: Callable[[int, int], tuple[int, int]] | None = None) -> Show:
    """A window that looks at one element at a time: ``visible(s, tau)``, ``bounds(s, tau)``."""

    def show(elements: Sequence[Element], tau: int) -> list[Seen]:
        found: list[Seen] = []
        for element in elements:
            if visible(element.s, tau):
                start, end = bounds(element.s, tau) if bounds else (None, None)
                found.append((element.row, start, end))
        return found

    return show


def _parts(elements: Sequence[Element], tau: int) -> list[list[Element]]:
    parts: dict[Any, list[Element]] = {}
    for element in sorted((e for e in elements if e.s <= tau), key=lambda e: (e.s, e.order)):
        parts.setdefault(element.partition, []).append(element)
    return list(parts.values())


def rows(count: int, slide: int, length: int | None) -> Show:
    def show(elements: Sequence[Element], tau: int) -> list[Seen]:
        seen = []
        for part in _parts(elements, tau):
            as_of = len(part) - len(part) % slide
            last = part[max(0, as_of - count) : as_of]
            seen += [(e.row, None, None) for e in last if length is None or tau - e.s < length]
        return seen

    return show


def session(gap: int) -> Show:
    def show(elements: Sequence[Element], tau: int) -> list[Seen]:
        seen = []
        for part in _parts(elements, tau):
            at = len(part) - 1
            while at and part[at].s - part[at - 1].s < gap:
                at -= 1
            if part[-1].s + gap - 1 == tau:
                seen += [(e.row, part[at].s, part[-1].s + gap) for e in part[at:]]
        return seen

    return show


def when(elements: Sequence[Element], tau: int) -> list[Seen]:
    seen = []
    for part in _parts(elements, tau):
        while part and not part[-1].meets:
            part.pop()
        bucket = part[-1:]
        for element in reversed(part[:-1]):
            if element.meets:
                break
            bucket.append(element)
        seen += [(e.row, None, None) for e in bucket]
    return seen
