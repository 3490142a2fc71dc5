"""Structs made in expressions: (a, b), struct(..), and stars among arguments."""

from __future__ import annotations

from sqlglot import exp

from sweeparea.cql.binding.expressions.walk import Walk
from sweeparea.cql.binding.scope.bound import quoted, quoted_name
from sweeparea.cql.binding.scope.stars import star_columns
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.text.errors import ParseError
from sweeparea.cql.text.source_text import Replacement


def tuple_(walk: Walk, node: exp.Expr) -> None:
    """``(a, b)`` is a struct too."""
    position = {id(part): i for i, part in enumerate(node.expressions, 1)}

    def visit(part: exp.Expr) -> None:
        walk.visit(part)
        keep_field_name(walk, part, position[id(part)])

    walk.each(node.expressions, visit)


def keep_field_name(walk: Walk, part: exp.Expr, position: int) -> None:
    """A struct's field is named after the column that fills it: by its own name, not by the id in its place."""
    span = span_of(part)
    if walk.replacements and walk.replacements[-1].span == span and not isinstance(part, exp.Alias):
        name = part.name if isinstance(part, exp.Column) else f"col{position}"
        last = walk.replacements.pop()
        walk.replacements.append(Replacement(last.span, f"{last.text} AS {quoted_name(name)}"))


def expand(walk: Walk, argument: exp.Expr, named: bool) -> None:
    """``struct(*)`` and ``hash(t.*)``: a star among arguments stands for its columns."""
    columns = star_columns(walk.binder.scope, argument, walk.binder.place)
    if walk.binder.grouping is not None:
        raise walk.refused("* inside a function above GROUP BY", argument)
    span = span_of(argument)
    if span is None:
        raise ParseError("* cannot be read here", walk.binder.place(argument))
    texts = [f"{quoted(c)} AS {quoted_name(c.label)}" if named else quoted(c) for c in columns]
    walk.replacements.append(Replacement(span, ", ".join(texts)))
    walk.used |= {c.id for c in columns}
