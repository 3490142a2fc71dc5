"""Stored names: every kind has them, and what is stored follows them and not Python's names."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from sweeparea.cql.rewrites.sharing import subplans
from sweeparea.operators import nodes as logical
from sweeparea.operators import windows
from sweeparea.operators.base.stored_names import name_of, stored, stored_as, text_of, told_of
from sweeparea.operators.nodes import Aggregate, Analytic, Join, TopK, Window
from sweeparea.operators.plan import sharing
from sweeparea.operators.plan.lowering import lowered
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.plan_identity import result_identity, state_identity
from sweeparea.operators.sql.expressions import Column, SortKey
from sweeparea.operators.time.domain import TimeKind
from tests.golden import texts


def _below(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("sweeparea.operators."):
            yield from _below(each)
            if not inspect.isabstract(each) and not each.__subclasses__():
                yield each


KINDS = [
    *dict.fromkeys([*_below(Node), *_below(windows.WindowDefinition)]),
    *(logical.AggregateCall, logical.WindowFunction, SortKey, logical.TimeDomain),
]


def test_every_kind_has_a_stored_name_of_its_own() -> None:
    assert {TopK, Window, Aggregate, windows.Slide, windows.UserWindow} < set(KINDS)
    names = [stored_as(kind).name for kind in KINDS if not issubclass(kind, windows.WindowDefinition)]
    specs = [stored_as(kind).name for kind in KINDS if issubclass(kind, windows.WindowDefinition)]
    assert len(set(names)) == len(names)
    assert len(set(specs)) == len(specs)


def _told(value: Any, found: set[tuple[str, str]]) -> None:
    if isinstance(value, tuple):
        for part in value:
            _told(part, found)
    elif dataclasses.is_dataclass(value) and not isinstance(value, Column | logical.Expr):
        found.add((name_of(value), ""))
        for text, part in told_of(value):
            found.add((name_of(value), text))
            _told(part, found)


def test_the_golden_texts_tell_every_field_of_every_kind() -> None:
    found: set[tuple[str, str]] = set()
    for plan in [*map(texts.bound, texts.QUERIES), texts.with_distinct()]:
        _told((plan.time, plan.root, lowered(plan).root), found)
    kinds = [stored_as(kind) for kind in KINDS]
    assert {(kind.name, text) for kind in kinds for text in ("", *(t for t, _ in kind.fields))} == found


@stored("TopK", "input", "order", "limit", "offset", "keys", now={"limit": "most", "offset": "skipped"})
@dataclass(frozen=True)
class FirstRows(Node):
    """TopK as it might be called one day, its fields in another order."""

    order: tuple[SortKey, ...]
    most: int | None
    input: Node
    keys: tuple[logical.Expr, ...] = ()
    skipped: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    words = edge = None  # type: ignore[assignment]


@stored("Analytic", "input", "calls", later=("qualified",))
@dataclass(frozen=True)
class Qualified(Analytic):
    """Analytic with a field more."""

    qualified: bool = False


@stored("Slide", "length", "slide", "lag", "anchor", now={"slide": "hop"})
@dataclass(frozen=True)
class Hops(windows.TimeWindow):
    """Slide, renamed."""

    hop: int
    length: int
    lag: int = 0
    anchor: int = 0
    interval = sql = reach = None  # type: ignore[assignment]


class Kind(enum.Enum):
    LEFT = "left"


def _rebuilt(node: Node) -> Node:
    node = node.with_inputs(tuple(map(_rebuilt, node.inputs)))
    match node:
        case TopK(below, order, limit, offset, keys):
            return FirstRows(order, limit, below, keys, offset)
        case Analytic(below, calls):
            return Qualified(below, calls)
        case Window(spec=windows.Slide() as slide):
            return replace(node, spec=Hops(slide.slide, slide.length, slide.lag, slide.anchor))
        case Join(kind="left"):
            return replace(node, kind=Kind.LEFT)  # type: ignore[arg-type]
    return node


@pytest.mark.parametrize(
    "name", ["top", "top_offset", "top_correlated", "analytic", "window_slide", "window_slide_lag", "join_left"]
)
def test_what_is_renamed_moved_or_made_an_enum_stays_what_it_was(name: str) -> None:
    plan = texts.bound(name)
    renamed = replace(plan, root=_rebuilt(plan.root))
    assert repr(renamed.root) != repr(plan.root)
    assert state_identity(renamed) == state_identity(plan)
    assert result_identity(renamed) == result_identity(plan)
    assert [n for n, _ in sharing.named(renamed.root)] == [n for n, _ in sharing.named(plan.root)]


@pytest.mark.parametrize("name", ["top", "analytic", "window_slide_lag"])
def test_hidden_queries_keep_their_names_too(name: str) -> None:
    plan = texts.bound(name)
    keys = tuple((c, logical.Expr(f"`{c.id}`", "", frozenset({c.id}))) for c in plan.root.columns)
    known = subplans(replace(plan, root=Aggregate(plan.root, keys, ())))
    found = subplans(replace(plan, root=Aggregate(_rebuilt(plan.root), keys, ())))
    assert known
    assert [*found] == [*known]


def test_a_later_field_is_told_where_it_says_something() -> None:
    plan = texts.bound("analytic")
    changed = replace(plan, root=_changed(plan.root))
    assert state_identity(changed) != state_identity(plan)
    assert not set(subplans(changed)) & {n for n, node in subplans(plan).items() if isinstance(node, Analytic)}


def _changed(node: Node) -> Node:
    node = node.with_inputs(tuple(map(_changed, node.inputs)))
    return Qualified(node.input, node.calls, True) if isinstance(node, Analytic) else node


def test_a_time_domain_is_stored_as_ever() -> None:
    assert (
        text_of(logical.TimeDomain(TimeKind.TIMESTAMP, 60_000_000)) == "TimeDomain(kind='TIMESTAMP', chronon=60000000)"
    )


def test_a_kind_without_stored_names_is_told_at_once() -> None:
    @dataclass(frozen=True)
    class Nameless(TopK):
        pass

    plan = texts.bound("top")
    with pytest.raises(TypeError, match="Nameless has no stored name: write @stored"):
        state_identity(replace(plan, root=Nameless(plan.root, (), 3)))
    with pytest.raises(TypeError, match=r"Nameless has the fields input, order, limit, .*, numbers; stored are input"):
        stored("Nameless", "input", "order", "limit", "offset")(Nameless)
    with pytest.raises(TypeError, match="a field that is stored later needs a default"):
        stored("Nameless", "input", "order", "offset", "keys", "by", "peers", "numbers", later=("limit",))(Nameless)


def test_what_has_no_stored_form_is_no_part_of_an_identity() -> None:
    plan: Plan = texts.bound("top")
    with pytest.raises(TypeError, match="which has no stored form"):
        state_identity(replace(plan, root=replace(plan.root, limit=object())))  # type: ignore[call-arg]
