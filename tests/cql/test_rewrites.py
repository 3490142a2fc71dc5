"""Law S4: no rewrite rule changes what a plan means. Rule by rule, by the plan oracle, at every instant."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache, cached_property
from random import Random

import pytest

from sweeparea.cql.rewrites import NAMES, MeasuredInput, Rewriting, Rule, optimize, push_selection
from sweeparea.cql.rewrites.driver import NODE_RULES, apply
from sweeparea.cql.rewrites.identity import Identity
from sweeparea.cql.rewrites.prune import prune
from sweeparea.cql.rewrites.renumber import renumbered
from sweeparea.cql.rewrites.sharing import share, share_between
from sweeparea.cql.rewrites.windows import emit_each
from sweeparea.operators.nodes import Aggregate, Join, Project, RelationToStream, Select, StreamScan, Window
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.stream_kind import ResultKind, StreamKind
from sweeparea.operators.sql.expressions import Column, Expr
from sweeparea.operators.sweeps.join import JoinKind
from sweeparea.operators.time.domain import TimeDomain, TimeKind
from sweeparea.operators.windows import Range
from tests.cql.generate_plans import LAST, Plans, inputs
from tests.cql.plan_oracle import Oracle, Relation, Stream, elements, emitted

CASES = int(os.environ.get("SWEEPAREA_REWRITE_CASES", "5"))
"""Plans on which each rule must have fired."""
TRIES = 4_000
GREATEST = 80
TICKS = (0, 2, 3, 5, LAST)


def contents(node: Node, given: dict) -> list[Counter]:
    oracle = Oracle(given)
    return [Counter(oracle.contents(node, tick)) for tick in TICKS]


def rates(r: Random) -> dict[str, MeasuredInput]:
    """Statistics that turn every order of joins and every choice by cost around in some case."""
    return {
        name: MeasuredInput(rate=r.choice((0.01, 1.0, 100.0)), rows=r.choice((2.0, 1e3, 1e6)))
        for name in ("S", "T", "R", "Q")
    }


class Drawn:
    """A random plan and its statistics. What it gives is computed once, for all rules that fire on it."""

    def __init__(self, seed: int) -> None:
        self._r = r = Random(seed)
        self.root = Plans(r).relation(r.choice((2, 3)))
        self.rates = rates(r)

    @cached_property
    def given(self) -> dict:
        return inputs(self._r)

    @cached_property
    def contents(self) -> list[Counter]:
        return contents(self.root, self.given)


drawn = cache(Drawn)


@pytest.mark.parametrize("rule", NODE_RULES, ids=lambda rule: rule.name)
def test_a_rule_changes_nothing(rule: Rule) -> None:
    fired, shown = 0, 0
    for seed in range(TRIES):
        plan, names = drawn(seed), dict[str, None]()
        after = apply([rule], plan.root, Rewriting.of(plan.root, plan.rates), names)
        if not names:
            continue
        assert after.columns == plan.root.columns, seed
        before = plan.contents
        assert contents(after, plan.given) == before, f"seed {seed}"
        fired += 1
        shown += any(before)
        if fired >= CASES and shown >= CASES // 2:
            return
    pytest.fail(f"{rule.name} fired on {fired} plans, {shown} of them with rows")


def test_the_greatest_of_the_same_rows_are_the_first_of_their_group() -> None:
    # of few rows with few values, NULL among them, groups without any value and rows of equal ones are frequent
    rule, fired = next(rule for rule in NODE_RULES if rule.name == "extreme_of_same"), 0
    for seed in range(GREATEST):
        r = Random(f"greatest {seed}")
        root, names = Plans(r).extreme(r.choice((0, 0, 1))), dict[str, None]()
        after = apply([rule], root, Rewriting.of(root, {}), names)
        if names:
            given = inputs(r)
            assert contents(after, given) == contents(root, given), f"seed {seed}"
            fired += 1
    assert fired > GREATEST // 2


def test_all_rules_together_change_nothing() -> None:
    for seed in range(10 * CASES):
        r = Random(f"all {seed}")
        root = Plans(r).relation(3)
        given = inputs(r)
        plan = optimize(Plan("q", root, None, TimeDomain(), materialize=(ResultKind.RELATION,)), rates(r))
        assert [c.label for c in plan.root.columns] == [c.label for c in root.columns]
        assert contents(plan.root, given) == contents(root, given), f"seed {seed}: {plan.rewrites}"


def test_pruning_changes_nothing() -> None:
    for seed in range(4 * CASES):
        r = Random(f"prune {seed}")
        root = Plans(r).relation(3)
        kept = Project(root, tuple((c, Plans.ref(c)) for c in r.sample(root.columns, 1)))
        pruned = prune(kept)
        given = inputs(r)
        assert pruned.columns == kept.columns
        assert contents(pruned, given) == contents(kept, given), f"seed {seed}"


def test_sharing_changes_nothing() -> None:
    shared = 0
    for seed in range(TRIES):
        r = Random(f"share {seed}")
        root = Plans(r).twice(3)
        found = share(root)
        if found is None:
            continue
        given = inputs(r)
        assert contents(prune(found), given) == contents(root, given), f"seed {seed}"
        assert len({id(n) for n in found.walk()}) < len(list(found.walk()))
        shared += 1
        if shared == 2 * CASES:
            return
    pytest.fail(f"{shared} plans had something to share")


def test_window_reduction_publishes_the_same_stream() -> None:
    found: Counter[bool] = Counter()
    for seed in range(TRIES):
        r = Random(f"reduce {seed}")
        plans = Plans(r)
        root = plans.plain(r.choice((0, 2)))
        if r.random() < 0.4:
            root = Join(root, plans.plain(1), None)
        plan = Plan("q", root, StreamKind.ISTREAM, TimeDomain(), materialize=(ResultKind.ISTREAM,))
        reduced = emit_each(plan)
        if reduced is None:
            continue
        given = inputs(r)
        assert emitted(reduced, given, LAST) == emitted(plan, given, LAST), f"seed {seed}"
        found[isinstance(root, Join)] += 1
        if found[True] >= CASES and found[False] >= 10 * CASES:
            return
    pytest.fail(f"{found}")


def test_window_reduction_needs_that_nothing_else_is_kept() -> None:
    plans = Plans(Random(1))
    while (
        emit_each(
            plan := Plan("q", plans.plain(0), StreamKind.ISTREAM, TimeDomain(), materialize=(ResultKind.ISTREAM,))
        )
        is None
    ):
        pass
    for other in (ResultKind.RELATION, ResultKind.DSTREAM, ResultKind.RSTREAM):
        kept = (ResultKind.ISTREAM, other)
        assert emit_each(Plan("q", plan.root, StreamKind.ISTREAM, TimeDomain(), materialize=kept)) is None
    assert emit_each(Plan("q", plan.root, StreamKind.DSTREAM, TimeDomain(), materialize=(ResultKind.DSTREAM,))) is None


def test_sharing_between_queries_changes_nothing() -> None:
    compared = 0
    for seed in range(TRIES):
        r = Random(f"between {seed}")
        plans = Plans(r)
        below = plans.relation(2)
        roots = [Select(below, plans.condition(below.columns)), plans.copied(below), plans.relation(1)]
        roots[1] = Select(roots[1], plans.condition(roots[1].columns))
        given = [
            Plan(f"q{i}", root, None, TimeDomain(), materialize=(ResultKind.RELATION,)) for i, root in enumerate(roots)
        ]
        shared = share_between(given)
        if not shared.hidden:
            continue
        tables = inputs(r)
        before = [contents(p.root, tables) for p in given]
        for hidden in shared.hidden:
            tables[hidden.name] = as_input(hidden, tables)
        assert [contents(p.root, tables) for p in shared.plans] == before, f"seed {seed}"
        assert shared.plans[2] == given[2] or any(h.name in shared.plans[2].inputs for h in shared.hidden)
        compared += 1
        if compared == CASES:
            return
    pytest.fail(f"only {compared} groups had something to share")


def as_input(plan: Plan, tables: dict):
    """A query's result as an input of others."""
    labels = tuple(c.label for c in plan.root.columns)
    if plan.stream:
        stream = RelationToStream(plan.root, StreamKind(plan.stream), plan.every, plan.anchor)
        return Stream(labels, elements(stream, tables, LAST))
    oracle, before, changes = Oracle(tables), Counter(), []
    for tick in range(LAST + 1):
        now = Counter(oracle.contents(plan.root, tick))
        for row in {*now, *before}:
            if now[row] != before[row]:
                changes.append((tick, now[row] - before[row], row))
        before = now
    return Relation(labels, changes)


def test_names_that_look_like_ids_are_not_ids() -> None:
    """A stream's own columns may be called c0 and c1."""
    given = (("S", "c0"), ("S", "c1"), ("c1", "c1"))
    scans = [StreamScan(name, ((Column(id_, "x", "int"), id_),)) for name, id_ in given]
    identity = Identity()
    assert len({identity.of(scan) for scan in scans}) == 3
    renamed = StreamScan("S", ((Column("c7", "y", "int"), "c0"),))
    assert identity.of(renamed) == identity.of(scans[0])
    assert renumbered(renamed).columns[0].id == "c0"
    assert renumbered(StreamScan("c7", ((Column("c7", "y", "int"), "c7"),))) == StreamScan(
        "c7", ((Column("c0", "y", "int"), "c7"),)
    )


def test_queries_of_other_starts_share_nothing() -> None:
    plans = Plans(Random(3))
    below = plans.distinct_of(plans.window(0))
    first = Plan("a", below, None, TimeDomain(), materialize=(ResultKind.RELATION,))
    assert share_between([first, Plan("b", below, None, TimeDomain(), materialize=(ResultKind.RELATION,))]).hidden
    assert not share_between([first, Plan("b", below, None, TimeDomain(), start=5)]).hidden
    assert not share_between([first, Plan("b", below, None, TimeDomain(TimeKind.TIMESTAMP, 1))]).hidden


def test_rules_are_switched_by_a_setting() -> None:
    plans = Plans(Random(5))
    window = Window(plans.scan("S"), Range(3))
    root = Project(
        Select(window, Expr(f"`{window.columns[0].id}` = 1", "a = 1", frozenset({window.columns[0].id}))),
        ((plans.column("int"), Plans.ref(window.columns[0])),),
    )

    def fired(setting: str) -> tuple[str, ...]:
        return optimize(Plan("q", root, None, TimeDomain(), settings=(("rewrites", setting),))).rewrites

    assert fired("none") == ()
    assert fired("selection_past_window") == ("selection_past_window",)
    assert set(fired("all")) == {"selection_past_window", "projection_pruning"}
    assert fired("projection_pruning, selection_past_join") == ("projection_pruning",)


def test_every_rule_says_where_it_comes_from() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for rule in NODE_RULES:
        assert rule.condition
        assert "section" in rule.source


def test_distinct_of_a_part_of_the_keys_stays() -> None:
    [rule] = [r for r in NODE_RULES if r.name == "distinct_of_unique"]
    plans = Plans(Random(11))
    window = plans.window(0)
    grouped = plans.distinct_of(window)
    assert len(grouped.columns) > 1
    for columns, unique in ((grouped.columns, True), (grouped.columns[:1], False)):
        keys = tuple((plans.column(c.type), Plans.ref(c)) for c in columns)
        for node in (Aggregate(grouped, keys, ()), plans.distinct_of(Project(grouped, keys))):
            assert (rule.apply(node, Rewriting.of(node)) is not None) is unique


def test_the_binder_pushes_by_the_kind_of_the_join() -> None:
    plans = Plans(Random(7))
    left, right = plans.window(0), plans.window(0)

    def on(*columns: str) -> Expr:
        return Expr(" = ".join(f"`{c}`" for c in columns), "", frozenset(columns))

    a, b = left.columns[0].id, right.columns[0].id
    for kind in JoinKind:
        pushed = push_selection(Join(left, right, on(a, b), kind), on(a))
        assert isinstance(pushed, Select if kind == JoinKind.FULL else Join), kind
    for kind in (JoinKind.LEFT, JoinKind.FULL):
        assert isinstance(push_selection(Join(left, right, on(a, b), kind), on(b)), Select)
