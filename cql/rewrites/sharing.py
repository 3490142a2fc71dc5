"""Common subplans: within one query computed once, between queries as a query of their own (Golab & Oezsu 2005, section
5.1; Kraemer & Seeger 2005, section 5.3: the sharing of preferably large subqueries).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sweeparea.cql.prune import prune
from sweeparea.cql.rewrites.conditions import column
from sweeparea.cql.rewrites.identity import Identity
from sweeparea.operators.logical import (
    Column,
    Enrich,
    Generate,
    Node,
    Plan,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    UnionAll,
    Window,
)
from sweeparea.operators.windows import TimeWindow

SHARE = "common_subplans"
"""The name of ``share``."""


def keeps_state(node: Node) -> bool:
    """Whether computing a node twice costs more than reading inputs twice."""
    if isinstance(node, Window):
        return not isinstance(node.spec, TimeWindow) or keeps_state(node.input)
    if isinstance(node, Select | Project | UnionAll | Generate | StreamScan | RelationScan):
        return any(keeps_state(child) for child in node.inputs)
    return True


def share(root: Node) -> Node | None:
    """The plan with each repeated subplan that keeps state made once: its second use is a projection, which renames
    columns, over the same node. None where nothing repeats.
    """
    identity, made = Identity(), dict[str, Node]()
    shared = False

    def build(node: Node) -> Node:
        nonlocal shared
        digest = identity.of(node)
        first = made.get(digest)
        if first is not None and keeps_state(node):
            shared = True
            return first if first.columns == node.columns else _renamed(first, node.columns)
        built = node.with_inputs(tuple(map(build, node.inputs)))
        made.setdefault(digest, built)
        return built

    result = build(root)
    return result if shared else None


def _renamed(node: Node, columns: Sequence[Column]) -> Node:
    return Project(node, tuple((new, column(old)) for new, old in zip(columns, node.columns, strict=True)))


# -- between queries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shared:
    """Queries with their common subplans taken out: ``hidden`` are derived queries that others read, in the order in
    which they can run; ``plans`` the given ones, in their order, reading those.
    """

    hidden: tuple[Plan, ...]
    plans: tuple[Plan, ...]


def share_between(plans: Sequence[Plan], prefix: str = "shared_") -> Shared:
    """Common subplans of queries as hidden queries.

    Condition: the queries have equal START and time domain, so that a hidden query's contents are the subplan's at
    every instant; the subplan keeps state. The largest common ones are taken. A hidden query is named by what it
    computes, so it stays the same when queries come and go. A stream in the middle of plans becomes a hidden stream.
    """
    identity = Identity()
    uses: dict[str, set[int]] = {}
    groups = [_group(plan) for plan in plans]
    for i, plan in enumerate(plans):
        for node in _parts(plan.root):
            if _can_be_query(node):
                uses.setdefault(f"{groups[i]}{identity.of(node)}", set()).add(i)
    common = {key for key, users in uses.items() if len(users) > 1}
    hidden: dict[str, Plan] = {}

    def taken(plan: Plan, group: str) -> Plan:
        done: dict[int, Node] = {}

        def build(node: Node) -> Node:
            if id(node) not in done:
                key = f"{group}{identity.of(node)}"
                if key in common and _can_be_query(node):
                    name = prefix + identity.of(node)[:12]
                    if name not in hidden:
                        hidden[name] = _hidden(name, node, plan)
                    done[id(node)] = _scan(name, node)
                else:
                    done[id(node)] = node.with_inputs(tuple(map(build, node.inputs)))
            return done[id(node)]

        root = build(plan.root)
        if root is plan.root:
            return plan
        return replace(plan, root=prune(root), inputs=_inputs(root), rewrites=(*plan.rewrites, "share_between"))

    made = tuple(taken(plan, group) for plan, group in zip(plans, groups, strict=True))
    return Shared(tuple(hidden.values()), made)


def _group(plan: Plan) -> str:
    return f"{plan.start} {plan.time} {sorted(plan.settings)} "


def _parts(root: Node) -> Iterator[Node]:
    seen: set[int] = set()
    for node in root.walk():
        if id(node) not in seen:
            seen.add(id(node))
            yield node


def _can_be_query(node: Node) -> bool:
    """Whether a node can be a query of its own: it keeps state, has columns, and is a relation or a relation's
    stream.
    """
    if not node.columns or not keeps_state(node) or isinstance(node, Enrich):
        return False
    if any(isinstance(n, RelationScan) and not n.source for n in node.walk()):
        return False
    if isinstance(node, RelationToStream):
        return True
    return not _is_stream(node)


def _is_stream(node: Node) -> bool:
    if isinstance(node, StreamScan | RelationToStream | Enrich):
        return True
    if isinstance(node, Select | Project | UnionAll | Generate):
        return _is_stream(node.inputs[0])
    return False


def _hidden(name: str, node: Node, plan: Plan) -> Plan:
    kind = node.kind if isinstance(node, RelationToStream) else None
    root = node.input if isinstance(node, RelationToStream) else node
    # labels become the names of a table's columns
    labels = tuple((Column(f"{c.id}_", f"v{i}", c.type), column(c)) for i, c in enumerate(root.columns))
    every, anchor = (node.every, node.anchor) if isinstance(node, RelationToStream) else (None, 0)
    return replace(
        plan,
        name=name,
        root=Project(root, labels),
        stream=kind,
        every=every,
        anchor=anchor,
        materialize=(kind or "relation",),
        inputs=_inputs(root),
        constraints=(),
        notes=(),
        rewrites=("share_between",),
        emits_each=False,
    )


def _scan(name: str, node: Node) -> Node:
    if isinstance(node, RelationToStream):
        source = tuple((c, f"v{i}") for i, c in enumerate(node.input.columns))
        return StreamScan(name, source, node.instant)
    return RelationScan(name, tuple((c, f"v{i}") for i, c in enumerate(node.columns)))


def _inputs(root: Node) -> tuple[str, ...]:
    scans = (n.name for n in root.walk() if isinstance(n, StreamScan | RelationScan))
    return tuple(dict.fromkeys(scans))
