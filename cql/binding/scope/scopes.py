"""Names: which column a reference means, by Spark's rules.

Names compare without case. ``alias.column`` is tried first, then ``column`` with the further parts as fields of a
struct. More than one candidate is ambiguous. A stream's instant is the pseudo-column ``ts``, which ``*`` leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sweeparea.cql.text import foreign_words
from sweeparea.cql.text.errors import BindError, Place, listing, nearest
from sweeparea.operators.nodes import Window
from sweeparea.operators.plan.node import Node
from sweeparea.operators.sql.expressions import Column

INSTANT = "ts"


@dataclass(frozen=True)
class Item:
    """One entry of FROM: its alias (None for an unnamed subquery), its columns; of a stream its ``ts``, its window and
    the id of its declared sequence.
    """

    alias: str | None
    columns: tuple[Column, ...]
    instant: Column | None = None
    window: Window | None = None
    sequence: str | None = None

    def matching(self, name: str) -> list[Column]:
        wanted = name.lower()
        found = [c for c in self.columns if c.label.lower() == wanted]
        if not found and self.instant is not None and wanted == INSTANT:
            return [self.instant]
        return found

    @property
    def name(self) -> str:
        return self.alias or "an unnamed subquery"


@dataclass
class Scope:
    """What can be named at a place. ``star`` is what ``*`` gives; ``hidden`` the ids that USING took from unqualified
    use, ``enriched`` those of non-retroactive relations whose join condition is in WHERE."""

    items: list[Item] = field(default_factory=list)
    star: list[Column] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    enriched: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, item: Item) -> Scope:
        return cls([item], list(item.columns))

    def beside(self, other: Scope) -> Scope:
        """Both scopes together, as after a join."""
        return Scope(
            [*self.items, *other.items],
            [*self.star, *other.star],
            self.hidden | other.hidden,
            self.enriched | other.enriched,
        )

    def names(self) -> Iterator[str]:
        for item in self.items:
            for column in item.columns:
                yield column.label
            if item.instant is not None:
                yield INSTANT

    def unqualified(self, name: str) -> list[tuple[Item, Column]]:
        return [(i, c) for i in self.items for c in i.matching(name) if c.id not in self.hidden]

    def has(self, parts: Sequence[str]) -> bool:
        """Whether a dotted name means something here, be it ambiguous."""
        if len(parts) > 1:
            for item in self.items:
                if item.alias is not None and item.alias.lower() == parts[0].lower() and item.matching(parts[1]):
                    return True
        found = self.unqualified(parts[0])
        return any(len(parts) == 1 or _has_fields(c) for _, c in found)

    def resolve(self, parts: Sequence[str], place: Place) -> tuple[Column, int]:
        """The column that a dotted name means and how many of its parts name it; the rest are fields of a struct."""
        if len(parts) > 1:
            qualified = [
                (i, c)
                for i in self.items
                if i.alias is not None and i.alias.lower() == parts[0].lower()
                for c in i.matching(parts[1])
            ]
            if qualified:
                return only(qualified, ".".join(parts[:2]), place), 2
        plain = self.unqualified(parts[0])
        if plain:
            return only(plain, parts[0], place), 1
        raise self.unknown(parts, place)

    def item(self, alias: str, place: Place) -> Item:
        """The entry of an alias, for ``alias.*``."""
        found = [i for i in self.items if i.alias is not None and i.alias.lower() == alias.lower()]
        if len(found) == 1:
            return found[0]
        known = [i.alias for i in self.items if i.alias is not None]
        if found:
            raise BindError(f"{alias} is ambiguous: FROM has it {len(found)} times", place, "Give each its own alias")
        raise BindError(
            f"{alias} is unknown here",
            place,
            nearest(alias, known) or f"FROM has {listing(known) or 'nothing with a name'}",
        )

    def unknown(self, parts: Sequence[str], place: Place, around: Sequence[Scope] = ()) -> BindError:
        """The fault of a name that means nothing here, nor in the queries ``around``, the nearest first."""
        name = ".".join(parts)
        outer = [item for scope in around for item in scope.items]
        if len(parts) > 1:
            for item in (*self.items, *outer):
                if item.alias is not None and item.alias.lower() == parts[0].lower():
                    labels = [c.label for c in item.columns]
                    return BindError(
                        f"{item.alias} has no column {parts[1]}",
                        place,
                        nearest(parts[1], labels) or f"It has {listing(labels)}",
                    )
            aliases = [i.alias for i in self.items if i.alias is not None]
            beyond = [i.alias for i in outer if i.alias is not None]
            hint = f"FROM has {listing(aliases) or 'no names'}"
            hint += f"; the query around has {listing(beyond)}" if beyond else ""
            return BindError(f"{name} is unknown here", place, nearest(parts[0], [*aliases, *beyond]) or hint)
        known = list(dict.fromkeys(self.names()))
        beyond = [n for n in dict.fromkeys(n for scope in around for n in scope.names()) if n not in known]
        hint = f"Columns here are {listing(known)}" if known else "There is no FROM, so no column"
        hint += f"; the query around has {listing(beyond)}" if beyond else ""
        hint = nearest(name, [*known, *beyond]) or hint
        hint = foreign_words.COLUMNS.get(name.upper(), hint)
        if name.lower() == INSTANT:
            hint = "ts is the instant of a stream's elements; FROM has no stream here"
        return BindError(f"column {name} is unknown", place, hint)


Entry = tuple[Node, Scope]
"""An entry of FROM, or several joined: what it means, and what can be named of it."""


def _has_fields(column: Column) -> bool:
    return column.type is None or column.type.startswith(("struct", "array", "map", "variant"))


def only(found: list[tuple[Item, Column]], name: str, place: Place) -> Column:
    if len({c.id for _, c in found}) == 1:
        return found[0][1]
    (first, a), (second, b) = found[0], found[1]
    if first is second:
        raise BindError(
            f"column {name} is ambiguous: {first.name} has it twice", place, "Give them aliases of their own inside"
        )
    if not first.alias or not second.alias or first.alias.lower() == second.alias.lower():
        hint = "Give each entry of FROM its own alias"
    else:
        hint = f"Write {first.name}.{a.label} or {second.name}.{b.label}"
    raise BindError(f"column {name} is ambiguous: it is in {first.name} and in {second.name}", place, hint)


def parts_of(column: exp.Column) -> list[exp.Identifier]:
    """The identifiers of ``a.b.c`` in the order written."""
    return [p for p in column.parts if isinstance(p, exp.Identifier)]
