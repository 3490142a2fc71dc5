"""Equality and total order of values of every type, against Python comparisons of plain values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeparea.operators.kernels import key_hash
from sweeparea.operators.values import keys, order, shared_rows

FLOATS = st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, 5e-324]) | st.floats()
SCALARS: list[tuple[pa.DataType, st.SearchStrategy]] = [
    (pa.int8(), st.integers(-3, 3)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), FLOATS),
    (pa.float32(), st.sampled_from([0.0, -0.0, math.nan, 1.5, -math.inf]) | st.floats(width=32)),
    (pa.decimal128(38, 3), st.decimals(-(10**10), 10**10, places=3)),
    (pa.string(), st.sampled_from(["", "a", "ab", "Z", "é", "￿", "\U0001f600"]) | st.text(max_size=3)),
    (pa.binary(), st.sampled_from([b"", b"\x00", b"\xff", b"\x7f"]) | st.binary(max_size=3)),
    (pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    (
        pa.timestamp("us", tz="UTC"),
        st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)),
    ),
    (pa.timestamp("us"), st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))),
    (pa.null(), st.none()),
]


def nested(leaf: tuple[pa.DataType, st.SearchStrategy]):
    t, values = leaf
    opt = st.none() | values
    yield pa.list_(t), st.lists(opt, max_size=3)
    yield (
        pa.struct([("x", t), ("y", pa.int32())]),
        st.fixed_dictionaries({"x": opt, "y": st.none() | st.integers(0, 2)}),
    )
    yield (
        pa.map_(pa.string(), t),
        st.dictionaries(st.sampled_from("abc"), opt, max_size=3).map(lambda d: list(d.items())),
    )
    yield pa.list_(pa.list_(t)), st.lists(st.none() | st.lists(opt, max_size=2), max_size=2)
    entries = st.dictionaries(values, opt, max_size=2).map(lambda d: list(d.items()))
    yield pa.list_(pa.map_(t, t)), st.lists(entries, max_size=2)


TYPES = SCALARS + [n for leaf in (SCALARS[3], SCALARS[6], SCALARS[5], SCALARS[0]) for n in nested(leaf)]


def sort_key(value, t: pa.DataType):
    """A Python tuple that compares as the total order does."""
    if value is None:
        return (0,)
    if pa.types.is_floating(t):
        return (1, 1, 0.0) if math.isnan(value) else (1, 0, value + 0.0)
    if pa.types.is_string(t):
        return (1, value.encode())
    if pa.types.is_struct(t):
        return (1, *(sort_key(value[t.field(i).name], t.field(i).type) for i in range(t.num_fields)))
    if pa.types.is_map(t):
        return (1, tuple(sorted((sort_key(k, t.key_type), sort_key(v, t.item_type)) for k, v in value)))
    if pa.types.is_list(t):
        return (1, tuple(sort_key(v, t.value_type) for v in value))
    return (1, value)


@st.composite
def columns(draw):
    t, values = draw(st.sampled_from(TYPES))
    items = draw(st.lists(st.none() | values, max_size=12))
    if pa.types.is_map(t) or "map" in str(t):
        # -0.0 and 0.0, or two NaN, as keys of one map are not a map's keys
        items = [v for v in items if _distinct_keys(v, t)]
    array = pa.array(items, t)
    k = draw(st.integers(0, len(items)))
    if draw(st.booleans()):  # chunks, and offsets into a parent
        array = pa.chunked_array([array.slice(0, k), array.slice(k)], type=t)
        return items, t, array
    return items[k:], t, array.slice(k)


def _distinct_keys(value, t):
    if value is None:
        return True
    if pa.types.is_map(t):
        seen = [sort_key(k, t.key_type) for k, _ in value]
        return len(set(seen)) == len(seen)
    return all(_distinct_keys(v, t.value_type) for v in value) if pa.types.is_list(t) else True


@settings(max_examples=250, deadline=None)
@given(columns())
def test_codes_ranks_and_canonical_values(column):
    items, t, array = column
    expected = [sort_key(v, t) for v in items]
    distinct = sorted(set(expected))
    codes, k = keys.codes([array])
    assert k == len(distinct)
    assert set(codes.tolist()) == set(range(k))
    assert len({(c, e) for c, e in zip(codes.tolist(), expected, strict=True)}) == k
    ranks, count = order.column_ranks(array)
    assert ranks.tolist() == [distinct.index(e) for e in expected]
    assert count == len(distinct)
    canonical = keys.canonical(pa.table({"c": array})).column("c")
    assert canonical.type == t
    canonical.validate(full=True)
    got = canonical.to_pylist()
    assert [sort_key(v, t) for v in got] == expected
    by_value: dict = {}
    for e, v in zip(expected, got, strict=True):
        assert by_value.setdefault(e, repr(v)) == repr(v)  # one form per value: no -0.0, map entries sorted
    assert keys.canonical(pa.table({"c": canonical})).column("c").to_pylist().__repr__() == got.__repr__()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.none() | st.integers(0, 2), st.sampled_from([None, "a", "b"]), FLOATS), max_size=15))
def test_several_columns(rows):
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
    table = pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in rows], schema)
    expected = [tuple(sort_key(v, f.type) for v, f in zip(r, schema, strict=True)) for r in rows]
    codes, k = keys.codes(table.columns)
    assert k == len(set(expected)) == len(set(zip(codes.tolist(), expected, strict=True)))
    indices = order.record_sort_indices(table, schema.names)
    assert [expected[i] for i in indices] == sorted(expected)
    ranks, count = order.record_ranks(table, schema.names)
    assert ranks.tolist() == [sorted(set(expected)).index(e) for e in expected]
    assert count == k


def test_one_nan_one_zero():
    odd = np.array([0x7FF8000000000001, -0x7FFFFFFFFFFFF, 0x7FF8 << 48, -(1 << 63), 0], np.int64).view(np.float64)
    array = pa.array(odd)
    assert keys.codes([array])[0].tolist() == [0, 0, 0, 1, 1]
    bits = keys.canonical_array(array).to_numpy(zero_copy_only=False).view(np.int64)
    assert bits.tolist() == [0x7FF8 << 48] * 3 + [0, 0]


def test_pairs_too_many_for_one_product():
    wide = [pa.array(np.arange(5000) % m) for m in (4999, 4998, 4997, 4996, 4995, 4994)]
    codes, k = keys.codes([*wide, *wide])
    assert k == 5000
    assert codes.tolist() == list(range(5000))


def test_dictionaries_and_decimals():
    assert keys.codes([pa.array(["b", "a", "b", None]).dictionary_encode()])[0].tolist() == [0, 1, 0, 2]
    values = [Decimal("1.0"), Decimal("-1.0"), None, Decimal(10**30)]
    assert order.column_ranks(pa.array(values, pa.decimal128(38, 1)))[0].tolist() == [2, 1, 0, 3]


@pytest.mark.parametrize("distinct", [1, 2, 40, 1000])
@pytest.mark.parametrize("how", ["plain", "shared", "beside"])
def test_columns_are_numbered_by_appearance_however_many_are_looked_at(distinct: int, how: str):
    """Columns of which the first ones tell most rows apart, some, or none; also where records come several times."""
    chance = np.random.default_rng(distinct)
    size = 600
    drawn = {
        "s": pa.array([None if v == 0 else f"s{v % 7}" for v in chance.integers(0, 50, size)]),
        "i": pa.array(chance.integers(0, distinct, size)),
        "f": pa.array(chance.choice([0.0, 1.5, math.nan], size)),
        "l": pa.array([[int(v)] for v in chance.integers(0, 3, size)]),
        "b": pa.array(chance.integers(0, 2, size), mask=chance.random(size) < 0.2),
    }
    rows = records = pa.table(drawn)
    if how != "plain":
        places = chance.integers(0, size // 2, size)
        rows, records = shared_rows.shared(records, places), records.take(pa.array(places))
        assert {str(f.type) for f in rows.schema if pa.types.is_dictionary(f.type)}
    if how == "beside":
        more = pa.array(chance.integers(0, 3, size))
        rows, records = rows.append_column("n", more), records.append_column("n", more)
    assert repr(shared_rows.plain(rows).to_pylist()) == repr(records.to_pylist())
    at = chance.integers(0, size, 50)
    assert repr(shared_rows.taken(rows, at).to_pylist()) == repr(records.take(pa.array(at)).to_pylist())
    codes, count = keys.codes(rows.columns)
    known: dict[str, int] = {}
    wanted = [known.setdefault(repr(row), len(known)) for row in records.to_pylist()]
    assert codes.tolist() == wanted
    assert count == len(known)


@pytest.mark.parametrize("kind", [t for t, _ in SCALARS if not pa.types.is_null(t)])
def test_all_flat_types_are_shared(kind: pa.DataType):
    records = pa.table({"c": pa.nulls(3, kind), "n": [1, 2, 3]})
    rows = shared_rows.shared(records, np.array([2, 0, 2]))
    assert pa.types.is_dictionary(rows.schema.field("c").type)
    found = shared_rows.conform(rows, records.schema).combine_chunks()
    assert shared_rows.places_of(found.columns) is not None
    assert shared_rows.plain(found).equals(records.take(pa.array([2, 0, 2])))
    other = shared_rows.conform(rows, pa.schema([("n", pa.int32()), ("c", kind)]))
    assert other.column("n").to_pylist() == [3, 1, 3]


def test_columns_with_places_of_their_own():
    one, other = (shared_rows.shared(pa.table({"c": ["a", "b"]}), np.array(at)) for at in ([0, 0, 1], [0, 1, 1]))
    assert shared_rows.places_of([one.column("c"), other.column("c")]) is None
    assert keys.codes([one.column("c"), other.column("c")])[0].tolist() == [0, 1, 2]
    both = pa.table([one.column("c"), other.column("c")], names=["c", "d"])
    assert shared_rows.taken(both, np.array([1])).to_pylist() == [{"c": "a", "d": "b"}]


def _hash_of(text: bytes) -> int:
    """The hash of bytes by its definition: words of eight bytes, the first one lowest, mixed as splitmix64 does."""
    mask, prime = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def mixed(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    h = len(text) * prime & mask
    for at in range(0, len(text), 8):
        h = mixed((h ^ int.from_bytes(text[at : at + 8], "little")) * prime & mask)
    return mixed(h)


def test_hashes_of_bytes_never_change():
    chance = np.random.default_rng(0)
    texts = [chance.bytes(length) for length in [*range(26), 250] for _ in range(3)] + [b"\xff" * 16, b"\x80" * 9]
    offsets = np.append(0, np.cumsum([len(text) for text in texts]))
    found = key_hash.hash_bytes(np.frombuffer(b"".join(texts), np.uint8), offsets)
    assert found.tolist() == [_hash_of(text) for text in texts]


def test_no_columns_have_no_codes():
    with pytest.raises(ValueError, match="no columns"):
        keys.codes([])


@pytest.mark.parametrize("distinct", [1, 3, 3000, 70_000])
@pytest.mark.parametrize("nulls", [False, True])
def test_many_codes_are_numbered_by_appearance(distinct: int, nulls: bool):
    chance = np.random.default_rng(distinct)
    words = chance.integers(-(2**63), 2**63 - 1, distinct)[chance.integers(0, distinct, 100_000)]
    column = pa.array(words, mask=chance.random(100_000) < 0.1 if nulls else None)
    codes, count = keys.column_codes(column)
    wanted = column.dictionary_encode(null_encoding="encode")
    assert count == len(wanted.dictionary)
    assert np.array_equal(codes, wanted.indices.to_numpy(zero_copy_only=False))
