"""User-defined aggregates over lists: the order of the rows does not matter, and faults are told."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from sweeparea.infra.errors import DataError
from sweeparea.operators.user_code.user_aggregate import UserAggregate


def _lists(*groups: list) -> pa.Array:
    kind = pa.list_(pa.struct([("a0", pa.float64())]))
    return pa.array([[{"a0": v} for v in group] for group in groups], kind)


def test_rows_come_in_the_total_order():
    call = UserAggregate("all", lambda v: v.to_pylist(), pa.list_(pa.float64()))
    values = [None, -1.0, 0.5, 2.0]
    shuffled = values.copy()
    random.Random(1).shuffle(shuffled)
    assert call(_lists(shuffled, [], [3.0, 1.0])).to_pylist() == [values, [], [1.0, 3.0]]


@pytest.mark.parametrize("value", [2.5, np.float64(2.5), pa.scalar(2.5), pa.array([2.5]), None])
def test_any_form_of_one_value(value: object):
    call = UserAggregate("const", lambda v: value, pa.float64())
    assert call(_lists([1.0])).to_pylist() == [None if value is None else 2.5]


def test_faults_name_the_aggregate():
    with pytest.raises(DataError, match=r"pick failed: ZeroDivisionError"):
        UserAggregate("pick", lambda v: 1 // 0, pa.int64())(_lists([1.0]))
    with pytest.raises(DataError, match=r"pick gave a value that is no int64"):
        UserAggregate("pick", lambda v: "x", pa.int64())(_lists([1.0]))
    with pytest.raises(DataError, match=r"pick gave 2 values for one group"):
        UserAggregate("pick", lambda v: pa.array([1, 2]), pa.int64())(_lists([1.0]))
