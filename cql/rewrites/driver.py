"""Applies the rules to a plan: to a fixpoint, in a fixed order, each of them only if it is switched on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sweeparea.cql.rewrites import distinct, extremes, joins, negation, projection, ranks, reorder, selection, windows
from sweeparea.cql.rewrites.prune import prune
from sweeparea.cql.rewrites.rule import MeasuredInput, Rewriting, Rule
from sweeparea.cql.rewrites.sharing import SHARE, share
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes

FIRST: tuple[Rule, ...] = (
    *extremes.RULES,
    *selection.RULES,
    *projection.RULES,
    *joins.RULES,
    *distinct.RULES,
    *windows.RULES,
    *ranks.RULES,
)
"""Rules that always help; they run until none applies."""
BY_COST: tuple[Rule, ...] = (*reorder.RULES, *negation.RULES)
"""Rules that compare costs, after the first ones have brought the plan into shape."""
NODE_RULES = (*FIRST, *BY_COST)
PRUNE = "projection_pruning"
NAMES: tuple[str, ...] = (*(rule.name for rule in NODE_RULES), SHARE, PRUNE, windows.EMIT_EACH)
"""All rules, as the setting ``rewrites`` names them."""
FIRINGS = 50
"""Times that rules may change a plan, for each of its nodes: a bound that no plan should reach."""


def optimize(plan: Plan, inputs: Mapping[str, MeasuredInput] | None = None) -> Plan:
    """The plan after all rules that its setting ``rewrites`` leaves on; ``rewrites`` of the plan names those that
    changed it.

    The setting is ``all`` (the default), ``none`` or names of rules with commas between them.
    """
    names = chosen(dict(plan.settings).get("rewrites", "all"))
    rewriting = Rewriting.of(plan.root, inputs)
    fired: dict[str, None] = dict.fromkeys(plan.rewrites)
    root = plan.root
    for rules in (FIRST, (*FIRST, *BY_COST)):
        root = apply([rule for rule in rules if rule.name in names], root, rewriting, fired)
    if SHARE in names and (shared := share(root)) is not None:
        root = shared
        fired[SHARE] = None
    if PRUNE in names:
        pruned = prune(root)
        if pruned != root:
            fired[PRUNE] = None
        root = apply([r for r in projection.RULES if r.name in names], pruned, rewriting, {})
    plan = replace(plan, root=root)
    if windows.EMIT_EACH in names and (reduced := windows.emit_each(plan)) is not None:
        plan = reduced
        fired[windows.EMIT_EACH] = None
    return replace(plan, rewrites=tuple(fired))


def chosen(setting: str) -> frozenset[str]:
    """The rules that a setting names; unknown names are left out."""
    words = [word.strip().lower() for word in setting.split(",")]
    if words == ["all"]:
        return frozenset(NAMES)
    return frozenset(words) & frozenset(NAMES)


def apply(rules: Iterable[Rule], root: Node, rewriting: Rewriting, fired: dict[str, None]) -> Node:
    """The plan on which none of the rules changes anything any more, or on which they have fired too often."""
    by_kind: dict[type[Node], list[Rule]] = {}
    for rule in rules:
        for kind in rule.kinds:
            by_kind.setdefault(kind, []).append(rule)
    left = FIRINGS * sum(1 for _ in nodes(root))
    settled: dict[int, Node] = {}  # nodes below which nothing applies

    def once(node: Node) -> Node:
        nonlocal left
        again = True
        while again and left > 0:
            again = False
            for rule in by_kind.get(type(node), ()):
                changed = rule.apply(node, rewriting)
                if changed is not None:
                    node, again = changed, True
                    fired[rule.name] = None
                    left -= 1
                    break
        return node

    def whole(node: Node) -> Node:
        if id(node) in settled:
            return settled[id(node)]
        given = node
        while left > 0:
            node = once(node)
            below = node.with_inputs(tuple(map(whole, node.inputs)))
            if below is node:
                break
            node = below
        settled[id(node)] = node
        kept.append(node)
        if given is not node:
            settled[id(given)] = node
            kept.append(given)
        return node

    kept: list[Node] = []  # keeps ids in ``settled`` from being used again
    return whole(root)
