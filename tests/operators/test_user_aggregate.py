"""User-defined aggregates over lists: the order of the rows does not matter, and faults are told."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sweeparea.infra.errors import DataError
from sweeparea.operators.user import UserCodeError, aggregate
from sweeparea.operators.user_code.state_trial import difference
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


def test_a_want_of_memory_is_no_fault_of_the_rows():
    def greedy(values):
        raise pa.ArrowMemoryError("malloc of size 640 failed")

    with pytest.raises(MemoryError):
        UserAggregate("greedy", greedy, pa.int64())(_lists([1.0]))


class Running:
    """The sum of whole numbers."""

    def __init__(self) -> None:
        self.total = self.count = 0

    def add(self, value: int | None) -> None:
        self.total += value or 0
        self.count += value is not None

    def remove(self, value: int | None) -> None:
        self.total -= value or 0
        self.count -= value is not None

    def merge(self, other: Running) -> None:
        self.total += other.total
        self.count += other.count

    def value(self) -> int | None:
        return self.total if self.count else None


class Forgetful(Running):
    def merge(self, other: Running) -> None:
        self.total += other.total


class Greatest(Running):
    """As if the greatest value that has ever been there were the greatest that is."""

    def __init__(self) -> None:
        super().__init__()
        self.most: int | None = None

    def add(self, value: int | None) -> None:
        self.most = value if self.most is None else self.most if value is None else max(value, self.most)

    def remove(self, value: int | None) -> None:
        pass

    def merge(self, other: Greatest) -> None:  # type: ignore[override]
        self.add(other.most)

    def value(self) -> int | None:
        return self.most


def _called(name: str, values: pa.Array) -> pa.Scalar:
    return pc.call_function(name, [values])


SUM, MOST = (partial(_called, name) for name in ("sum", "max"))


WHOLE = pa.int64()


def _kept_by(
    state: type, function: Callable[..., object] = SUM, returns: str = "bigint", of: pa.DataType = WHOLE
) -> str | None:
    code = aggregate(returns=returns, state=state)(function)
    return difference(UserAggregate("kept", code, of if returns == "double" else pa.int64()), [of])


def test_a_state_is_tried_on_random_rows():
    assert _kept_by(Running) is None
    assert _kept_by(Running, of=pa.int32()) is None
    for told in (_kept_by(Forgetful), _kept_by(Greatest, MOST), _kept_by(Running, returns="double", of=pa.float64())):
        assert told is not None
        assert told.startswith("its state gives ")
        assert " for the rows [" in told
        assert ", after " in told


@pytest.mark.parametrize(
    "of",
    [
        *[pa.bool_(), pa.int8(), pa.float32(), pa.decimal128(10, 2), pa.decimal128(38, 38), pa.string(), pa.binary()],
        *[pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.list_(pa.int32()), pa.null()],
        *[pa.struct([("a", pa.int32()), ("b", pa.string())]), pa.map_(pa.string(), pa.float64())],
    ],
)
def test_rows_of_any_type_are_tried(of: pa.DataType):
    class Rows(Running):
        def add(self, value: object) -> None:  # type: ignore[override]
            self.count += 1

        def remove(self, value: object) -> None:  # type: ignore[override]
            self.count -= 1

        def value(self) -> int:
            return self.count

    assert _kept_by(Rows, len, of=of) is None


def test_what_a_state_must_have():
    with pytest.raises(UserCodeError, match=r"state as a class with add, remove, merge, value; Counter has no add"):
        aggregate(returns="bigint", state=type("Counter", (), {"value": len}))
    with pytest.raises(DataError, match=r"kept failed: TypeError"):
        _kept_by(type("Broken", (Running,), {"add": lambda self: None}))
