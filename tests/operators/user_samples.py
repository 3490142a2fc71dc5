"""Objects that the tests of user-defined functions register."""

from __future__ import annotations

import pyarrow.compute as pc

from sweeparea.operators.user import aggregate, function, window


@function(returns="double")
def celsius(fahrenheit):
    return pc.call_function("divide", [pc.call_function("subtract", [fahrenheit, 32.0]), 1.8])


@function(returns="int64")
def misdeclared(values):
    return values


@aggregate(returns="array<struct<v:int>>")
def spread(values, weights):
    return []


@window(pattern="WK")
def hold_for(instants, lengths):
    return instants, pc.call_function("add", [instants, lengths])


@window(pattern="sometimes")
def odd(instants):
    return instants, instants


def plain(values):
    return values
