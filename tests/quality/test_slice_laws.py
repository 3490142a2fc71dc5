"""Laws between the tables of a slice: what a sweep makes obeys them, and each of them is broken on purpose."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweeparea.operators import bridge
from sweeparea.operators.plan.plan import Constraint
from sweeparea.operators.sql.expressions import Expr
from sweeparea.operators.sweeps.quarantine import BROKEN
from sweeparea.operators.sweeps.relation_to_stream import MaterializeSpec, sweep
from sweeparea.operators.values import keys
from sweeparea.operators.values.bag import BAG
from sweeparea.operators.values.columns import BAG_FIELDS, as_bag
from sweeparea.quality import counts, slice_laws, suites, verdict
from sweeparea.quality.slice_laws import BOTH, INTERVALS, R1, STATE, TYPES, SliceLaws

RECORD = {"k": pa.string(), "v": pa.float64()}
SCHEMAS = {
    **{key: pa.schema([*RECORD.items(), ("ts", pa.int64())]) for key in ("istream", "dstream")},
    **{
        key: pa.schema([*RECORD.items(), ("valid_from", pa.int64()), ("valid_to", pa.int64())])
        for key in ("closed", "open")
    },
}
SPEC = MaterializeSpec(("k", "v"), istream=True, dstream=True, relation=True)
Tables = dict[str, pa.Table]


def staged(seed: int, h0: int, h1: int) -> tuple[Tables, pa.Table]:
    """What a slice of a random bag stages, and what it carries."""
    chance = random.Random(seed)
    starts = [chance.randint(1, 30) for _ in range(60)]
    values = [[chance.choice("ab") for _ in starts], [chance.choice([0.0, 1.5, float("nan"), None]) for _ in starts]]
    record = pa.table([pa.array(v, t) for v, t in zip(values, RECORD.values(), strict=True)], names=list(RECORD))
    bag = as_bag(
        record, *(keys.int64_of(pa.array(x)) for x in (starts, [s + chance.randint(1, 20) for s in starts], [1] * 60))
    )
    carry = bag.slice(0, 0)
    for low, high in ((0, h0), (h0, h1)):
        new = bag.filter(pa.array([low < s <= high for s in starts]))
        out = sweep(pa.concat_tables([carry, new]), SPEC, low, high)
        carry = out.carry.select([*RECORD, *BAG]).cast(bag.schema)
    opened = out.opened.filter(pa.array([t > h0 for t in out.opened.column("__from").to_pylist()]))
    opened = opened.append_column("valid_to", pa.nulls(opened.num_rows, pa.int64()))
    tables = {"istream": out.istream, "dstream": out.dstream, "closed": out.closed, "open": opened}
    return {key: rows.rename_columns(SCHEMAS[key].names) for key, rows in tables.items()}, carry


def broken(tables: Tables, carry: pa.Table, h0: int, h1: int) -> set[str]:
    """The laws that do not hold, as Great Expectations judges the counts of two workers."""
    laws = SliceLaws(2, h0, h1, SCHEMAS, levels=True)
    none = {key: rows.slice(0, 0) for key, rows in tables.items()}
    checks, found = slice_laws.of_slice([laws(tables, carry), laws(none, carry.slice(0, 0))])
    (judged,) = verdict.of_counts([verdict.Counted("q", checks, found, 1)])
    assert judged.ok == (not judged.failures)
    return {r["id"] for r in judged.failures}


@pytest.mark.parametrize("seed", range(6))
def test_what_a_sweep_stages_obeys_all_laws(seed: int):
    tables, carry = staged(seed, 10, 25)
    assert all(rows.num_rows for rows in tables.values())
    assert broken(tables, carry, 10, 25) == set()


def test_events_may_be_spread_over_workers():
    tables, carry = staged(1, 10, 25)
    laws = SliceLaws(2, 10, 25, SCHEMAS, levels=True)
    parts = [
        {key: rows if i == n else rows.slice(0, 0) for i, (key, rows) in enumerate(tables.items())} for n in range(4)
    ]
    _, found = slice_laws.of_slice([laws(part, carry) for part in parts])
    assert found[R1] == 0


def other(table: pa.Table, column: str, change: Callable[[list], list]) -> pa.Table:
    at = table.column_names.index(column)
    field = table.schema.field(column)
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return table.set_column(at, column, pa.array(change(table.column(column).to_pylist()), kind))


FAULTS: dict[str, tuple[str, Callable[[Tables], Tables]]] = {
    "an element is lost": (R1, lambda t: {**t, "istream": t["istream"].slice(1)}),
    "an element comes twice": (
        R1, lambda t: {**t, "dstream": pa.concat_tables([t["dstream"], t["dstream"].slice(0, 1)])},
    ),
    "an element has another value": (R1, lambda t: {**t, "istream": other(t["istream"], "v", lambda v: [7.0, *v[1:]])}),
    "an element has another instant": (
        R1, lambda t: {**t, "istream": other(t["istream"], "ts", lambda v: [v[0] + 1, *v[1:]])},
    ),
    "two elements have changed places": (
        R1, lambda t: {**t, "istream": other(t["istream"], "ts", lambda v: [v[-1], *v[1:-1], v[0]])},
    ),
    "a row of the relation ends later": (
        R1, lambda t: {**t, "closed": other(t["closed"], "valid_to", lambda v: [v[0] + 40, *v[1:]])},
    ),
    "a row that opened is lost": (R1, lambda t: {**t, "open": t["open"].slice(1)}),
    "a value comes and goes at once": (
        BOTH,
        lambda t: {
            **t,
            "istream": pa.concat_tables([t["istream"], t["dstream"].slice(0, 1)], promote_options="permissive"),
        },
    ),
    "an interval is cut in two": (
        INTERVALS["closed"],
        lambda t: {
            **t,
            "closed": pa.concat_tables([
                other(t["closed"], "valid_from", lambda v: [100, *v[1:]]),
                other(t["closed"].slice(0, 1), "valid_to", lambda v: [100]),
            ]),
        },
    ),
    "a column has another type": (TYPES, lambda t: {**t, "open": other(t["open"], "k", lambda v: v).cast(
        pa.schema([("k", pa.large_string()), *list(t["open"].schema)[1:]]))}),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_law_is_noticed_where_it_is_broken(fault: str):
    law, change = FAULTS[fault]
    tables, carry = staged(3, 10, 25)
    plain = {
        key: pa.table([c.cast(f.type) for c, f in zip(rows.columns, SCHEMAS[key], strict=True)], schema=SCHEMAS[key])
        for key, rows in tables.items()
    }
    assert law not in broken(plain, carry, 10, 25)
    assert law in broken(change(plain), carry, 10, 25)


@pytest.mark.parametrize("levels", [True, False])
def test_what_is_over_is_not_carried(levels: bool):
    tables, carry = staged(3, 10, 25)
    over = other(other(carry, "__ts", lambda v: [26] * len(v)), "__te", lambda v: [25, *v[1:]])
    for rows, wrong in ((over, 1), (other(carry, "__ts", lambda v: [26] * len(v)), 0)):
        assert SliceLaws(2, 10, 25, SCHEMAS, levels)(tables, rows)[STATE] == wrong
    held = other(carry, "__ts", lambda v: [20, *[26] * (len(v) - 1)])
    assert SliceLaws(2, 10, 25, SCHEMAS, levels)(tables, held)[STATE] == (0 if levels else 1)


def test_a_worker_stages_what_is_kept_out_beside_the_result_and_tells_of_laws(tmp_path):
    constraints = [
        Constraint("small", Expr("c0 < 2"), "quarantine"),
        Constraint("usual", Expr("c0 < 1"), "warn"),
    ]
    kept_out = suites.quarantine(constraints)
    instants = [("valid_from", pa.int64()), ("valid_to", pa.int64())]
    relation = pa.schema([("v", pa.int64()), *instants])
    quarantine = pa.schema([("v", pa.int64()), ("__constraint", pa.string()), ("__reason", pa.string()), *instants])
    stream = pa.schema([("v", pa.int64()), ("ts", pa.int64())])
    schemas = {
        "closed": relation, "open": relation, "istream": stream, "dstream": stream,
        "quarantine_closed": quarantine, "quarantine_open": quarantine,
    }  # fmt: skip
    checks = {
        key: suites.stream_checks(["v"], 0, 6, constraints)
        if "ts" in schema.names
        else suites.relation_checks(schema.names[:-2], 0, 6, () if "__reason" in schema.names else constraints)
        for key, schema in schemas.items()
    }
    given = pa.schema([("c0", pa.int64()), (BROKEN, pa.string()), *BAG_FIELDS])
    task = bridge.MaterializeTask(
        MaterializeSpec(("c0",), istream=True, dstream=True, relation=True, checks=(BROKEN,)), 0, 6, 0, given,
        {key: bridge.Target(str(tmp_path), schema, key) for key, schema in schemas.items()},
        {
            key: partial(
                counts.counted_staged,
                checks=checks[key],
                constraints=() if key.startswith("quarantine") else constraints,
                since=0,
            )
            for key in schemas
        },
        {"c0": "v"}, "attempt", None, quarantine=kept_out, laws=SliceLaws(1, 0, 6, schemas, levels=True),
    )  # fmt: skip
    tokens = {
        0: "",
        1: suites.violated(constraints[1]),
        5: suites.violated(constraints[0]),
        7: suites.uncomputed(constraints[0]),
    }
    rows = [(0, 1, 4, 1), (1, 2, 9, 2), (5, 1, 3, 1), (5, 4, 99, 2), (7, 2, 5, 1)]
    columns = [[r[0] for r in rows], [tokens[r[0]] for r in rows], *([r[i] for r in rows] for i in (1, 2, 3))]
    batch = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, given, strict=True)], schema=given)
    lines = {line["target"]: line for made in task(iter([batch])) for line in made.to_pylist()}

    def staged_rows(key: str) -> list[tuple]:
        return sorted(tuple(row.values()) for row in pq.read_table(tmp_path / lines[key]["path"]).to_pylist())

    assert staged_rows("istream") == [(0, 1), (1, 2), (1, 2)]
    assert staged_rows("dstream") == [(0, 4)]
    assert staged_rows("closed") == [(0, 1, 4)]
    assert staged_rows("open") == [(1, 2, None), (1, 2, None)]
    why = "constraint small is violated: c0 < 2"
    assert staged_rows("quarantine_closed") == [
        (5, "small", why, 1, 3),
        (7, "small", "constraint small cannot be computed for this row: c0 < 2", 2, 5),
    ]
    assert staged_rows("quarantine_open") == [(5, "small", why, 4, None)] * 2
    assert not any(json.loads(lines["slice"]["broken"]).values())
    assert json.loads(lines["open"]["broken"])["constraint:usual"] == 2
    found = {
        key: {k: n for k, n in json.loads(lines[key]["broken"]).items() if k.startswith("law") and n} for key in schemas
    }
    assert not any(found.values())
