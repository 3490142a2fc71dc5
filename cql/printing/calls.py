"""Aggregates, window functions and orders as text. ``references`` are the names of columns, by their ids."""

from __future__ import annotations

from collections.abc import Mapping

from sweeparea.cql.printing.not_printable import NotPrintable
from sweeparea.operators.nodes import AggregateCall, WindowFunction
from sweeparea.operators.sql.expressions import SortKey
from sweeparea.operators.sql.sql_text import substituted

_WITHIN = ("LISTAGG", "PERCENTILE_CONT", "PERCENTILE_DISC")


def aggregate_text(call: AggregateCall, references: Mapping[str, str]) -> str:
    if call.function == "SINGLE_VALUE":
        raise NotPrintable("A decorrelated scalar subquery (SINGLE_VALUE) has no text of its own.")
    arguments = [substituted(e.sql, references) for e in (call.argument, *call.extra) if e is not None]
    inside = ("DISTINCT " if call.distinct else "") + (", ".join(arguments) or "*")
    text = f"{call.function}({inside})"
    if call.order and call.function in _WITHIN:
        if call.function != "LISTAGG":
            text = f"{call.function}({', '.join(arguments[1:])})"
        text += f" WITHIN GROUP (ORDER BY {order_text(call.order, references)})"
    if call.ignore_nulls:
        text += " IGNORE NULLS"
    if call.filter is not None:
        text += f" FILTER (WHERE {substituted(call.filter.sql, references)})"
    return text


def window_function_text(call: WindowFunction, references: Mapping[str, str]) -> str:
    arguments = ", ".join(substituted(e.sql, references) for e in call.arguments)
    text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments})"
    text += " IGNORE NULLS" if call.ignore_nulls else ""
    text += f" FILTER (WHERE {substituted(call.filter.sql, references)})" if call.filter is not None else ""
    over = []
    if call.partition:
        over.append(f"PARTITION BY {', '.join(substituted(e.sql, references) for e in call.partition)}")
    if call.order:
        over.append(f"ORDER BY {order_text(call.order, references)}")
    return f"{text} OVER ({' '.join([*over, call.frame] if call.frame else over)})"


def order_text(order: tuple[SortKey, ...], references: Mapping[str, str]) -> str:
    return ", ".join(
        f"{substituted(k.expr.sql, references)} {'DESC' if k.descending else 'ASC'} "
        f"NULLS {'FIRST' if k.nulls_first else 'LAST'}"
        for k in order
    )
