"""Expectations over several rows, checked against what they judge: names, arguments, columns, units.

Names and arguments are those of ``cql/functions/expectations.json``, so that nothing here needs Great Expectations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from sweeparea.cql.functions import expectations as of_gx
from sweeparea.cql.syntax.statements import ExpectationKind, ExpectationSpec
from sweeparea.cql.text.errors import BindError, CqlError, ParseError, Place, RefusedError, TypeError_, listing, nearest
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import Expectation
from sweeparea.operators.time.domain import TimeDomain, TimeKind

_NAMES = (of_gx.COLUMN, of_gx.COLUMNS)


def bind_expectations(
    specs: Iterable[ExpectationSpec], columns: Sequence[str], time: TimeDomain, of_query: bool
) -> tuple[list[Expectation], list[SweepAreaError]]:
    """The expectations over ``columns`` (a result's, or a source's), and all that is wrong with them."""
    found: list[Expectation] = []
    faults: list[SweepAreaError] = []
    for spec in specs:
        own: list[CqlError] = []
        bound = _bound(spec, columns, time, of_query, own)
        faults += own
        if not own and bound is not None:
            found.append(bound)
    return found, faults


def _bound(
    spec: ExpectationSpec, columns: Sequence[str], time: TimeDomain, of_query: bool, faults: list[CqlError]
) -> Expectation | None:
    what = f"constraint {spec.name}"
    per: int | None = None
    if spec.per is not None:
        try:
            per = spec.per.in_ticks(time, f"{what}: PER")
        except CqlError as error:
            faults.append(error)
    arguments: tuple[tuple[str, object], ...] = spec.arguments
    match spec.kind:
        case ExpectationKind.GX:
            arguments = _of_gx(spec, what, columns, faults)
        case ExpectationKind.FRESH:
            faults += _fresh_faults(spec, what, time, of_query)
        case ExpectationKind.VOLUME:
            if "deviations" in dict(spec.arguments) and spec.per is None:
                faults.append(
                    ParseError(
                        f"{what}: commits differ in length, so they have no usual volume",
                        spec.place,
                        "Say of which unit of time: VOLUME WITHIN 3 DEVIATIONS OF LAST 28 PER INTERVAL 1 DAY",
                    )
                )
        case ExpectationKind.REFERENCES:
            arguments = _references(spec, what, columns, faults)
    if faults:
        return None
    return Expectation(spec.name, spec.kind.value, spec.expectation, arguments, spec.on_violation, per)


def _of_gx(
    spec: ExpectationSpec, what: str, columns: Sequence[str], faults: list[CqlError]
) -> tuple[tuple[str, object], ...]:
    """The arguments as Great Expectations spells them, columns as the table does."""
    known = of_gx.known()
    wanted = known.expectations.get(spec.expectation)
    if spec.expectation in known.refused:
        hint = "Write a condition on a row, EXPECT (..), or another expectation"
        faults.append(
            RefusedError(
                f"{what}: {spec.expectation} is not offered: {known.refused[spec.expectation]}", spec.place, hint
            )
        )
        return ()
    if wanted is None:
        hint = nearest(spec.expectation, known.expectations) or f"There are {listing(known.expectations, 6)}"
        faults.append(
            BindError(f"{what}: Great Expectations {known.version} has no {spec.expectation}", spec.place, hint)
        )
        return ()
    found: list[tuple[str, object]] = []
    for name, value in spec.arguments:
        at = spec.argument_places.get(name, spec.place)
        argument = wanted.get(name.lower())
        if argument is None:
            hint = nearest(name, wanted) or f"It takes {listing(a.name for a in wanted.values())}"
            faults.append(BindError(f"{what}: {spec.expectation} has no argument {name}", at, hint))
            continue
        fault = _misfit(argument, value)
        if fault is not None:
            faults.append(TypeError_(f"{what}: {argument.name} is {fault}", at, _example(argument)))
            continue
        if argument.kind in _NAMES:
            value = _columns(value, columns, what, at, faults)
        found.append((argument.name, value))
    given = {name.lower() for name, _ in spec.arguments}
    missing = [a.name for key, a in wanted.items() if a.required and key not in given]
    if missing:
        faults.append(
            ParseError(
                f"{what}: {spec.expectation} needs {listing(missing)}",
                spec.place,
                f"Write {missing[0]} => {_example(wanted[missing[0].lower()]).removeprefix('Write ') or '..'}",
            )
        )
    return tuple(found)


def _misfit(argument: of_gx.ExpectationArgument, value: object) -> str | None:
    """Why a value is none for an argument, or None."""
    kind = argument.kind
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None:
        return "needed, not NULL" if argument.required else None
    if argument.choices:
        return None if value in argument.choices else f"{' or '.join(argument.choices)}, not {value!r}"
    match kind:
        case of_gx.COLUMN:
            return None if isinstance(value, str) else "the name of a column, in quotes"
        case of_gx.COLUMNS:
            texts = isinstance(value, tuple) and all(isinstance(v, str) for v in value)  # pyright: ignore[reportUnknownVariableType]
            return None if texts and value else "a list of columns"
        case of_gx.NUMBER:
            return None if number else f"a number, not {value!r}"
        case of_gx.VALUE:
            return None if number or isinstance(value, str) else f"a number or an instant, not {value!r}"
        case of_gx.BOOLEAN:
            return None if isinstance(value, bool) else f"TRUE or FALSE, not {value!r}"
        case of_gx.LIST:
            return None if isinstance(value, tuple) else "a list"
        case of_gx.TEXT:
            return None if isinstance(value, str) else f"a text, not {value!r}"
        case _:
            return _no_json(value)


def _no_json(value: object) -> str | None:
    if not isinstance(value, str):
        return "JSON in quotes"
    try:
        json.loads(value)
    except ValueError as error:
        return f"JSON in quotes, and {value[:60]!r} is none ({error})"
    return None


def _example(argument: of_gx.ExpectationArgument) -> str:
    examples = {
        of_gx.COLUMN: "'a'", of_gx.COLUMNS: "['a', 'b']", of_gx.NUMBER: "5", of_gx.VALUE: "5",
        of_gx.BOOLEAN: "TRUE", of_gx.LIST: "['x', 'y']", of_gx.TEXT: "'text'",
    }  # fmt: skip
    if argument.choices:
        return f"Write '{argument.choices[0]}'"
    json_example = '\'{"quantiles": [0.5], "value_ranges": [[0, 10]]}\''
    return f"Write {examples.get(argument.kind, json_example)}"


def _columns(value: object, columns: Sequence[str], what: str, at: Place, faults: list[CqlError]) -> object:
    several = value if isinstance(value, tuple) else (value,)
    found: list[str] = []
    for name in several:  # pyright: ignore[reportUnknownVariableType]
        spelt = _spelt(str(name), columns)  # pyright: ignore[reportUnknownArgumentType]
        if spelt is None:
            hint = nearest(str(name), columns) or f"Columns are {listing(columns)}"  # pyright: ignore[reportUnknownArgumentType]
            faults.append(BindError(f"{what}: there is no column {name}", at, hint))
        else:
            found.append(spelt)
    return tuple(found) if isinstance(value, tuple) else next(iter(found), None)


def _spelt(name: str, columns: Sequence[str]) -> str | None:
    """A column as it is spelt: exactly so, else without regard to case."""
    return name if name in columns else next((c for c in columns if c.lower() == name.lower()), None)


def _fresh_faults(spec: ExpectationSpec, what: str, time: TimeDomain, of_query: bool) -> Iterable[CqlError]:
    if time.kind == TimeKind.BIGINT:
        yield RefusedError(
            f"{what}: FRESH needs time that is the clock's, and here it is BIGINT ticks",
            spec.place,
            "alert_after alerts of what has not advanced for so long",
        )
    if spec.per is not None:
        yield ParseError(f"{what}: FRESH judges each commit", spec.place, "Leave PER out")
    if of_query and spec.on_violation == "fail":
        yield RefusedError(
            f"{what}: a query that is behind would never catch up under FRESH .. ON VIOLATION FAIL UPDATE",
            spec.place,
            "Write ON VIOLATION WARN",
        )


def _references(
    spec: ExpectationSpec, what: str, columns: Sequence[str], faults: list[CqlError]
) -> tuple[tuple[str, object], ...]:
    told = dict(spec.arguments)
    if spec.per is not None:
        faults.append(ParseError(f"{what}: REFERENCES judges the rows of a commit", spec.place, "Leave PER out"))
    return tuple({**told, "columns": _columns(told["columns"], columns, what, spec.place, faults)}.items())
