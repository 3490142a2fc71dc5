"""The trial whether a class keeps a user's aggregate up to date.

Nobody can tell from a class that what it adds and removes amounts to what the aggregate's function says. So it is tried
on random rows, which come, go and are merged, the same ones each time: its values must be those of the function, bit
for bit, as published.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from sweeparea.operators.user_code.user_aggregate import UserAggregate
    from sweeparea.operators.user_code.user_state import UserState

_TRIALS = 150


def difference(aggregate: UserAggregate, types: Sequence[pa.DataType]) -> str | None:
    """Where the state of an aggregate gives another value than its function over arguments of these types, in words;
    None: it does not. DataError where one of them fails.
    """
    import pyarrow as pa

    from sweeparea.operators.values import keys

    rng = random.Random(f"{aggregate.name} {types}")
    kept, lists, told = [], [], []
    row_type = pa.struct([pa.field(f"a{i}", t) for i, t in enumerate(types)])
    for size in range(_TRIALS):
        given = [{f"a{i}": _random(rng, t) for i, t in enumerate(types)} for _ in range(size % 7)]
        # as rows of tables have them
        rows = [tuple(row.values()) for row in pa.array(given, row_type).to_pylist()]
        for bag, state, words in _tried(aggregate, rng, rows):
            kept.append(aggregate.value(state))
            lists.append([dict(zip((f.name for f in row_type), row, strict=True)) for row in bag])
            told.append(words)
    ours = aggregate.array(kept)
    plain = aggregate(pa.array(lists, pa.list_(row_type)))
    code, _ = keys.column_codes(pa.concat_arrays([ours, plain]))
    for i in range(len(kept)):
        if code[i] != code[i + len(kept)]:
            return (
                f"its state gives {ours[i].as_py()!r} and its function {plain[i].as_py()!r} for the rows "
                f"{[tuple(row.values()) for row in lists[i]]}, after {told[i]}"
            )
    return None


def _tried(
    aggregate: UserAggregate, rng: random.Random, rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[list[tuple[Any, ...]], UserState, str]]:
    """(the rows that are left, a state of these, how it has come about): of what is merged, and of what has been merged
    to it, which stays what it was.
    """
    bags: list[list[tuple[Any, ...]]] = [[], []]
    states, words = [aggregate.state(), aggregate.state()], list[str]()
    for row in rows:
        side = rng.choice((0, 0, 1))
        bags[side].append(row)
        aggregate.change(states[side], row, 1)
        words.append(f"add{row}")
        if rng.random() < 0.4:
            _taken(aggregate, rng, bags[side], states[side], words)
    bag, state = bags[0] + bags[1], aggregate.merged(*states)
    words.append("merge")
    while bag and rng.random() < 0.4:
        _taken(aggregate, rng, bag, state, words)
    yield bag, state, ", ".join(words)
    yield bags[1], states[1], f"{', '.join(words)} of the state that was merged to another"


def _taken(
    aggregate: UserAggregate, rng: random.Random, bag: list[tuple[Any, ...]], state: UserState, words: list[str]
) -> None:
    gone = bag.pop(rng.randrange(len(bag)))
    aggregate.change(state, gone, -1)
    words.append(f"remove{gone}")


_FLOATS = (0.0, 1.0, -2.5, 0.1, 0.2, 0.3, 1e16, -1e16, 1e-300, float("nan"), float("inf"), float("-inf"))


def _random(rng: random.Random, t: pa.DataType) -> Any:
    import pyarrow.types as pt

    if rng.random() < 0.15 or pt.is_null(t):
        return None
    if pt.is_boolean(t):
        return rng.random() < 0.5
    if pt.is_integer(t):
        return rng.choice((0, 1, 2, 3, -1, -7, rng.randint(-(1 << t.bit_width // 2), 1 << t.bit_width // 2)))
    if pt.is_floating(t):
        return rng.choice(_FLOATS if t.bit_width == 64 else _FLOATS[:6])
    if pt.is_decimal(t):
        digits = rng.choice((1, t.precision // 2, t.precision - 1)) or 1
        return Decimal(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-t.scale)
    if pt.is_date(t):
        return date(2024, 1, 1) + timedelta(days=rng.randint(-3, 3))
    if pt.is_timestamp(t):
        zone = None if t.tz is None else UTC
        return datetime(2024, 1, 1, tzinfo=zone) + timedelta(seconds=rng.randint(-3, 3))
    if pt.is_binary(t) or pt.is_large_binary(t):
        return rng.choice((b"", b"a", b"ab", b"\xff"))
    if pt.is_list(t) or pt.is_large_list(t):
        return [_random(rng, t.value_type) for _ in range(rng.randint(0, 2))]
    if pt.is_struct(t):
        return {t.field(i).name: _random(rng, t.field(i).type) for i in range(t.num_fields)}
    if pt.is_map(t):
        keys = {k for k in (_random(rng, t.key_type) for _ in range(2)) if k is not None}
        return [(k, _random(rng, t.item_type)) for k in keys]
    return rng.choice(("", "a", "b", "ab", "ä"))
