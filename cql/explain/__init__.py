"""A plan shown to people: a tree in a terminal, Mermaid text, an SVG picture, CQL. Nothing is read or run."""

from __future__ import annotations

from collections.abc import Container

from sweeparea.cql.explain.mermaid import as_mermaid
from sweeparea.cql.explain.svg import as_svg
from sweeparea.cql.explain.text import as_cql
from sweeparea.cql.explain.tree import as_tree, table_names
from sweeparea.operators.plan.plan import Plan

FORMS = {"tree": as_tree, "mermaid": as_mermaid, "svg": as_svg, "cql": as_cql}

__all__ = ["FORMS", "explain", "table_names"]


def explain(plan: Plan, static: Container[str] = (), form: str = "tree") -> str:
    """How a plan will be run. ``static`` names the relations that never change: joins with them keep their other side's
    update pattern. ``form`` is one of ``FORMS``.
    """
    return FORMS[form](plan, static)
