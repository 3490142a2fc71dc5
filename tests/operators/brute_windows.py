"""Windows in which later elements decide, by their definitions: what a window shows at an instant, from all elements up
to it. Shares no code with the operators.

An element is ``(partition, instant, record)``; copies are elements of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.operators.brute import plain, total_order

Element = tuple[Any, int, tuple]


def _order(element: Element) -> tuple:
    return element[1], tuple(total_order(v) for v in element[2])


def arrived(elements: Sequence[Any], tick: int) -> list[list[Element]]:
    """Each partition's elements up to an instant, in their order."""
    parts: dict[Any, list[Element]] = {}
    for element in sorted((e for e in elements if e[1] <= tick), key=_order):
        parts.setdefault(plain(element[0]), []).append(element)
    return list(parts.values())


def _records(elements: Sequence[Element]) -> Counter:
    return Counter(plain(e[2]) for e in elements)


def rows(elements: Sequence[Any], tick: int, count: int, slide: int = 1, length: float = math.inf) -> Counter:
    """The last ``count`` as of the greatest multiple of ``slide``, of those only the ones of the last ``length``
    ticks.
    """
    shown: Counter = Counter()
    for part in arrived(elements, tick):
        as_of = part[: len(part) // slide * slide]
        shown += _records([e for e in as_of[-count:] if tick < e[1] + length])
    return shown


def sessions(elements: Sequence[Any], tick: int, gap: int) -> Counter:
    """``(record, first, last + gap)`` of the sessions whose last element lies just so far back that none can follow."""
    shown: Counter = Counter()
    for part in arrived(elements, tick):
        session = [part[0]]
        for element in part[1:]:
            session = [*session, element] if element[1] - session[-1][1] < gap else [element]
        last = session[-1][1]  # an earlier session closed before this one began
        if tick == last + gap - 1:
            for record, n in _records(session).items():
                shown[record, session[0][1], last + gap] += n
    return shown


def condition(elements: Sequence[Any], tick: int, meets: Callable[[tuple], bool | None]) -> Counter:
    """The bucket that ends with the last meeter: it and all after the meeter before it."""
    shown: Counter = Counter()
    for part in arrived(elements, tick):
        ends = [i for i, e in enumerate(part) if meets(e[2])]
        if ends:
            shown += _records(part[(ends[-2] + 1 if len(ends) > 1 else 0) : ends[-1] + 1])
    return shown
