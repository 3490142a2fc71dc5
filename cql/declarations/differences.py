"""What differs between two definitions of one name, clause by clause, and whether results would differ too.

A change is told apart as harmless only where that is certain from the text; a query whose two plans turn out to be one
and the same may still be found harmless by whoever can bind it (law S4).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sweeparea.cql.declarations.canonical import (
    BODY_CLAUSES,
    Declaration,
    Piece,
    Pieces,
    commas,
    declaration,
    folded,
    is_one_select,
    shown,
    split,
    unwrapped,
)
from sweeparea.cql.syntax.statements import CreateQuery, Statement

NEUTRAL_SETTINGS = (
    "dag",
    "owner",
    "tags",
    "retries",
    "retry_delay",
    "timeout",
    "pool",
    "priority",
    "parallelism",
    "pool.slots",
    "alert_after",
    "alert_quality",
    "notify",
    "spark",
    "python",
    "storage",
    "schedule",
    "strategy",
    "strict",
    "backfill_slice",
    "slice.max_rows",
    "rstream.max_rows_per_slice",
    "state.expiry_partitions",
    "state.lazy_percent",
    "maintenance.retention",
    "maintenance.every",
    "quality.retain",
)
"""Settings that say how, when or in what portions a query is run: its results are the same (laws S2 and S4)."""
NEUTRAL_CLAUSES = ("RETAIN",)
_FIELDS = {
    "CHRONON": ("chronon_us",),
    "MAX AHEAD": ("max_ahead",),
    "RETAIN": ("retain",),
    "ON SOURCE CHANGE": ("on_source_change",),
    "STATIC": ("contents",),
    "KEY": ("key",),
    "SEQUENCE BY": ("sequence_by",),
    "NON RETROACTIVE": ("retroactive",),
}
"""Clauses whose meaning is these fields: another spelling of the same value is no change."""
_DEFAULTS = {"chronon_us": 1}
_WINDOW_STARTS = (
    "NOW", "RANGE", "ROWS", "TUMBLING", "HOPPING", "FIXED", "FROM", "UNTIL", "SESSION", "PARTITION",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One difference. ``before`` and ``after`` are texts, None where the clause is not written."""

    clause: str
    before: str | None
    after: str | None
    rebuild: bool = True

    def __str__(self) -> str:
        if self.clause.startswith(("CONSTRAINT", "column")) and self.before is None:
            return f"{self.clause} is new: {self.after}"
        if self.clause.startswith(("CONSTRAINT", "column")) and self.after is None:
            return f"{self.clause} is gone: it was {self.before}"
        return f"{self.clause} {self.before or 'default'} became {self.after or 'default'}"


@dataclass(frozen=True)
class DefinitionDifference:
    """All changes between two definitions, and the unified diff of their canonical texts."""

    changes: tuple[Change, ...]
    diff: str = ""

    @property
    def rebuild(self) -> bool:
        """Whether results may differ, so that what was computed by the old definition cannot be continued."""
        return any(change.rebuild for change in self.changes)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        return "; ".join(map(str, self.changes))


def difference(old: Statement, new: Statement) -> DefinitionDifference:
    """What became of ``old``: both CREATE statements of one name."""
    before, after = declaration(old), declaration(new)
    if before.fingerprint == after.fingerprint:
        return DefinitionDifference(())
    changes = [*_changes(old, new, before, after)]
    if not changes:
        return DefinitionDifference(())
    return DefinitionDifference(tuple(changes), unified(before.text, after.text))


def unified(before: str, after: str, old: str = "deployed", new: str = "files") -> str:
    """The unified diff of two canonical texts.

    Lines that differ in the case of words only stand as the second text has them, unless nothing else differs.
    """
    spelt = {line.lower(): line for line in after.splitlines() if not {"'", '"'} & {*line}}
    alike = "\n".join(spelt.get(line.lower(), line) for line in before.splitlines())
    before = before if alike == after else alike
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="")
    return "\n".join(lines)


def _changes(old: Statement, new: Statement, before: Declaration, after: Declaration) -> Iterator[Change]:
    if type(old) is not type(new):
        yield Change("the kind", shown(before.head), shown(after.head))
        return
    if folded(before.head) != folded(after.head):
        yield Change("the declaration", shown(before.head), shown(after.head))
    for name in dict.fromkeys((*before.clauses, *after.clauses)):
        a, b = before.clauses.get(name), after.clauses.get(name)
        if (a is None) == (b is None) and folded(a or ()) == folded(b or ()):
            continue
        if _same_meaning(name, old, new):
            continue
        a_text, b_text = (None if p is None else shown(p) or name for p in (a, b))
        yield Change(_shown_name(name), a_text, b_text, _rebuilds(name, old, new, a, b))
    if isinstance(old, CreateQuery):
        yield from _body_changes(before, after)


def _shown_name(name: str) -> str:
    return f"setting {name.removeprefix('WITH ')}" if name.startswith("WITH ") else name


def _same_meaning(clause: str, old: Statement, new: Statement) -> bool:
    names: tuple[str, ...] = _FIELDS.get(clause, ())
    if not names or not all(hasattr(s, n) for s in (old, new) for n in names):
        return clause == "LATE" and _late(old) == _late(new)
    a, b = ([_DEFAULTS.get(n) if getattr(s, n) is None else getattr(s, n) for n in names] for s in (old, new))
    return a == b


def _late(statement: Statement) -> tuple[object, object]:
    within = getattr(statement, "late_within", None)
    return getattr(statement, "late", None), None if within is None else getattr(within, "text", repr(within))


def _rebuilds(clause: str, old: Statement, new: Statement, before: Pieces | None, after: Pieces | None) -> bool:
    if clause.startswith("WITH "):
        return clause.removeprefix("WITH ") not in NEUTRAL_SETTINGS
    if clause.startswith("CONSTRAINT "):
        # a row that is kept out changes results; one that is counted, or that fails the slice, does not
        return any(part is not None and _quarantines(part) for part in (before, after))
    if clause.startswith("SUITE "):
        return False  # an expectation never keeps a row out
    if clause == "ON SOURCE CHANGE":
        # under FAIL nothing that a source took back was ever admitted, so what was admitted stays right; but dropped
        # duplicates were not remembered, which CORRECT needs
        corrects = getattr(new, "on_source_change", "fail") == "correct"
        forgotten = corrects and getattr(new, "deduplicate", None) is not None
        return forgotten or getattr(old, "on_source_change", "fail") != "fail"
    return clause not in NEUTRAL_CLAUSES


def _quarantines(constraint: Pieces) -> bool:
    words = [p.folded for p in constraint]
    if words[:1] == ["expect"] and words[1:2] != ["("]:
        return False
    return "violation" not in words or words[words.index("violation") + 1 :][:1] == ["quarantine"]


def _body_changes(before: Declaration, after: Declaration) -> Iterator[Change]:
    (op_a, a), (op_b, b) = unwrapped(before.body), unwrapped(after.body)
    if op_a != op_b:
        yield Change("the result", op_a or "the relation itself", op_b or "the relation itself")
    if folded(a) != folded(b):
        found: list[Change] = []
        if is_one_select(a) and is_one_select(b):
            found = [*_select_changes(dict(split(a, BODY_CLAUSES)), dict(split(b, BODY_CLAUSES)))]
        elif _blank(a) == _blank(b):
            found = [*_window_changes(a, b)]
        yield from found or [Change("the query", shown(a), shown(b))]
    elif before.labels != after.labels:
        yield Change("result columns", ", ".join(before.labels), ", ".join(after.labels))


def _select_changes(a: dict[str, Pieces], b: dict[str, Pieces]) -> Iterator[Change]:
    for name in dict.fromkeys((*a, *b)):
        left, right = a.get(name), b.get(name)
        if folded(left or ()) == folded(right or ()):
            continue
        if left and right and name == "SELECT":
            yield from _column_changes(left, right)
        elif left and right and _blank(left) == _blank(right):
            yield from _window_changes(left, right)
        else:
            before, after = (shown(p) if p else "(not written)" for p in (left, right))
            yield Change(name, before, after)


def _column_changes(a: Pieces, b: Pieces) -> Iterator[Change]:
    left, right = commas(a), commas(b)
    names = [[_column_name(p) for p in part] for part in (left, right)]
    if any(len(set(n)) < len(n) or "" in n for n in names):
        yield Change("SELECT", shown(a), shown(b))
        return
    before, after = dict(zip(names[0], left, strict=True)), dict(zip(names[1], right, strict=True))
    for name in dict.fromkeys((*before, *after)):
        x, y = before.get(name), after.get(name)
        if folded(x or ()) != folded(y or ()):
            yield Change(f"column {name}", shown(x) if x else None, shown(y) if y else None)
    kept = [[n for n in names[i] if n in before and n in after] for i in (0, 1)]
    if kept[0] != kept[1]:
        yield Change("the order of columns", ", ".join(kept[0]), ", ".join(kept[1]))


def _column_name(item: Pieces) -> str:
    """The name of a select item: its alias, or a column's own; else its text."""
    if len(item) > 2 and item[-2].is_("AS"):
        return item[-1].folded
    if item and all(p.word or p.text == "." or p.text.startswith("`") for p in item):
        return item[-1].folded
    return shown(item).lower()


def _blank(pieces: Sequence[Piece]) -> str:
    """The text with every window emptied."""
    return folded([p for run in _runs(pieces) for p in run[1]])


def _window_changes(a: Pieces, b: Pieces) -> Iterator[Change]:
    pairs = zip(_runs(a), _runs(b), strict=True)
    for (window_a, before), (window_b, _) in pairs:
        if window_a is not None and window_b is not None and folded(window_a) != folded(window_b):
            name = "the subquery"
            if before and (before[-1].word or before[-1].text.endswith("`")):
                name = before[-1].text
            yield Change(f"window of {name}", shown(window_a), shown(window_b))


def _runs(pieces: Sequence[Piece]) -> list[tuple[Pieces | None, Pieces]]:
    """Windows, each with what precedes it; the last has none."""
    found: list[tuple[Pieces | None, Pieces]] = []
    begun = i = 0
    while i < len(pieces):
        if pieces[i].text == "[" and i + 1 < len(pieces) and pieces[i + 1].is_(*_WINDOW_STARTS):
            end = next((k for k in range(i, len(pieces)) if pieces[k].text == "]"), len(pieces) - 1)
            found.append((tuple(pieces[i : end + 1]), tuple(pieces[begun:i])))
            begun = i = end + 1
        else:
            i += 1
    return [*found, (None, tuple(pieces[begun:]))]
