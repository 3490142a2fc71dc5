"""What people ask of verdicts: a report, a comparison of two ranges of time; and suites of Great Expectations."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sweeparea.cql.binding.expectations import bind_expectations
from sweeparea.cql.declarations.suites import specs_of, suite_json
from sweeparea.cql.printing.statement_printer import expectation_clause
from sweeparea.cql.syntax.statements import CreateQuery, CreateRelation, CreateStream, ExpectationKind
from sweeparea.cql.text.errors import CqlError, raise_all
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import UsageError
from sweeparea.infra.storage import is_remote
from sweeparea.infra.text_table import text_table
from sweeparea.operators.plan.plan import Expectation
from sweeparea.quality import ranges, report
from sweeparea.quality.verdict_tables import VerdictTables
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.spark.instants import instant_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_reports(application: Application, name: str | None = None, out: str | None = None) -> list[Path]:
    """Writes a page a name that has verdicts, into ``out`` or the data folder's ``quality/reports``; returns them."""
    verdicts = VerdictTables(application.ledger).read()[0]
    names = sorted(n for n in set(verdicts.column("name").to_pylist()) if not is_hidden(n))
    if name is not None:
        _known(application, name, names)
        names = [name]
    folder = _folder(application, out)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for each in names:
        path = folder / f"{each}.html"
        half = folder / f".{each}.{time.time_ns()}.half"
        half.write_text(page_of(application, each), encoding="utf-8")
        half.replace(path)
        written.append(path)
    return written


def page_of(application: Application, name: str, write: bool = True) -> str:
    """The page of one name as it stands now; ``write``: the tables of verdicts may be brought up."""
    verdicts, samples = VerdictTables(application.ledger).read(name, write)
    title = f"Quality of {name} in {application.name}"
    return report.page(title, verdicts, samples, made_at=datetime.now(UTC), links=_links(application, name))


def diff(application: Application, before: str, after: str, name: str | None = None, everything: bool = False) -> str:
    """The two ranges compared, as text: what changed, or ``everything``."""
    old, new = range_of(before), range_of(after)
    rows = VerdictTables(application.ledger).read(name)[0].to_pylist()
    if name is not None:
        _known(application, name, sorted({row["name"] for row in rows}))
    rows = [row for row in rows if not is_hidden(row["name"])]
    for text, wanted in ((before, old), (after, new)):
        if not any(wanted.has(row) for row in rows):
            known = sorted(row["upto"] or row["judged_at"] for row in rows)
            there = f"There are verdicts from {known[0]} to {known[-1]}." if known else "Nothing has been judged yet."
            raise UsageError(f"There is no verdict in {text}. {there}")
    lines = ranges.difference(rows, old, new, changed=not everything)
    if not lines:
        return "Every expectation was met, and missed, to the same share in both ranges (--all shows them)."
    return text_table(list(lines[0]), [list(line.values()) for line in lines])


def exported(application: Application, name: str) -> tuple[str, list[str]]:
    """The expectations of a name as a suite of Great Expectations (JSON), and what a suite cannot say, by name."""
    declared = application.catalog
    if name in declared.queries:
        bound: Sequence[Expectation] = application.plans.plan(name).expectations
        statement: CreateStream | CreateRelation | CreateQuery = declared.queries[name]
    else:
        bound, statement = application.sources.expectations(name), application.source(name)
    left = [f"{c.name}: EXPECT ({c.expression.text})" for c in statement.constraints]
    left += [f"{e.name}: {e.kind.upper()}" for e in bound if e.kind != ExpectationKind.GX]
    return json.dumps(suite_json(name, bound), indent=2, ensure_ascii=False), left


def imported(application: Application, file: str, name: str | None = None) -> str:
    """A suite's expectations as clauses of CQL; checked against the columns of ``name`` where it is given."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The suite {file} cannot be read: {error}.") from None
    faults: list[CqlError] = []
    specs = specs_of(text, file, faults)
    raise_all([*faults])
    if name is not None:
        if name in application.catalog.queries:
            plan = application.plans.plan(name)
            columns, time = [c.label for c in plan.root.columns], plan.time
        else:
            application.source(name)
            schema = application.plans.input_schema(name)
            columns, time = [column for column, _ in schema.columns], schema.time
        raise_all(bind_expectations(specs, columns, time, of_query=name in application.catalog.queries)[1])
    return "\n".join(expectation_clause(spec) for spec in specs)


def range_of(text: str) -> ranges.InstantRange:
    """``FROM..TO``, half-open; without TO a day from FROM on. UsageError if it is none."""
    first, dots, last = text.partition("..")
    since = instant_of(first.strip())
    upto = instant_of(last.strip()) if dots else since + 86_400_000_000
    if upto <= since:
        raise UsageError(f"The range {text} is empty: write FROM..TO, such as 2024-05-01..2024-05-08.")
    return ranges.InstantRange(*(_EPOCH + timedelta(microseconds=at) for at in (since, upto)))


def _known(application: Application, name: str, judged: list[str]) -> None:
    if name in judged:
        return
    if name in application.catalog.declared():
        raise UsageError(f"{name} has no verdict yet. `{application.command('status')}` tells how far it is.")
    raise UsageError(f"There is no {name} that was judged. There are verdicts of {', '.join(judged) or 'nothing yet'}.")


def _folder(application: Application, out: str | None) -> Path:
    if out is not None:
        return Path(out)
    data = str(application.data)
    if is_remote(data):
        raise UsageError(f"The data folder {data} is an object store: say where the reports go with --out FOLDER.")
    return Path(data.removeprefix("file://")) / "quality" / "reports"


def _links(application: Application, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    declared = application.catalog
    sources = [name] if name in declared.streams or name in declared.relations else []
    if name in declared.queries:
        found.append((f"rows of {name}", application.command("sql", "-c", f"SELECT * FROM {name} LIMIT 100")))
        sources = [s for s in declared.dependencies(name) if s in declared.streams or s in declared.relations]
    for source in sources:
        what = f"rows that were kept out of {source}"
        found.append((what, application.command("quarantine list", source)))
    verdicts = f"SELECT * FROM quality.verdicts WHERE name = '{name}' ORDER BY judged_at DESC LIMIT 100"
    return [*found, ("verdicts as a table", application.command("sql", "-c", verdicts))]
