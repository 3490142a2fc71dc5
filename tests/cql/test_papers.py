"""The queries of the papers, of the Stream Query Repository and of Linear Road, as they are spelled there: each parses
and binds, and ``docs/papers.md`` says as what.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sweeparea.cql.binding.binder import bind
from sweeparea.cql.binding.scope.inputs import InputSchema, SchemaKind
from sweeparea.cql.syntax.parser import parse_text, read_file
from sweeparea.cql.syntax.statements import CreateQuery, CreateRelation, CreateStream
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Plan
from sweeparea.operators.time.domain import TimeDomain, TimeKind

FOLDER = Path(__file__).parent / "papers"
TABLE = Path(__file__).parents[2] / "docs" / "papers.md"


def declared(statement: CreateStream | CreateRelation) -> InputSchema:
    """An input from the SCHEMA of its declaration."""
    types = dict(statement.source.schema)
    if isinstance(statement, CreateRelation):
        static = statement.contents == "static"
        return InputSchema(
            statement.name, SchemaKind.RELATION, tuple(types.items()), static=static, retroactive=statement.retroactive
        )
    time = TimeDomain() if types[statement.timestamp_by] == "bigint" else TimeDomain(TimeKind.TIMESTAMP, 1_000_000)
    return InputSchema(statement.name, SchemaKind.STREAM, tuple(types.items()), time, sequence_by=statement.sequence_by)


@cache
def application(file: str) -> tuple[dict[str, InputSchema], dict[str, Plan | SweepAreaError]]:
    """The inputs of a file, and what each of its queries becomes: queries read the sources and the queries before."""
    statements = parse_text(read_file(FOLDER / file), file)
    inputs = {s.name: declared(s) for s in statements if isinstance(s, CreateStream | CreateRelation)}
    [time] = {s.time for s in inputs.values() if s.kind == SchemaKind.STREAM}
    inputs = {name: replace(schema, time=time) for name, schema in inputs.items()}
    found: dict[str, Plan | SweepAreaError] = {}
    for statement in statements:
        if isinstance(statement, CreateQuery):
            try:
                plan = found[statement.name] = bind(statement, inputs, {"rewrites": "projection_pruning"})
            except SweepAreaError as error:
                found[statement.name] = error
                continue
            columns = tuple((c.label, c.type) for c in plan.root.columns)
            kind = SchemaKind.STREAM if plan.stream else SchemaKind.RELATION
            inputs[statement.name] = InputSchema(statement.name, kind, columns, plan.time, derived=True)
    return inputs, found


def bound(file: str) -> dict[str, Plan | SweepAreaError]:
    return application(file)[1]


def schemas(file: str) -> dict[str, InputSchema]:
    return application(file)[0]


def files() -> list[str]:
    return sorted(path.name for path in FOLDER.glob("*.cql"))


@pytest.mark.parametrize("file", files())
def test_queries_bind(file: str) -> None:
    wrong = {n: r for n, r in bound(file).items() if isinstance(r, SweepAreaError)}
    assert not wrong, "\n".join(str(r) for r in wrong.values())


def test_the_table_of_the_documentation_is_true() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([a-z ]+) \|", TABLE.read_text(), re.MULTILINE))
    results = {n: r for f in files() for n, r in bound(f).items()}
    actual = {n: "not bound" if isinstance(r, SweepAreaError) else r.stream or "relation" for n, r in results.items()}
    assert rows == actual
