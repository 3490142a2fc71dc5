"""All kinds of nodes by name, with what plans are made of. What each of them says of itself: ``plan/node.py``."""

from sweeparea.operators.aggregates.call import AggregateCall
from sweeparea.operators.linear.generate import Generate
from sweeparea.operators.linear.one_row import OneRow
from sweeparea.operators.linear.project import Project
from sweeparea.operators.linear.scan import RelationScan, Scan, StreamScan
from sweeparea.operators.linear.select import Select
from sweeparea.operators.linear.union_all import UnionAll
from sweeparea.operators.ordered.analytic import Analytic, WindowFunction
from sweeparea.operators.ordered.framed import Framed
from sweeparea.operators.ordered.navigation import Navigation
from sweeparea.operators.ordered.top_k import TopK
from sweeparea.operators.plan.node import Node
from sweeparea.operators.plan.plan import Constraint, Expectation, Plan, UserFunction
from sweeparea.operators.sql.expressions import Column, Expr, SortKey
from sweeparea.operators.sweeps.aggregate import Aggregate
from sweeparea.operators.sweeps.difference import Difference
from sweeparea.operators.sweeps.enrich import Enrich
from sweeparea.operators.sweeps.intersect import Intersect
from sweeparea.operators.sweeps.join import Join
from sweeparea.operators.sweeps.relation_to_stream import RelationToStream
from sweeparea.operators.sweeps.set_operation import SetOperation
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.windows.window import Window

__all__ = [
    "Aggregate",
    "AggregateCall",
    "Analytic",
    "Column",
    "Constraint",
    "Difference",
    "Enrich",
    "Expectation",
    "Expr",
    "Framed",
    "Generate",
    "Intersect",
    "Join",
    "Navigation",
    "Node",
    "OneRow",
    "Plan",
    "Project",
    "RelationScan",
    "RelationToStream",
    "Scan",
    "Select",
    "SetOperation",
    "SortKey",
    "StreamScan",
    "TimeDomain",
    "TopK",
    "UnionAll",
    "UserFunction",
    "Window",
    "WindowFunction",
]
