"""Long chains of ``||`` as one call of concat.

Spark nests a call in a call for each ``||``, and its analyzer compares each with all before it. ``concat(a, b, ..)``
of many is equal where all of them become STRINGs: it is NULL if any is. BINARY and ARRAY stay as they are written: the
first is checked where it becomes a STRING, the second brought to a common type, link by link.
"""

from __future__ import annotations

from bisect import bisect_left

from sqlglot import exp

from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.functions import signatures, types
from sweeparea.cql.text.source_text import Replacement

MANY = 200
"""Operands from which on a chain is one call. Fewer are run as they are written, as what was deployed is."""
_AS_TIGHT = (*types.ARITHMETIC, "div", "<<", ">>")
"""Operators that Spark may bind a chain's last or first operand to, where no parentheses stand around the chain."""
_FAMILIES = frozenset(("boolean", "integer", "fractional", "decimal", "string", "date", "timestamp", "timestamp_ntz"))
_WHOLE = (
    exp.Column, exp.Literal, exp.RawString, exp.Paren, exp.Dot, exp.Bracket, exp.Null, exp.Boolean, exp.Case,
    exp.Window, exp.Query, exp.Func,
)  # fmt: skip
"""Operands that are one whatever binds tighter: in ``a || b + c`` Spark adds c to the rest, as it binds both alike."""


def flattened(walk: Walk, node: exp.DPipe) -> None:
    """A visited chain in one call, where it is long and what its operands are is known."""
    if _is_inside(node):
        return
    operands = _operands(node)
    if len(operands) < MANY or not all(_becomes_string(walk, each) for each in operands):
        return
    source, made = walk.binder.source, sorted(walk.replacements, key=lambda r: r.span)
    starts, texts = [r.span[0] for r in made], []
    for each in operands:
        first, end = span = walk.binder.span(each)
        texts.append(source.splice(span, made[bisect_left(starts, first) : bisect_left(starts, end)]))
    walk.replacements.append(Replacement(walk.binder.span(node), f"concat({', '.join(texts)})"))


def _is_inside(node: exp.DPipe) -> bool:
    """Whether a link belongs to a longer chain, or may do so as Spark reads it."""
    above = node.parent
    if isinstance(above, exp.Binary) and types.OPERATORS.get(type(above)) in _AS_TIGHT:
        return True
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.DPipe)


def _operands(node: exp.DPipe) -> list[exp.Expr]:
    """What a chain puts together, from left to right."""
    found: list[exp.Expr] = []
    open_: list[exp.Expr] = [node]  # a stack, since a chain is as deep as it is long
    while open_:
        tree = open_.pop()
        inner = tree.unnest()
        if isinstance(inner, exp.DPipe):
            open_ += [inner.expression, inner.this]
        else:
            found.append(tree)
    return found


def _becomes_string(walk: Walk, node: exp.Expr) -> bool:
    type_ = types.of(node, walk.types)
    whole = isinstance(node, _WHOLE) and (isinstance(node, exp.Dot) or not isinstance(node, exp.Binary))
    if not whole or type_ is None or " " in type_:  # such as a collation
        return False
    return type_ == "void" or signatures.family_of(type_) in _FAMILIES
