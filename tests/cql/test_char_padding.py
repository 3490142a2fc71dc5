"""Comparisons with CHAR columns mean what they mean in Spark, wherever they stand and the columns come from."""

from __future__ import annotations

import json
import re

import pytest

from sweeparea.cql.binding.binder import bind_select
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.text.errors import RefusedError
from tests.cql import char_tables
from tests.cql.plan_oracle import Table, evaluate


def _inputs() -> dict[str, InputSchema]:
    found = {}
    for name, declared in char_tables.DECLARED.items():
        columns = tuple((c, re.sub(r"(var)?char\(\d+\)", "string", kind)) for c, kind in declared.items())
        chars = tuple((c, kind) for c, kind in declared.items() if re.search(r"\bchar\(", kind))
        found[name] = InputSchema(name, SchemaKind.RELATION, columns, chars=chars)
    return found


INPUTS = _inputs()
TABLES = {n: Table(tuple(char_tables.DECLARED[n]), rows) for n, rows in char_tables.read().items()}
ANSWERS = char_tables.answers()


def rows_of(text: str) -> list[list[object]]:
    found = evaluate(bind_select(text, INPUTS).root, TABLES)
    return sorted((char_tables.plain(row) for row in found.elements()), key=repr)


@pytest.mark.parametrize("table", ["s", "n"])
def test_conditions_over_char_columns_are_those_of_spark(table: str) -> None:
    wanted: dict[str, list[object]] = ANSWERS[f"conditions of {table}"]
    plain = [c for c in wanted if "(SELECT" not in c]
    found = {}
    for some in [plain, *([c] for c in wanted if "(SELECT" in c)]:
        outputs = ", ".join(f"({c}) AS b{i}" for i, c in enumerate(some))
        rows = sorted(rows_of(f"SELECT t, {outputs} FROM {table}"))
        found |= {c: [row[i] for row in rows] for i, c in enumerate(some, 1)}
    assert {c: v for c, v in found.items() if json.dumps(v) != json.dumps(wanted[c])} == {}


def test_queries_over_char_columns_give_the_rows_of_spark() -> None:
    found = {text: rows_of(text) for text in ANSWERS["queries"]}
    assert {q: v for q, v in found.items() if json.dumps(v) != json.dumps(ANSWERS["queries"][q])} == {}


def test_a_result_has_the_lengths_of_its_columns() -> None:
    text = "SELECT c AS e, d, ar, upper(c) AS u, c AS e FROM s UNION ALL SELECT s, s, ar8, s, c FROM s"
    chars = (("e", "char(5)"), ("d", "char(8)"), ("ar", "array<char(5)>"), ("e_1", "char(5)"))
    plan = bind_select(text, INPUTS)
    assert plan.chars == tuple(
        (c.label, k) for c, (_, k) in zip([plan.root.columns[i] for i in (0, 1, 2, 4)], chars, strict=True)
    )
    derived = InputSchema(
        "q", SchemaKind.RELATION, tuple((c.label, c.type) for c in plan.root.columns), chars=plan.chars
    )
    assert "'ab   '" in repr(
        bind_select("SELECT e FROM q JOIN s ON q.e = s.c WHERE e = 'ab'", {**INPUTS, "q": derived}).root
    )


def test_a_constant_whose_type_is_unknown_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"split\('ab,c', ','\)\[0\] is compared with a column of CHAR\(n\)"):
        bind_select("SELECT t FROM s WHERE c = split('ab,c', ',')[0]", INPUTS)
    sql = repr(bind_select("SELECT t FROM s WHERE c = CAST(split('ab,c', ',')[0] AS STRING)", INPUTS).root)
    assert "rpad(CAST(split('ab,c', ',')[0] AS STRING), greatest(5, length(" in sql
