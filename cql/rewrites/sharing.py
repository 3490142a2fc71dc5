"""Common subplans: within one query computed once, between queries as a query of their own (Golab & Oezsu 2005, section
5.1; Kraemer & Seeger 2005, section 5.3: the sharing of preferably large subqueries).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, replace

from sweeparea.cql.rewrites.conditions import column
from sweeparea.cql.rewrites.identity import Identity
from sweeparea.cql.rewrites.prune import prune
from sweeparea.cql.rewrites.renumber import renumbered
from sweeparea.cql.text.hidden_names import DIGITS, PREFIX, is_hidden
from sweeparea.operators.base.stored_names import text_of
from sweeparea.operators.nodes import (
    Enrich,
    Generate,
    Project,
    RelationScan,
    RelationToStream,
    Select,
    StreamScan,
    UnionAll,
    Window,
)
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.plan.sharing import nodes
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.operators.sql.expressions import Column
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


def share_between(plans: Sequence[Plan]) -> Shared:
    """Common subplans of queries as hidden queries.

    Condition: the queries have equal START, time domain and strategy, so that a hidden query's contents are the
    subplan's at every instant; the subplan keeps state. The largest common ones are taken. A hidden query is named by
    what it computes, so it stays the same when queries come and go. A stream in the middle of plans becomes a hidden
    stream.
    """
    names = choose(plans)
    made = tuple(take(plan, names[i]) for i, plan in enumerate(plans))
    hidden: dict[str, Plan] = {}
    for plan, own in zip(plans, names, strict=True):
        for name in own:
            found = None if name in hidden else hidden_query(plan, name)
            if found is not None:
                hidden[name] = found
    return Shared(tuple(hidden.values()), made)


def choose(plans: Sequence[Plan], existing: Container[str] = ()) -> tuple[tuple[str, ...], ...]:
    """Which hidden queries each plan is to read: subplans that two of the plans have in common, or that one of the
    ``existing`` hidden queries computes already.
    """
    found = [subplans(plan) for plan in plans]
    users = Counter(name for own in found for name in own)
    names = {name for name, count in users.items() if count > 1 or name in existing}
    while True:
        taken = tuple(_read(take(plan, names & own.keys())) for plan, own in zip(plans, found, strict=True))
        readers = Counter(name for own in taken for name in own)
        # one whose other readers have it within something larger is not shared by anyone
        kept = {name for name, count in readers.items() if count > 1 or name in existing}
        if kept == names:
            return taken
        names = kept


def _read(plan: Plan) -> tuple[str, ...]:
    return tuple(name for name in plan.inputs if is_hidden(name))


def subplans(plan: Plan) -> dict[str, Node]:
    """The subplans that could be hidden queries, by the names of these."""
    identity, found = Identity(), {}
    for node in nodes(plan.root):
        if _can_be_query(node):
            found.setdefault(_name(plan, identity.of(node)), node)
    return found


def _name(plan: Plan, digest: str) -> str:
    """START and time domain are part of what is computed, the strategy of what is kept for it."""
    strategy = dict(plan.settings).get("strategy", "upa")
    said = f"{plan.start} {text_of(plan.time)} {strategy} {digest}"
    return PREFIX + hashlib.sha256(said.encode()).hexdigest()[:DIGITS]


def take(plan: Plan, names: Collection[str]) -> Plan:
    """The plan reading the hidden queries of these names instead of computing their subplans, the largest ones."""
    if not names:
        return plan
    identity, done = Identity(), dict[int, Node]()

    def build(node: Node) -> Node:
        if id(node) not in done:
            name = _name(plan, identity.of(node)) if _can_be_query(node) else ""
            done[id(node)] = _scan(name, node) if name in names else node.with_inputs(tuple(map(build, node.inputs)))
        return done[id(node)]

    root = build(plan.root)
    if not any(is_hidden(name) for name in _inputs(root)):
        return plan
    return replace(plan, root=prune(root), inputs=_inputs(root), rewrites=(*plan.rewrites, "share_between"))


def hidden_query(plan: Plan, name: str) -> Plan | None:
    """The hidden query of this name, made from a plan that has its subplan; None if it has not. Equal for all plans."""
    node = subplans(plan).get(name)
    return None if node is None else _hidden(name, node, plan)


def _can_be_query(node: Node) -> bool:
    """Whether a node can be a query of its own: it keeps state, has columns, and is a relation or a relation's
    stream.
    """
    if not node.columns or not keeps_state(node) or isinstance(node, Enrich):
        return False
    if not all(_storable(c.type) for c in node.columns):
        return False
    if any(isinstance(n, RelationScan) and not n.source for n in node.walk()):
        return False
    if isinstance(node, RelationToStream):
        return True
    return not _is_stream(node)


def _storable(type_: str | None) -> bool:
    """Whether a result table can hold a column of a type; of an unknown type that is not known."""
    return type_ is not None and not any(word in type_ for word in ("void", "interval", "variant"))


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
    called = set(re.findall(r"\w+", repr(root).lower()))
    every, anchor = (node.every, node.anchor) if isinstance(node, RelationToStream) else (None, 0)
    return replace(
        plan,
        name=name,
        root=renumbered(Project(root, labels)),
        stream=kind,
        every=every,
        anchor=anchor,
        materialize=(ResultKind.RELATION if kind is None else ResultKind(kind),),
        inputs=_inputs(root),
        constraints=(),
        expectations=(),
        settings=tuple((key, value) for key, value in plan.settings if key in RUN_SETTINGS),
        notes=(),
        rewrites=("share_between",),
        functions=tuple(f for f in plan.functions if f.name.lower() in called),
        emits_each=False,
    )


RUN_SETTINGS = (
    "strategy",
    "slice.max_rows",
    "rstream.max_rows_per_slice",
    "state.expiry_partitions",
    "state.lazy_percent",
)
"""Settings of a reader that its hidden queries run by."""


def _scan(name: str, node: Node) -> Node:
    if isinstance(node, RelationToStream):
        source = tuple((c, f"v{i}") for i, c in enumerate(node.input.columns))
        return StreamScan(name, source, node.instant)
    return RelationScan(name, tuple((c, f"v{i}") for i, c in enumerate(node.columns)))


def _inputs(root: Node) -> tuple[str, ...]:
    scans = (n.name for n in root.walk() if isinstance(n, StreamScan | RelationScan))
    return tuple(dict.fromkeys(scans))
