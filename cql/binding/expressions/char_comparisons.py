"""Comparisons of CHAR(n), which Spark pads (``functions/char_padding.py`` says how)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.functions import char_padding, types
from sweeparea.cql.functions.aggregates import is_aggregate
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text.errors import RefusedError
from sweeparea.cql.text.source_text import Replacement, Span


def char_of(walk: Walk, node: exp.Expr) -> tuple[str | None, bool]:
    """The declared type of an expression that is just a column which holds CHAR values, else None; and whether it
    is one of the query around.
    """
    while id(node) not in walk.chars and isinstance(node, exp.Paren):
        node = node.this
    return walk.chars.get(id(node)), id(node) in walk.outer


def _sides(walk: Walk, nodes: list[exp.Expr]) -> list[char_padding.Compared]:
    """What is known of the sides of a comparison; nothing where none of them holds CHAR values."""
    return [_compared(walk, n) for n in nodes] if walk.chars and any(char_of(walk, n)[0] for n in nodes) else []


def _compared(walk: Walk, node: exp.Expr) -> char_padding.Compared:
    span, (declared, outer) = span_of(node), char_of(walk, node)
    text = walk.binder.source.splice(span) if span is not None else ""
    return char_padding.Compared(span, text, declared, declared is None and _constant(walk, node, text), outer)


def _constant(walk: Walk, node: exp.Expr, text: str) -> bool:
    """Whether what a CHAR(n) is compared with is a constant text; RefusedError where its type is not known."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.RawString):
        return True
    kind = types.of(node, walk.types)
    if kind not in (None, "string") or isinstance(node, exp.HexString) or not char_padding.is_constant(node):
        return False
    if any(isinstance(part, exp.Anonymous) and is_aggregate(part) for part in node.walk()):
        return False
    if kind is None:
        raise RefusedError(
            f"{text} is compared with a column of CHAR(n), to which Spark would pad it if it is a text",
            walk.binder.place(node),
            f"Write the text itself, or CAST({text} AS STRING)",
        )
    return True


def pad_comparison(walk: Walk, left: exp.Expr, right: exp.Expr) -> None:
    """A comparison of two sides."""
    sides = _sides(walk, [left, right])
    _pad(walk, char_padding.comparison(*sides) if sides else ())


def pad_members(walk: Walk, value: exp.Expr, members: list[exp.Expr]) -> None:
    """``value IN (members)``."""
    sides = _sides(walk, [value, *members])
    _pad(walk, char_padding.member(sides[0], sides[1:]) if sides else ())


def _pad(walk: Walk, padded: Iterable[char_padding.Padding]) -> None:
    """Puts padding around sides of a comparison."""
    for span, pattern in padded:
        _exchange(walk, span, pattern.replace(char_padding.SIDE, _bound_text(walk, span)))


def _bound_text(walk: Walk, span: Span) -> str:
    return walk.binder.source.splice(span, [r for r in walk.replacements if _within(r.span, span)])


def _exchange(walk: Walk, span: Span, text: str) -> None:
    walk.replacements = [r for r in walk.replacements if not _within(r.span, span)]
    walk.replacements.append(Replacement(span, text))


def _each_padded(walk: Walk, subject: exp.Expr, others: list[exp.Expr], word: str) -> list[str]:
    """``subject word other`` for each of ``others``, padded as it needs; nothing where no padding is needed."""
    texts, needed = [], False
    for other in others:
        sides = _sides(walk, [subject, other])
        patterns = dict(char_padding.comparison(*sides)) if sides else {}
        needed |= bool(patterns)
        spans = walk.binder.span(subject), walk.binder.span(other)
        parts = [patterns.get(s, f"({char_padding.SIDE})") for s in spans]
        filled = [p.replace(char_padding.SIDE, _bound_text(walk, s)) for p, s in zip(parts, spans, strict=True)]
        texts.append(f" {word} ".join(filled))
    return texts if needed else []


def pad_cases(walk: Walk, node: exp.Case) -> None:
    """``CASE c WHEN 'ab' ..`` compares c with each in turn, so it becomes ``CASE WHEN c = 'ab   ' ..``."""
    whens = [when.this for when in node.args.get("ifs") or []]
    conditions = _each_padded(walk, node.this, whens, "=")
    if conditions:
        for when, text in zip(whens, conditions, strict=True):
            _exchange(walk, walk.binder.span(when), text)
        _exchange(walk, walk.binder.span(node.this), "")


def pad_call(walk: Walk, node: exp.Anonymous, name: str) -> None:
    """EQUAL_NULL and DECODE compare their arguments as ``<=>`` does."""
    arguments = node.expressions
    if name == "EQUAL_NULL" and len(arguments) == 2:
        pad_comparison(walk, *arguments)
    elif name == "DECODE" and len(arguments) > 2:
        searched = arguments[1:-1:2] if len(arguments) % 2 == 0 else arguments[1::2]
        conditions = _each_padded(walk, arguments[0], searched, "<=>")
        if conditions:
            values = [f"({_bound_text(walk, walk.binder.span(a))})" for a in arguments]
            results, rest = values[2::2], values[-1] if len(values) % 2 == 0 else "NULL"
            whens = " ".join(f"WHEN {c} THEN {r}" for c, r in zip(conditions, results, strict=True))
            _exchange(walk, walk.binder.span(node), f"CASE {whens} ELSE {rest} END")


def _within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
