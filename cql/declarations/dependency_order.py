"""The order in which each query follows those that it reads, and the queries that read themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sweeparea.cql.syntax.statements import CreateQuery
from sweeparea.cql.text.errors import BindError, Place


def in_order_of_dependency(
    queries: Mapping[str, CreateQuery], reads: Callable[[CreateQuery], Iterable[str]]
) -> tuple[dict[str, CreateQuery], list[list[str]]]:
    """Queries in order of dependency, and each cycle of them once. ``reads`` are the names that a query reads."""
    ordered: dict[str, CreateQuery] = {}
    cycles: dict[frozenset[str], list[str]] = {}

    # a stack of its own, since a chain of queries may be longer than Python's calls may nest
    for first in queries:
        open_ = [] if first in ordered else [(first, iter(reads(queries[first])))]
        visiting = dict.fromkeys(name for name, _ in open_)
        while open_:
            name, rest = open_[-1]
            following = next((n for n in rest if n in queries and n not in ordered), None)
            if following is None:
                open_.pop()
                del visiting[name]
                ordered[name] = queries[name]
            elif following in visiting:
                path = list(visiting)
                cycle = path[path.index(following) :]
                cycles.setdefault(frozenset(cycle), cycle)
            else:
                visiting[following] = None
                open_.append((following, iter(reads(queries[following]))))
    return ordered, list(cycles.values())


def cycle_error(cycle: list[str], queries: Mapping[str, CreateQuery]) -> BindError:
    """That queries read each other in a circle."""
    # told from the query that is declared first, however it was found
    first = min(range(len(cycle)), key=lambda i: _where(queries[cycle[i]].place))
    cycle = [*cycle[first:], *cycle[:first]]
    place = queries[cycle[0]].place
    if len(cycle) == 1:
        return BindError(
            f"query {cycle[0]} reads itself",
            place,
            "A result cannot rest on itself: read the streams, or a query of another name",
        )
    places = ", ".join(f"{name} at {queries[name].place}" for name in cycle)
    return BindError(
        f"queries read each other in a circle: {' -> '.join([*cycle, cycle[0]])} (-> means reads; {places})",
        place,
        "Let one of them read the streams instead",
    )


def _where(place: Place) -> tuple[str, int, int]:
    return place.file, place.line, place.column
