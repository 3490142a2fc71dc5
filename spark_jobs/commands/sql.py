"""Plain SQL over the result tables: DuckDB reads the Parquet files that one ledger state names.

Every statement sees all tables at one ledger state, so two results of one application always fit together. Beside the
tables there are, per relation result q, the view ``q__current`` (open rows) and the macro ``q__at(instant)``
(contents as of an instant).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra.errors import SweepAreaError
from sweeparea.infra.storage import is_remote
from sweeparea.infra.text_table import text_table
from sweeparea.operators.plan.stream_kind import ResultKind
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.upkeep.agreement import disagreement, tables_of
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import DataFile
from sweeparea.tables.log.scan import dataset
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind
from sweeparea.tables.publication.snapshot import Snapshot

if TYPE_CHECKING:
    import duckdb

HELP = """\
Statements end with ;   .tables lists the tables   .help this text   .quit or Ctrl-D ends
A relation result q: q (all history, valid_from / valid_to), q__current (now), q__at('2013-01-05 12:00:00') (as of an
instant)."""


class Reader:
    """Runs statements over an application's results, admitted streams (``admitted.s``), what was kept out of streams
    and, by constraints, of queries (``quarantine.s``, ``quarantine.q``), verdicts (``quality.verdicts``) and rows that
    broke a check (``quality.samples``).
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        self.wrong: dict[str, str] = {}  # by the names of tables that no statement may read: why

    def tables(self, head: Mapping[str, LedgerRow] | None = None) -> list[tuple[str, str, DeltaLog, LedgerRow]]:
        """(schema, name, table, its ledger row) of everything that has been committed."""
        application, layout = self.application, self.application.layout
        found = []
        for name, row in sorted((application.ledger.head() if head is None else head).items()):
            if row.kind == NameKind.QUERY:
                suffixes = ("", "__relation", "__istream", "__dstream", "__rstream", "__corrections")
                candidates = [("main", f"{name}{s}", layout.result(f"{name}{s}")) for s in suffixes]
                candidates.append(("quarantine", name, layout.result(f"{name}__{ResultKind.QUARANTINE}")))
            else:
                candidates = [("admitted", name, layout.admitted(name)), ("quarantine", name, layout.quarantine(name))]
            found += [
                (schema, table, log, row) for schema, table, path in candidates if (log := DeltaLog(path)).exists()
            ]
        return found

    def names(self) -> list[str]:
        """The tables as statements name them, those of shared subplans left out."""
        found = [_shown(schema, name) for schema, name, *_ in self.tables() if not is_hidden(name)]
        return [*found, "quality.verdicts", "quality.samples"] if found else found

    def connect(self, statement: str = "quality") -> duckdb.DuckDBPyConnection:
        """A connection with one view per table, pinned to the ledger state of now; verdicts for a ``statement`` that
        speaks of them, since they are read as a whole.
        """
        import duckdb

        snapshot = Snapshot(self.application.ledger)
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'; CREATE SCHEMA admitted; CREATE SCHEMA quarantine;")
        ends = self._ends(snapshot.head)
        self.wrong = self._wrong(snapshot.head)
        for schema, name, log, row in self.tables(snapshot.head):
            files = log.files(snapshot.version(log, row))
            try:
                self.view(connection, schema, name, log, files, ends.get(name.removesuffix("__relation")))
            except duckdb.IOException as error:
                lacks = f"it lacks a file that it names: {str(error).splitlines()[0]}"
                self.wrong[_shown(schema, name)] = self._told(_shown(schema, name), row, lacks)
            except duckdb.Error as error:
                # one table that DuckDB cannot show leaves the others readable
                shown = _shown(schema, name)
                self.wrong[shown] = f"The table {shown} cannot be shown by DuckDB: {str(error).splitlines()[0]}"
        if "quality" in statement.lower():
            self._quality(connection)
        return connection

    def _quality(self, connection: duckdb.DuckDBPyConnection) -> None:
        """``quality.verdicts`` and ``quality.samples``: those of all that has been committed, and the refused ones."""
        from sweeparea.quality.verdict_tables import NAMES, VerdictTables

        connection.execute("CREATE SCHEMA quality")
        for name, rows in zip(NAMES, VerdictTables(self.application.ledger).read(), strict=True):
            connection.register(f"__quality_{name}", rows)
            connection.execute(f"CREATE VIEW quality.{name} AS SELECT * FROM __quality_{name}")

    def _wrong(self, head: Mapping[str, LedgerRow]) -> dict[str, str]:
        found = {}
        for row in head.values():
            for table in tables_of(row):
                folder, _, name = table.partition("/")
                schema = "main" if folder == "results" else folder
                owner = name.removesuffix(f"__{ResultKind.QUARANTINE}")
                if schema == "main" and owner == row.name != name:
                    schema, name = "quarantine", owner
                if schema in ("main", "admitted", "quarantine"):
                    fault = disagreement(self.application.ledger, row, table)
                    if fault is not None:
                        found[_shown(schema, name)] = self._told(_shown(schema, name), row, fault)
        return found

    def _told(self, name: str, row: LedgerRow, fault: str) -> str:
        check = self.application.command("check", row.name)
        return (
            f"The table {name} is not what SweepArea committed, so it is not read: {fault.rstrip('.')}. `{check}` tells"
            " more, and with --rebuild it computes a query's tables again."
        )

    def _refuse_wrong(self, statement: str) -> None:
        """Refuses a statement that reads a table that is wrong; others are run."""
        import duckdb

        if not self.wrong:
            return
        words = set(re.findall(r"\w+", statement.lower()))
        try:
            # asked where no view is known, since views would be looked into
            read = duckdb.connect().get_table_names(statement, qualified=True)
            used = {name.lower().replace('"', "").removeprefix("main.") for name in read}
        except duckdb.Error:  # several statements, or none that can be read: any word may be a table
            used = {*words, *(f"{schema}.{word}" for word in words for schema in ("admitted", "quarantine"))}
        for name, why in self.wrong.items():
            if {name.lower(), f"{name.lower()}__current"} & used or f"{name.lower()}__at" in words:
                raise SweepAreaError(why)

    def _ends(self, head: Mapping[str, LedgerRow]) -> dict[str, int]:
        """Per query the first instant that it has not committed: microseconds, or a tick."""
        rows = [r for r in head.values() if r.kind == NameKind.QUERY and r.committed is not None]
        return {r.name: ((r.committed or 0) + 1) * (r.of_query.chronon or 1) for r in rows}

    @staticmethod
    def view(
        connection: duckdb.DuckDBPyConnection,
        schema: str,
        name: str,
        log: DeltaLog,
        live: list[DataFile],
        end: int | None,
    ) -> None:
        """Makes a table readable as ``schema.name``, by its ``live`` files; of a relation's result also the view and
        the macro, which refuses instants from ``end`` on.
        """
        import pyarrow.dataset as ds

        columns, files = log.schema(), log.uris(live)
        full = f"{schema}.{_quoted(name)}"
        if files and is_remote(files[0]):
            # DuckDB reads local files only; Arrow gives it the rows, with the filters pushed down
            remote = f"__files_{schema}_{name}"
            connection.register(remote, dataset(files, columns))
            connection.execute(f"CREATE VIEW {full} AS SELECT * FROM {_quoted(remote)}")
        elif files:
            listed = ", ".join("'" + f.replace("'", "''") + "'" for f in files)
            names = ", ".join(map(_quoted, columns.names))
            connection.execute(
                f"CREATE VIEW {full} AS SELECT {names} FROM read_parquet([{listed}], union_by_name = true)"
            )
        else:
            empty = f"__empty_{schema}_{name}"
            connection.register(empty, ds.dataset(columns.empty_table()).to_table())
            connection.execute(f"CREATE VIEW {full} AS SELECT * FROM {_quoted(empty)}")
        if "valid_to" in columns.names and schema != "admitted":
            within = "" if schema == "main" else f"{schema}."
            connection.execute(
                f"CREATE VIEW {within}{_quoted(f'{name}__current')} AS SELECT * EXCLUDE (valid_to) FROM {full}"
                " WHERE valid_to IS NULL"
            )
            ticks = str(columns.field("valid_from").type) == "int64"
            # DuckDB looks for names among a table's columns first, so the macro's own differ from all of them
            asked, instant = _unused("asked", columns.names), _unused("instant", columns.names)
            kind, micros = ("BIGINT", instant) if ticks else ("TIMESTAMPTZ", f"epoch_us({instant})")
            message = f"{name} is known up to its committed instant only (see status); ask for an earlier one."
            text = message.replace("'", "''")
            known = "TRUE" if end is None else f"CASE WHEN {micros} < {end} THEN TRUE ELSE error('{text}') END"
            connection.execute(
                f"CREATE MACRO {within}{_quoted(f'{name}__at')}({asked}) AS TABLE"
                f" WITH __asked AS (SELECT CAST({asked} AS {kind}) AS {instant})"
                f" SELECT * EXCLUDE (valid_from, valid_to, {instant}) FROM {full}, __asked"
                f" WHERE {known} AND valid_from <= {instant} AND (valid_to IS NULL OR valid_to > {instant})"
            )

    def run(self, statement: str, form: str = "table") -> str:
        """One statement's rows as text: ``table``, ``csv`` or ``json`` (a line a row)."""
        import duckdb

        connection = self.connect(statement)
        self._refuse_wrong(statement)
        try:
            relation = connection.sql(statement)
        except duckdb.Error as error:
            known = self.names()
            tables = f"Tables of {self.application.name}: {', '.join(known) or 'none yet'}."
            raise SweepAreaError(f"{str(error).strip()}\n{tables}{self._empty_handed(statement, known)}") from None
        if relation is None:
            return ""
        try:
            if form == "table":
                return _as_table(relation)
            if form == "csv":
                return _as_csv(relation)
            return _as_json(relation)
        except duckdb.Error as error:
            raise SweepAreaError(str(error).strip()) from None

    def _empty_handed(self, statement: str, known: Collection[str]) -> str:
        """Which declared queries a statement speaks of that have no table yet, as a sentence; empty if none."""
        words = {word.split("__")[0] for word in re.findall(r"\w+", statement.lower())}
        waiting = [q for q in self.application.catalog.queries if q.lower() in words and q not in known]
        return "".join(f" {q} has not been processed yet, see `{self.application.command('status')}`." for q in waiting)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unused(name: str, columns: Collection[str]) -> str:
    """``name``, made longer until no column is called so."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name


def _shown(schema: str, name: str) -> str:
    return name if schema == "main" else f"{schema}.{name}"


def _as_table(relation: duckdb.DuckDBPyRelation) -> str:
    return text_table(relation.columns, relation.fetchall())


def _as_csv(relation: duckdb.DuckDBPyRelation) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(relation.columns)
    writer.writerows(relation.fetchall())
    return out.getvalue().rstrip("\n")


def _as_json(relation: duckdb.DuckDBPyRelation) -> str:
    import json

    columns = relation.columns
    return "\n".join(
        json.dumps(dict(zip(columns, row, strict=True)), default=str, ensure_ascii=False) for row in relation.fetchall()
    )


def prompt(reader: Reader, form: str) -> int:
    """Reads statements until end of file; each sees the ledger state of its own moment. Returns how many failed."""
    interactive = sys.stdin.isatty()
    if interactive:
        print(f"Results of {reader.application.name}. {HELP}")
    text, failed = "", 0
    while True:
        try:
            line = input(("sql> " if not text else "  -> ") if interactive else "")
        except EOFError:
            break
        command = line.strip()
        if not text and command in (".quit", ".exit"):
            break
        if not text and command in (".help", ".tables"):
            print(HELP if command == ".help" else "\n".join(reader.names()))
            continue
        text += line + "\n"
        if command.endswith(";"):
            failed += not _attempt(reader, text, form)
            text = ""
    if text.strip():
        failed += not _attempt(reader, text, form)
    return 0 if interactive else failed


def _attempt(reader: Reader, text: str, form: str) -> bool:
    try:
        print(reader.run(text, form), flush=True)
    except SweepAreaError as error:
        print(error, file=sys.stderr, flush=True)
        return False
    return True
