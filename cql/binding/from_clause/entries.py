"""What is written at one entry of FROM: its alias, its window, and the parts that are not offered."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sweeparea.cql.binding.scope.context import Context
from sweeparea.cql.binding.scope.inputs import SchemaKind
from sweeparea.cql.syntax.dialect.spans import span_of
from sweeparea.cql.syntax.windows.window_text import WindowText
from sweeparea.cql.text.errors import BindError, ParseError, listing, not_offered
from sweeparea.cql.text.foreign_words import CHANCE
from sweeparea.operators.sql.expressions import Column

_TABLE_PARTS = {"this", "alias", "joins"}
_LATERAL = "Write it behind all of FROM"
_TRAVEL = "Write what is wanted of the past as a window, such as [Range INTERVAL 1 DAY]"
_REFUSED_TABLE = {
    "sample": ("TABLESAMPLE", CHANCE),
    "pivots": ("PIVOT / UNPIVOT", "Write SUM(x) FILTER (WHERE b = 'v') AS v, or stack(..)"),
    "version": ("time travel (VERSION / TIMESTAMP AS OF)", _TRAVEL),
    "when": ("time travel", _TRAVEL),
    "hints": ("a table hint", "Leave it out"),
    "laterals": ("LATERAL VIEW", _LATERAL),
    "rows_from": ("ROWS FROM", "Write LATERAL VIEW"),
    "only": ("ONLY", "Leave it out"),
    "partition": ("PARTITION", "Write a condition in WHERE"),
    "ordinality": ("WITH ORDINALITY", "Write posexplode(..)"),
    "changes": ("CHANGES", "Write ISTREAM(SELECT ..) or DSTREAM(SELECT ..)"),
    "indexed": ("INDEXED BY", "Leave it out"),
}
"""What each part of an entry is called, and the way out."""


def refuse_parts_of_entry(context: Context, node: exp.Expr) -> None:
    """RefusedError for a part of an entry that is not offered."""
    for name, value in node.args.items():
        if value and name not in _TABLE_PARTS and name not in ("db", "catalog", "with_"):
            first = value[0] if isinstance(value, list) else value
            at = first if isinstance(first, exp.Expr) and span_of(first) is not None else node
            what, hint = _REFUSED_TABLE.get(name, (name.upper(), "Leave it out"))
            known = context.inputs.get(node.name.lower())
            if name == "version" and known is not None and known.kind == SchemaKind.RELATION:
                hint = "Leave it out: a join reads a relation as it is at each instant; read a stream beside it [Now]"
            raise not_offered(what, context.place(at), hint)


def alias_of(node: exp.Expr) -> tuple[str | None, list[str]]:
    """The alias of an entry, and the names that it gives to the columns."""
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return None, []
    return (alias.name or None), [c.name for c in alias.args.get("columns") or []]


def window_of(context: Context, node: exp.Expr) -> WindowText | None:
    """The window before or behind the alias."""
    alias = node.args.get("alias")
    before = node.meta.get("window")
    behind = alias.meta.get("window") if isinstance(alias, exp.Expr) else None
    if before is not None and behind is not None:
        raise ParseError(
            "a stream takes one window, found two",
            context.source.place(behind.span[0]),
            "Keep the one before or behind the alias",
        )
    return before or behind


def is_behind_alias(node: exp.Expr) -> bool:
    """Whether the window stands behind the alias, and so sees the names that this gives to the columns."""
    alias = node.args.get("alias")
    return isinstance(alias, exp.Expr) and alias.meta.get("window") is not None


def renamed(context: Context, columns: tuple[Column, ...], names: list[str], node: exp.Expr) -> tuple[Column, ...]:
    """``AS x(a, b)``: the same columns under other labels."""
    if not names:
        return columns
    if len(names) != len(columns):
        raise BindError(
            f"the alias names {len(names)} column{'s' * (len(names) != 1)}, but there"
            f" {'is' if len(columns) == 1 else 'are'} {len(columns)}",
            context.place(node),
            f"Name each of {listing(c.label for c in columns)}",
        )
    return tuple(replace(c, label=n) for c, n in zip(columns, names, strict=True))


def is_entry(node: exp.Expr) -> bool:
    """Whether a subquery in parentheses is an entry of FROM: a name, or one with an alias, a window or joins."""
    if isinstance(node, exp.Subquery) and (isinstance(node.this, exp.Table) or is_entry(node.this)):
        return True
    named = node.args.get("alias") is not None or node.meta.get("window") is not None
    return isinstance(node, exp.Subquery) and (named or bool(node.args.get("joins")))
