"""``SUITE 'file.json'``: a suite in Great Expectations' own JSON as expectations of the statement that names it.

A suite is an object with ``expectations``, each ``{type, kwargs, severity, id, meta}``; what is ``critical`` (the
default) fails, ``warning`` and ``info`` warn. ``suite_json`` writes one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sweeparea.cql.functions import expectations as of_gx
from sweeparea.cql.syntax import statements as st
from sweeparea.cql.text.errors import BindError, CqlError, ParseError, Place, nearest

SEVERITIES = {"critical": "fail", "warning": "warn", "info": "warn"}
_META = "sweeparea"
"""Under this key of an expectation's meta stands the name of its constraint."""
Declaring = st.CreateStream | st.CreateRelation | st.CreateQuery


def expanded(statement: st.Statement, folder: Path) -> tuple[st.Statement, list[CqlError]]:
    """A statement with the expectations of its suites, files in ``folder``; and what is wrong with these."""
    if not isinstance(statement, Declaring) or not statement.suites:
        return statement, []
    faults: list[CqlError] = []
    found = list(statement.expectations)
    taken = {c.name.lower() for c in (*statement.constraints, *found)}
    for suite in statement.suites:
        for spec in _read(suite, folder, faults):
            if spec.name.lower() in taken:
                faults.append(
                    ParseError(
                        f"two expectations, or one and a constraint, are named {spec.name} with the suite {suite.path}",
                        spec.place,
                        "Give each an id of its own",
                    )
                )
                continue
            taken.add(spec.name.lower())
            found.append(replace(spec, per=suite.per, suite=suite.path))
    return replace(statement, expectations=tuple(found)), faults


def _read(suite: st.SuiteSpec, folder: Path, faults: list[CqlError]) -> list[st.ExpectationSpec]:
    path = (folder / suite.path).resolve()
    if not path.is_relative_to(folder.resolve()):
        faults.append(
            ParseError(f"the suite {suite.path} lies outside {folder}", suite.place, "Put it beside the .cql file")
        )
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else f"it cannot be read ({error})"
        near = nearest(path.name, [p.name for p in folder.glob("*.json")])
        faults.append(ParseError(f"the suite {suite.path}: {why}", suite.place, near or "Put it beside the .cql file"))
        return []
    return specs_of(text, str(path), faults)


def specs_of(text: str, file: str, faults: list[CqlError]) -> list[st.ExpectationSpec]:
    """The expectations of a suite's text, and what is wrong with it, each at its place in the ``file``."""
    try:
        suite = json.loads(text)
    except json.JSONDecodeError as error:
        at = _place(text, file, error.pos)
        faults.append(ParseError(f"this suite is no JSON: {error.msg}", at, "`sweeparea quality export` writes one"))
        return []
    items = suite.get("expectations") if isinstance(suite, dict) else None
    if not isinstance(items, list):
        faults.append(
            ParseError(
                'this is no suite of Great Expectations: it has no list of "expectations"',
                _place(text, file, 0),
                'Write {"name": "orders", "expectations": [{"type": "..", "kwargs": {..}}]}',
            )
        )
        return []
    found: list[st.ExpectationSpec] = []
    ids: set[str] = set()
    at = 0
    for number, item in enumerate(items, 1):
        kind = _type(item)
        # where it stands: items come in the order of the text
        at = max(text.find(f'"{kind}"', at), at) if kind else at
        place = _place(text, file, at)
        at += len(kind) + 2
        spec = _spec(item, number, kind, place, faults)
        if spec is None:
            continue
        if spec.id and spec.id in ids:
            faults.append(ParseError(f"the id {spec.id} is given twice in this suite", place, "Give each its own"))
            continue
        ids.add(spec.id)
        found.append(spec)
    return found


def _type(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    kind = item.get("type", item.get("expectation_type"))
    return kind if isinstance(kind, str) else ""


def _spec(item: Any, number: int, kind: str, place: Place, faults: list[CqlError]) -> st.ExpectationSpec | None:
    before = len(faults)
    if not kind:
        faults.append(
            ParseError(f"expectation {number} of this suite has no type", place, 'Write {"type": "expect_.."}')
        )
        return None
    kwargs = item.get("kwargs", {})
    severity = item.get("severity", "critical")
    meta = item.get("meta") or {}
    if not isinstance(kwargs, dict):
        faults.append(ParseError(f"the kwargs of expectation {number} are no object", place, 'Write {"column": "a"}'))
        return None
    if severity not in SEVERITIES:
        hint = nearest(str(severity), SEVERITIES) or f"Write {', '.join(SEVERITIES)}"
        faults.append(BindError(f"expectation {number} has the severity {severity!r}", place, hint))
    arguments: list[tuple[str, object]] = []
    known = of_gx.known().expectations.get(kind, {})
    for name, value in kwargs.items():
        if name in ("batch_id", "result_format", "catch_exceptions"):
            continue
        if isinstance(value, dict) and "$PARAMETER" in value:
            hint = "Write the value: there is nobody here who gives parameters"
            faults.append(ParseError(f"expectation {number}: {name} is a parameter", place, hint))
            continue
        argument = known.get(name.lower())
        of_json = argument is not None and argument.kind == of_gx.JSON
        arguments.append((name, json.dumps(value) if of_json and value is not None else _tuple(value)))
    if len(faults) > before:
        return None
    id_ = item.get("id") or ""
    own = meta.get(_META) if isinstance(meta, dict) else None
    name = own or id_ or _named(kind, kwargs, number)
    return st.ExpectationSpec(
        str(name), kind, tuple(arguments), SEVERITIES[severity], place, argument_places={}, id=str(id_)
    )


def _named(kind: str, kwargs: Mapping[str, Any], number: int) -> str:
    column = kwargs.get("column") or kwargs.get("column_A") or ""
    return f"{kind}_{column}_{number}" if column else f"{kind}_{number}"


def _tuple(value: Any) -> object:
    return tuple(_tuple(v) for v in value) if isinstance(value, list) else value


def _place(text: str, file: str, at: int) -> Place:
    line = text.count("\n", 0, at) + 1
    begun = text.rfind("\n", 0, at) + 1
    return Place(file, line, at - begun + 1, text[begun:].partition("\n")[0])


def suite_json(name: str, expectations: Sequence[Any]) -> dict[str, Any]:
    """A suite as Great Expectations has it, of bound expectations (``Plan.expectations``) of its own kind."""
    severities = {"fail": "critical", "warn": "warning"}
    return {
        "name": name,
        "expectations": [
            {
                "type": e.type,
                "kwargs": kwargs_of(e.type, e.arguments),
                "severity": severities[e.on_violation],
                "meta": {_META: e.name},
            }
            for e in expectations
            if e.kind == st.ExpectationKind.GX
        ],
        "meta": {"great_expectations_version": of_gx.known().version},
    }


def kwargs_of(kind: str, arguments: Sequence[tuple[str, object]]) -> dict[str, Any]:
    """Arguments as Great Expectations takes them: lists for tuples, what is JSON read."""
    known = of_gx.known().expectations.get(kind, {})
    found: dict[str, Any] = {}
    for name, value in arguments:
        argument = known.get(name.lower())
        if argument is not None and argument.kind == of_gx.JSON and isinstance(value, str):
            found[name] = json.loads(value)
        else:
            found[name] = _list(value)
    return found


def _list(value: Any) -> Any:
    return [_list(v) for v in value] if isinstance(value, tuple) else value
