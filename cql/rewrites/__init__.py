"""Rewrites of logical plans: small named rules that leave every instant's contents as they are (law S4).

One family a file; ``driver.py`` applies them. A rule says the paper and section that it comes from and its condition.
"""

from sweeparea.cql.rewrites.conditions import conjunction
from sweeparea.cql.rewrites.driver import NAMES, optimize
from sweeparea.cql.rewrites.rule import MeasuredInput, Rewriting, Rule
from sweeparea.cql.rewrites.selection import push_selection
from sweeparea.cql.rewrites.sharing import Shared, choose, hidden_query, share_between, take

__all__ = [
    "NAMES",
    "MeasuredInput",
    "Rewriting",
    "Rule",
    "Shared",
    "choose",
    "conjunction",
    "hidden_query",
    "optimize",
    "push_selection",
    "share_between",
    "take",
]
