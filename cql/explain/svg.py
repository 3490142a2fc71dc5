"""A plan as an SVG picture that needs nothing from elsewhere: boxes in rows by height, inputs at the bottom."""

from __future__ import annotations

from collections.abc import Container
from html import escape

from sweeparea.cql.explain.tree import top_text
from sweeparea.operators.nodes import RelationScan, StreamScan
from sweeparea.operators.plan import lowering
from sweeparea.operators.plan.encoding import Edges
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 260, 44, 24, 46, 16
LETTERS = 40
"""Letters that fit on one line of a box."""

_STYLE = (
    "text{font:12px sans-serif;fill:#222}.e{font-size:10px;fill:#666}path{stroke:#888;fill:none}"
    "rect{stroke:#456;fill:#eef3f8}.i{fill:#e7f4e4;stroke:#4a7}.s{fill:#fdf1dc;stroke:#b83}.r{fill:#fff;stroke:#222}"
)


def as_svg(plan: Plan, static: Container[str]) -> str:
    """The whole ``<svg>`` element. Inputs are green, operators by snapshot expansion orange."""
    places, columns, rows = layout_of(plan.root)
    edges = Edges.of(plan, static)
    width = 2 * MARGIN + columns * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + (rows + 1) * (HEIGHT + GAP_Y) - GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">',
        f"<title>{escape(plan.name)}</title><style>{_STYLE}</style>",
    ]

    def corner(place: tuple[float, int]) -> tuple[float, float]:
        return MARGIN + place[0] * (WIDTH + GAP_X), MARGIN + (rows - place[1]) * (HEIGHT + GAP_Y)

    def box(place: tuple[float, int], text: str, css: str) -> None:
        x, y = corner(place)
        lines = _lines(text)
        parts.append(f'<rect class="{css}" x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>')
        parts.append(f"<title>{escape(text)}</title>")
        for i, line in enumerate(lines):
            at = y + HEIGHT / 2 + 4 + 15 * (i - (len(lines) - 1) / 2)
            parts.append(f'<text x="{x + WIDTH / 2:g}" y="{at:g}" text-anchor="middle">{escape(line)}</text>')

    def arrow(below: tuple[float, int], above: tuple[float, int], edge: str) -> None:
        (x1, y1), (x2, y2) = corner(below), corner(above)
        x1, x2, y2 = x1 + WIDTH / 2, x2 + WIDTH / 2, y2 + HEIGHT
        middle = (y1 + y2) / 2
        parts.append(f'<path d="M{x1:g} {y1:g}C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}"/>')
        parts.append(f'<text class="e" x="{x1 + 5:g}" y="{y1 - 6:g}">{escape(edge)}</text>')

    for node in nodes(plan.root):
        for child in node.inputs:
            arrow(places[id(child)], places[id(node)], edges.describe(child))
    top = (places[id(plan.root)][0], rows)
    arrow(places[id(plan.root)], top, edges.describe(plan.root))
    for node in nodes(plan.root):
        box(places[id(node)], node.words(plan.time), kind_of(node))
    box(top, f"{plan.name}: {top_text(plan) if plan.stream else 'relation'}", "r")
    return "\n".join([*parts, "</svg>"]) + "\n"


def layout_of(root: Node) -> tuple[dict[int, tuple[float, int]], int, int]:
    """For each node its column and its height above the inputs; the numbers of columns and of rows."""
    places: dict[int, tuple[float, int]] = {}
    leaves = 0
    for node in nodes(root):
        below = [places[id(child)] for child in node.inputs]
        if below:
            places[id(node)] = sum(x for x, _ in below) / len(below), 1 + max(y for _, y in below)
        else:
            places[id(node)] = float(leaves), 0
            leaves += 1
    taken: set[tuple[float, int]] = set()
    for id_, (x, y) in places.items():  # above a node that is read twice two boxes may want one place
        while any(y == other and abs(x - at) < 1 for at, other in taken):
            x += 1
        taken.add((x, y))
        places[id_] = x, y
    return places, 1 + int(max(x for x, _ in places.values()) + 0.999), 1 + max(y for _, y in places.values())


def kind_of(node: Node) -> str:
    """i: it reads an input; s: it runs by snapshot expansion; o: any other operator."""
    if isinstance(node, StreamScan | RelationScan):
        return "i"
    return "s" if lowering.expansion(node) is not None else "o"


def _lines(text: str) -> list[str]:
    if len(text) <= LETTERS:
        return [text]
    at = text.rfind(" ", 0, LETTERS + 1)
    at = at if at > LETTERS // 2 else LETTERS
    rest = text[at:].strip()
    return [text[:at], rest if len(rest) <= LETTERS else rest[: LETTERS - 2] + ".."]
