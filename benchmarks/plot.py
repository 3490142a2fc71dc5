"""Plots as SVG text: bars in groups, and lines, both over a logarithmic axis of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6d597a")
WIDTH, LEFT, TOP, BOTTOM, HEIGHT = 900, 60, 40, 40, 340


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, float]], across: str = "") -> str:
    """A bar for each named value of each group, groups along an axis called ``across``; a value that is missing has
    none.
    """
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    axis = _Axis([value for group in groups.values() for value in group.values()])
    room = (WIDTH - LEFT - 20) / max(len(groups), 1)
    width = room * 0.8 / max(len(names), 1)
    drawn = []
    for place, (label, group) in enumerate(groups.items()):
        begin = LEFT + place * room + room * 0.1
        for number, name in enumerate(names):
            if name in group:
                top = axis.at(group[name])
                drawn.append(
                    f'<rect x="{begin + number * width:.1f}" y="{top:.1f}" width="{width * 0.92:.1f}"'
                    f' height="{HEIGHT - BOTTOM - top:.1f}" fill="{COLOURS[number % len(COLOURS)]}">'
                    f"<title>{escape(f'{label} {name}: {group[name]:g} {unit}')}</title></rect>"
                )
        drawn.append(_text(begin + room * 0.4, HEIGHT - BOTTOM + 16, label, "middle"))
    return _page(title, unit, names, axis, drawn, across)


def lines(title: str, unit: str, across: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A line for each named series of (position, value), positions on a logarithmic axis called ``across``."""
    places = sorted({x for points in series.values() for x, _ in points})
    axis = _Axis([y for points in series.values() for _, y in points])
    low, high = math.log(places[0]), math.log(places[-1])

    def x(place: float) -> float:
        return LEFT + 20 + (math.log(place) - low) / ((high - low) or 1) * (WIDTH - LEFT - 60)

    drawn = [_text(x(place), HEIGHT - BOTTOM + 16, f"{place:g}", "middle") for place in places]
    for number, points in enumerate(series.values()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(px):.1f},{axis.at(py):.1f}" for px, py in sorted(points))
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x(px):.1f}" cy="{axis.at(py):.1f}" r="3" fill="{colour}"/>' for px, py in points]
    return _page(title, unit, list(series), axis, drawn, across)


class _Axis:
    """Powers of ten from below the least value to above the greatest."""

    def __init__(self, values: Sequence[float]):
        positive = [value for value in values if value > 0] or [1.0]
        self.low = math.floor(math.log10(min(positive)) - 0.05)
        self.high = max(math.ceil(math.log10(max(positive))), self.low + 1)

    def at(self, value: float) -> float:
        part = (math.log10(max(value, 10.0**self.low)) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)

    def drawn(self) -> list[str]:
        found = []
        for power in range(self.low, self.high + 1):
            y = self.at(10.0**power)
            found.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
            found.append(_text(LEFT - 6, y + 4, f"{10.0**power:g}", "end"))
        return found


def _page(title: str, unit: str, names: Sequence[str], axis: _Axis, drawn: Sequence[str], across: str) -> str:
    legend, place = [], float(WIDTH - 20)
    for number, name in reversed(list(enumerate(names))):
        place -= 24 + 7 * len(name)
        legend.append(f'<rect x="{place}" y="10" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>')
        legend.append(_text(place + 14, 19, name, "start"))
    head = [_text(LEFT, 19, title, "start"), *legend]
    if across:
        head.append(_text(WIDTH / 2, HEIGHT - 6, across, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    head.append(f'<g transform="rotate(-90 12 {middle})">{_text(12, middle, unit, "middle")}</g>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
            ' font-size="12" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            *axis.drawn(),
            *drawn,
            *head,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
