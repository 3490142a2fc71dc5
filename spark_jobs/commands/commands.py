"""The statements that act: DROP, PAUSE, RESUME, SET, REFRESH, SHOW, DESCRIBE, EXPLAIN, run by ``sweeparea run``.

Files declare, commands act: CREATE belongs into a file. A new acting statement is one more entry of
``StatementSession.act``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.parser import parse_text
from sweeparea.cql.syntax.settings import check_settings
from sweeparea.cql.syntax.statements import DeclaredKind
from sweeparea.cql.text.errors import BindError, ParseError, RefusedError, listing, nearest, raise_all
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.heartbeats.minimum import INFINITE
from sweeparea.infra.errors import SweepAreaError
from sweeparea.infra.text_table import text_table
from sweeparea.operators.time.domain import TimeKind
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands import jobs
from sweeparea.spark_jobs.orchestration.drop import drop
from sweeparea.spark_jobs.orchestration.explaining import explained, explained_query
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log.schema import spark_type
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

HELP = """\
Statements end with ;   .help this text   .quit or Ctrl-D ends
SHOW STREAMS | RELATIONS | CONTINUOUS QUERIES;   DESCRIBE name;   EXPLAIN CONTINUOUS QUERY name;   EXPLAIN SELECT ..;
PAUSE | RESUME CONTINUOUS QUERY name;   DROP STREAM | RELATION | CONTINUOUS QUERY name [PURGE];   SET name = value;"""


class StatementSession:
    """Runs acting statements over one application. SET holds for the session."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def run(self, text: str, filename: str = "<command>") -> Iterator[str]:
        """What each statement of a text has to say. All of them are read before the first is run."""
        statements = parse_text(text, filename)
        if not statements:
            raise ParseError("there is no statement", None, "Write for example SHOW CONTINUOUS QUERIES")
        raise_all([_create_refused(s) for s in statements if isinstance(s, Declared)])
        for statement in statements:
            yield from self.act(statement)

    def act(self, statement: st.Statement) -> Iterator[str]:
        """Runs one statement."""
        acts: dict[type, Callable[[Any], Iterator[str]]] = {
            st.Drop: self._drop,
            st.Pause: self._pause,
            st.SetSetting: self._set,
            st.RefreshRelation: self._refresh,
            st.Explain: self._explain,
            st.Show: self._show,
            st.Describe: self._describe,
        }
        yield from acts[type(statement)](statement)

    # -- acts ----------------------------------------------------------------------------------------------------------

    def _drop(self, statement: st.Drop) -> Iterator[str]:
        name = self._known(statement.name, statement)
        yield from drop(self.application, name, statement.kind, purge=statement.purge)

    def _pause(self, statement: st.Pause) -> Iterator[str]:
        application = self.application
        name = self._known(statement.name, statement)
        if name not in application.catalog.queries:
            raise BindError(f"{name} is no continuous query: only these are paused", statement.place)
        registry = application.registry
        if name not in registry.deployed.rows():
            registry.register(name, application.ledger.head().get(name))
        if registry.deployed.rows()[name].paused is not statement.resume:
            yield f"{name}: {'is not paused' if statement.resume else 'is paused already'}"
            return
        registry.deployed.pause(name, not statement.resume)
        if statement.resume:
            yield f"{name}: resumed; the next run catches up with its inputs"
            return
        below = application.catalog.readers(name)
        also = f"; {', '.join(below)}, reading it, {'wait' if len(below) > 1 else 'waits'} with it" if below else ""
        yield f"{name}: paused; a slice at work is still finished{also}"

    def _set(self, statement: st.SetSetting) -> Iterator[str]:
        raise_all([*check_settings({statement.name: statement.value}, {statement.name: statement.place})])
        self.application.catalog.settings[statement.name.lower()] = statement.value
        yield (
            f"{statement.name} = {statement.value} in this session, for EXPLAIN. To keep it, write SET into a .cql file"
            " of the application, or a setting into its sweeparea.toml"
        )

    def _refresh(self, statement: st.RefreshRelation) -> Iterator[str]:
        application = self.application
        name = self._known(statement.name, statement)
        catalog = application.catalog
        if name not in catalog.relations:
            raise BindError(f"{name} is no relation", statement.place)
        if catalog.relations[name].contents != "static":
            raise RefusedError(
                f"relation {name} is not static: it follows its source by itself",
                statement.place,
                f"Run `{application.command('admit', name)}` to take over what is new",
            )
        yield jobs.refresh(application, name)

    def _explain(self, statement: st.Explain) -> Iterator[str]:
        application = self.application
        if statement.name is not None:
            yield explained(application, self._known(statement.name, statement))
        elif statement.query is not None:
            yield explained_query(application, statement.query)

    # -- SHOW and DESCRIBE ---------------------------------------------------------------------------------------------

    def _show(self, statement: st.Show) -> Iterator[str]:
        application, head = self.application, self.application.ledger.head()
        catalog, deployed = application.catalog, application.registry.deployed.rows()
        if statement.kind == DeclaredKind.QUERY:
            rows = [
                (
                    name,
                    self._result_kind(name),
                    ", ".join(catalog.dependencies(name)),
                    self._reached(name, head.get(name)),
                    self._state(name, head.get(name)),
                )
                for name in catalog.queries
            ]
            gone = [row for row in deployed.values() if row.kind == NameKind.QUERY and row.name not in catalog.queries]
            rows += [(r.name, None, ", ".join(r.depends_on), None, "not in the files any more") for r in gone]
            yield text_table(("query", "result", "reads", "committed up to", "state"), rows)
            return
        sources = catalog.streams if statement.kind == DeclaredKind.STREAM else catalog.relations
        yield text_table(
            (statement.kind, "source", "heartbeat", "read by"),
            [
                (
                    name,
                    application.sources.text(name),
                    self._reached(name, head.get(name)),
                    ", ".join(catalog.readers(name)) or None,
                )
                for name in sources
            ],
        )

    def _describe(self, statement: st.Describe) -> Iterator[str]:
        name = self._known(statement.name, statement)
        application, head = self.application, self.application.ledger.head()
        catalog = application.catalog
        declared = catalog.declared()[name]
        schema = None if isinstance(declared, st.CreateFunction) else application.plans.input_schema(name)
        facts: list[tuple[str, str]] = [("declared at", str(declared.place))]
        if schema is not None:
            yield text_table(("column", "type"), [(c, t or "known once it has run") for c, t in self._columns(name)])
            facts += [("kind", self._kind(name)), ("time", self._time(name))]
            facts += [
                ("heartbeat" if name not in catalog.queries else "committed up to", self._reached(name, head.get(name)))
            ]
        if name in catalog.queries:
            plan = application.plans.plan(name)
            facts += [
                ("reads", ", ".join(catalog.inputs(name))),
                ("start", instant_text(plan.time, plan.start)),
                ("tables", ", ".join(map(plan.table, plan.materialize))),
                ("state", self._state(name, head.get(name))),
            ]
        elif schema is not None:
            facts.append(("source", application.sources.text(name)))
        facts.append(("read by", ", ".join(catalog.readers(name)) or "no query"))
        deployed = application.registry.deployed.rows().get(name)
        if deployed is None:
            facts.append(("deployed", "not yet"))
        else:
            facts.append(("deployed", f"{_instant(deployed.deployed_at)} by SweepArea {deployed.engine}"))
        width = max(len(key) for key, _ in facts)
        yield "\n".join(f"{key.ljust(width)}  {value}" for key, value in facts)

    # -- words ---------------------------------------------------------------------------------------------------------

    def _known(self, name: str, statement: st.Statement) -> str:
        """The declared or deployed name that is meant; BindError with the nearest one."""
        application = self.application
        names = [*application.catalog.declared(), *application.registry.deployed.rows(), *application.ledger.head()]
        found = next((n for n in names if n.lower() == name.lower()), None)
        if found is None:
            known = list(dict.fromkeys(names))
            raise BindError(
                f"there is nothing named {name}", statement.place, nearest(name, known) or f"There are {listing(known)}"
            )
        if isinstance(statement, st.Explain) and is_hidden(found):
            return found
        if not isinstance(statement, st.Drop) and found not in application.catalog.declared():
            raise BindError(
                f"{found} is deployed, but no file declares it any more",
                statement.place,
                f"Declare it again, or run `{application.command('apply', '--prune')}`, which drops it",
            )
        return found

    def _columns(self, name: str) -> list[tuple[str, str | None]]:
        """The columns of a stream or relation, or of a query's result table."""
        from sweeparea.tables.log.delta_log import DeltaLog

        columns = [*self.application.plans.input_schema(name).columns]
        if name in self.application.catalog.queries:
            result = DeltaLog(self.application.plans.result_table(name))
            if result.exists():
                return [(f.name, spark_type(f.type)) for f in result.schema()]
            plan = self.application.plans.plan(name)
            return [*columns, *((c, plan.time.type) for c in (("ts",) if plan.stream else ("valid_from", "valid_to")))]
        return columns

    def _kind(self, name: str) -> str:
        catalog = self.application.catalog
        if name in catalog.queries:
            return f"continuous query, its result is {self._result_kind(name)}"
        if name in catalog.streams:
            return "stream"
        relation = catalog.relations[name]
        return f"{'' if relation.retroactive else 'non-retroactive '}relation, {relation.contents}"

    def _result_kind(self, name: str) -> str:
        try:
            stream = self.application.plans.plan(name).stream
        except SweepAreaError:
            return "unknown: it cannot be bound"
        return "a relation" if stream is None else f"a stream ({stream.capitalize()})"

    def _time(self, name: str) -> str:
        catalog, schema = self.application.catalog, self.application.plans.input_schema(name)
        if name in catalog.relations and schema.static:
            return "none: it never changes"
        by = f", by {catalog.streams[name].timestamp_by}" if name in catalog.streams else ""
        if schema.time.kind == TimeKind.BIGINT:
            return f"BIGINT ticks{by}"
        from sweeparea.operators.time.domain import micros_text

        return f"TIMESTAMP, chronon {micros_text(schema.time.chronon)}{by}"

    def _reached(self, name: str, row: LedgerRow | None) -> str:
        if row is None or row.committed is None:
            return "not yet"
        if self.application.is_static(name) or row.committed >= INFINITE:
            return "for ever (static)"
        try:
            return instant_text(self.application.plans.input_schema(name).time, row.committed)
        except SweepAreaError:
            return f"tick {row.committed}"

    def _state(self, name: str, row: LedgerRow | None) -> str:
        application = self.application
        if application.registry.refused(name, row):
            return "stands still: its definition has changed"
        if application.registry.paused(name):
            return "paused"
        deployed = name in application.registry.deployed.rows()
        return "runs" if row is not None else "registered" if deployed else "not deployed yet"


def _create_refused(statement: Declared) -> SweepAreaError:
    return RefusedError(
        f"CREATE of {statement.name} belongs into a .cql file of the application, which is what its DAGs are made from",
        statement.place,
        "Write it there and run `sweeparea apply`",
    )


def _instant(micros: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M:%S UTC")


def prompt(session: StatementSession) -> int:
    """Reads statements until end of file; returns how many failed."""
    interactive = sys.stdin.isatty()
    if interactive:
        print(f"Application {session.application.name}.\n{HELP}")
    text, failed = "", 0
    while True:
        try:
            line = input(("cql> " if not text else "  -> ") if interactive else "")
        except EOFError:
            break
        if not text and line.strip() in (".quit", ".exit"):
            break
        if not text and line.strip() == ".help":
            print(HELP)
            continue
        text += line + "\n"
        if line.rstrip().endswith(";"):
            failed += not attempt(session, text)
            text = ""
    if text.strip():
        failed += not attempt(session, text)
    return 0 if interactive else failed


def attempt(session: StatementSession, text: str) -> bool:
    """Runs a text and prints; an error is told of and is no end."""
    try:
        for said in session.run(text):
            print(said, flush=True)
    except SweepAreaError as error:
        print(error, file=sys.stderr, flush=True)
        return False
    return True
