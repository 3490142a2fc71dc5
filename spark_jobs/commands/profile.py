"""``sweeparea profile``: a stream's declaration with the constraints that what was admitted suggests, as CQL to paste.

Every proposal says in a comment what it rests on. DuckDB reads the admitted table and the quarantine; nothing of them
is held here but counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sweeparea.cql.printing.statement_printer import literal, micros, name, print_statement, string
from sweeparea.cql.syntax.statements import CreateStream
from sweeparea.infra.errors import UsageError
from sweeparea.operators.time.domain import MICROS, TimeDomain, TimeKind
from sweeparea.spark_jobs.evaluation.references import register
from sweeparea.spark_jobs.spark.instants import instant_text
from sweeparea.tables.log.delta_log import DeltaLog

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application

MOST_VALUES = 20
"""A column of so many values at most may be a set, ..."""
ROWS_A_VALUE = 20
""".. if it has so many rows a value."""
ALLOWED = (0.0, 0.0001, 0.001, 0.01, 0.05)
"""The shares of rows for which a heartbeat is looked for that would have kept them out."""
CHOSEN = 0.001
"""What may be late under the heartbeat that is proposed; LATE REPAIR takes it in."""
FEW_UNITS = 5
"""Whole days that there must be for a usual volume."""
_NUMBERS = ("tinyint", "smallint", "int", "integer", "bigint", "float", "double", "decimal")
_PAIRS = 15


@dataclass(frozen=True)
class ProfiledColumn:
    """What a column holds: ``kind`` is its Spark type; ``least`` and ``greatest`` of numbers, ``values`` where they are
    few, ``nans`` of floating point.
    """

    name: str
    kind: str
    nulls: int
    distinct: int
    least: Any = None
    greatest: Any = None
    nans: int = 0
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class HeartbeatChoice:
    """A heartbeat that follows the greatest instant by ``lag`` ticks would have found ``late`` rows late."""

    lag: int
    late: int
    rows: int

    @property
    def share(self) -> str:
        """The share of rows that it would have kept out under LATE REJECT."""
        return f"{100 * self.late / self.rows:.4g} %" if self.rows else "0 %"


def profile(application: Application, stream: str) -> str:
    """The declaration with proposals. UsageError for what is no stream, or where nothing was admitted yet."""
    if stream not in application.catalog.streams:
        what = "is no stream" if stream in application.catalog.declared() else "is not declared"
        known = ", ".join(application.catalog.streams) or "none"
        raise UsageError(f"{stream} {what}: a profile is made of what a stream has admitted. Streams: {known}.")
    log = application.ledger.log(application.layout.admitted(stream))
    if application.ledger.row(stream) is None or not log.exists():
        raise UsageError(f"{stream} has admitted nothing yet. `{application.command('admit', stream)}` does.")
    return _StreamProfile(application, application.stream(stream), log).text()


class _StreamProfile:
    """One profile while it is made."""

    def __init__(self, application: Application, declared: CreateStream, log: DeltaLog) -> None:
        import duckdb

        self.application, self.declared = application, declared
        self.schema = application.plans.input_schema(declared.name)
        self.time: TimeDomain = self.schema.time
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        register(self.connection, "__admitted", log)
        kept_out = application.ledger.log(application.layout.quarantine(declared.name))
        self.has_quarantine = kept_out.exists()
        if self.has_quarantine:
            register(self.connection, "__kept_out", kept_out)
        # one row a copy counts as many; what was taken back is left out
        self.connection.execute("CREATE VIEW __rows AS SELECT * FROM __admitted WHERE __n > 0")
        self.rows = self._one("SELECT coalesce(sum(__n), 0) FROM __rows")
        self.taken: set[str] = {c.name.lower() for c in (*declared.constraints, *declared.expectations)}

    def _one(self, statement: str) -> Any:
        found = self.connection.execute(statement).fetchone()
        return None if found is None else found[0]

    def text(self) -> str:
        self.commits = int(self._one("SELECT count(DISTINCT __seq) FROM __rows"))
        written = replace(self.declared, replace=True)
        if self.commits > 1:
            written = replace(written, heartbeat=None, late="reject", late_within=None)
        lines = [*self._head(), *print_statement(written).splitlines(), *self._disorder()]
        columns = [self._column(c, kind or "") for c, kind in self.schema.columns]
        for column in columns:
            lines += self._proposals(column)
        lines += self._keys(columns)
        lines += self._volume()
        return "\n".join(lines) + "\n;\n"

    def _head(self) -> Iterator[str]:
        least, greatest = self.connection.execute("SELECT min(__tick), max(__tick) FROM __rows").fetchone() or (
            None,
            None,
        )
        commits = f"{self.commits:,} commit{'' if self.commits == 1 else 's'}"
        yield f"-- What {self.declared.name} has admitted: {self.rows:,} elements of {commits}"
        if least is not None and greatest is not None:
            yield f"-- from {instant_text(self.time, least)} to {instant_text(self.time, greatest)}."
        for reason, n in self._kept_out():
            yield f"-- Kept out: {n:,} rows, {_comment(reason)}"
        yield "-- Each proposal stands below what it rests on. Take what should hold; `plan` shows the change."

    def _kept_out(self) -> list[tuple[str, int]]:
        if not self.has_quarantine:
            return []
        found = self.connection.execute(
            "SELECT __reason, count(*) FROM __kept_out GROUP BY ALL ORDER BY count(*) DESC, __reason LIMIT 10"
        ).fetchall()
        return [(str(reason), int(n)) for reason, n in found]

    # -- time ----------------------------------------------------------------------------------------------------------

    def _disorder(self) -> Iterator[str]:
        """HEARTBEAT and LATE, and what other choices would have kept out. A row is late by what is greatest among the
        rows of commits before its own.
        """
        if self.commits < 2:
            yield "  -- All came with one commit, so nothing is known of how late rows come: HEARTBEAT and LATE stand."
            return
        late = "SELECT __seq, __tick, 1 AS n FROM __kept_out WHERE __reason LIKE 'late:%' AND __tick IS NOT NULL"
        both = "SELECT __seq, __tick, __n AS n FROM __rows" + (f" UNION ALL {late}" if self.has_quarantine else "")
        self.connection.execute(
            f"CREATE TABLE __lags AS WITH came AS ({both}),"
            " upto AS (SELECT __seq, max(max(__tick)) OVER (ORDER BY __seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1"
            " PRECEDING) AS before FROM came GROUP BY __seq)"
            " SELECT greatest(coalesce(before - __tick, 0), 0) AS lag, sum(n) AS n FROM came JOIN upto USING (__seq)"
            " GROUP BY lag"
        )
        rows = int(self._one("SELECT coalesce(sum(n), 0) FROM __lags"))
        choices = {choice.lag: choice for choice in (self._choice(share, rows) for share in ALLOWED)}
        yield "  -- How late rows came, behind the greatest instant of the commits before theirs. A heartbeat that"
        yield "  -- follows it by so much would have kept out, under LATE REJECT:"
        for lag, choice in sorted(choices.items(), reverse=True):
            yield f"  --   {self._length(lag)}: {choice.late:,} of {rows:,} rows ({choice.share})"
        chosen = min((c for c in choices.values() if c.late <= CHOSEN * rows), key=lambda c: c.lag)
        column = name(self.declared.timestamp_by)
        yield f"  HEARTBEAT FOR {column} AS {column} - {self._length(chosen.lag)}"
        if chosen.late:
            most = int(self._one("SELECT max(lag) FROM __lags"))
            beyond = self._rounded(most - chosen.lag)
            yield f"  -- what was later was so by {self._length(most)} at most: this would have kept out none"
            yield f"  LATE REPAIR WITHIN {self._length(beyond)}"

    def _choice(self, share: float, rows: int) -> HeartbeatChoice:
        """The least lag, rounded, that would have found no more than a share late."""
        found = self._one(
            f"SELECT min(lag) FROM (SELECT lag, sum(n) OVER (ORDER BY lag DESC) - n AS later FROM __lags)"
            f" WHERE later <= {math.floor(share * rows)}"
        )
        lag = self._rounded(int(found or 0))
        return HeartbeatChoice(lag, int(self._one(f"SELECT coalesce(sum(n), 0) FROM __lags WHERE lag > {lag}")), rows)

    def _rounded(self, ticks: int) -> int:
        """A length that people would write, no shorter."""
        if self.time.kind == TimeKind.BIGINT:
            return max(1, ticks)
        wanted = max(1, ticks) * self.time.chronon
        units = [u for u in ("SECOND", "MINUTE", "HOUR", "DAY") if MICROS[u] % self.time.chronon == 0]
        units = ["DAY"] if self._kind_of_time() == "date" else units
        if not units:
            return ticks
        unit = next((u for u in reversed(units) if wanted >= 10 * MICROS[u]), units[0])
        return -(-wanted // MICROS[unit]) * MICROS[unit] // self.time.chronon

    def _kind_of_time(self) -> str:
        wanted = self.declared.timestamp_by.lower()
        return next(((kind or "").lower() for column, kind in self.schema.columns if column.lower() == wanted), "")

    def _length(self, ticks: int) -> str:
        return str(ticks) if self.time.kind == TimeKind.BIGINT else micros(ticks * self.time.chronon)

    # -- columns -------------------------------------------------------------------------------------------------------

    def _column(self, column: str, kind: str) -> ProfiledColumn:
        quoted = '"' + column.replace('"', '""') + '"'
        base = kind.lower().partition("(")[0]
        nulls = int(self._one(f"SELECT coalesce(sum(__n), 0) FROM __rows WHERE {quoted} IS NULL"))
        if "<" in kind or base in ("binary", "variant"):
            return ProfiledColumn(column, kind, nulls, 0)
        distinct = int(self._one(f"SELECT approx_count_distinct({quoted}) FROM __rows"))
        found = ProfiledColumn(column, kind, nulls, distinct)
        if base in _NUMBERS:
            # as text: DuckDB believes of a file's statistics, which leave NaN out, that there is none
            number = f" AND CAST({quoted} AS VARCHAR) <> 'nan'" if base in ("float", "double") else ""
            finite = f"{quoted} IS NOT NULL{number}"
            least, greatest = self.connection.execute(
                f"SELECT min({quoted}), max({quoted}) FROM __rows WHERE {finite}"
            ).fetchone() or (None, None)
            nans = int(
                self._one(f"SELECT coalesce(sum(__n), 0) FROM __rows WHERE {quoted} IS NOT NULL AND NOT ({finite})")
            )
            found = replace(found, least=least, greatest=greatest, nans=nans)
        if distinct <= 2 * MOST_VALUES and base in (*_NUMBERS[:5], "string", "boolean"):
            values = self.connection.execute(
                f"SELECT DISTINCT {quoted} FROM __rows WHERE {quoted} IS NOT NULL ORDER BY 1 LIMIT {MOST_VALUES + 1}"
            ).fetchall()
            if 1 <= len(values) <= MOST_VALUES and self.rows >= ROWS_A_VALUE * len(values):
                found = replace(found, values=tuple(v for (v,) in values), distinct=len(values))
        return found

    def _proposals(self, column: ProfiledColumn) -> Iterator[str]:
        known, own = self.rows - column.nulls, name(column.name)
        evidence = f"{_comment(column.name)} {column.kind.upper()}: {column.nulls:,} NULLs of {self.rows:,}"
        if column.values:
            evidence += f", {column.distinct} values"
        elif column.distinct:
            evidence += f", about {column.distinct:,} values"
        if column.nans:
            evidence += f", {column.nans:,} NaN"
        if column.least is not None:
            evidence += f", from {column.least} to {column.greatest}"
        yield f"  -- {_comment(evidence)}"
        if not self.rows or column.name.lower() == self.declared.timestamp_by.lower():
            return  # instants move on, and one that is NULL is no element
        if not column.nulls:
            yield self._constraint(column, "known", f"({own} IS NOT NULL)", "QUARANTINE ROW")
        elif known and column.nulls <= 0.05 * self.rows:
            mostly = math.floor(1000 * known / self.rows) / 1000
            told = (
                f"gx.expect_column_values_to_not_be_null(column => {string(column.name)}, mostly => {literal(mostly)})"
            )
            yield self._constraint(column, "mostly_known", f"{told}{self._per()}", "WARN")
        if column.values and column.kind.lower() != "boolean":
            yield self._constraint(column, "in_set", f"({own} IN ({', '.join(map(_sql, column.values))}))", "WARN")
        elif column.least is not None and _writable(column.least) and _writable(column.greatest):
            within = f"{own} BETWEEN {_sql(column.least)} AND {_sql(column.greatest)}"
            if column.nans:
                within += f" OR isnan({own})"
            yield self._constraint(column, "in_range", f"({within})", "WARN")

    def _constraint(self, column: ProfiledColumn, what: str, expected: str, violation: str) -> str:
        return f"  CONSTRAINT {self._name(column.name, what)} EXPECT {expected} ON VIOLATION {violation}"

    def _name(self, column: str, what: str) -> str:
        base = "".join(c if c.isascii() and c.isalnum() else "_" for c in column).strip("_").lower() or "column"
        found, number = f"{base}_{what}", 2
        while found in self.taken:
            found, number = f"{base}_{what}_{number}", number + 1
        self.taken.add(found)
        return name(found)

    def _per(self) -> str:
        return "" if self.time.kind == TimeKind.BIGINT else " PER INTERVAL 1 DAY"

    # -- rows together -------------------------------------------------------------------------------------------------

    def _keys(self, columns: Sequence[ProfiledColumn]) -> Iterator[str]:
        """Columns, or pairs of them, whose values no two elements share."""
        if self.rows < 2:
            return
        own = self.declared.timestamp_by
        exact = [c for c in columns if c.kind.lower() not in ("float", "double") and c.name.lower() != own.lower()]
        whole = [c for c in exact if not c.nulls and c.distinct > 1]
        near = [c for c in whole if 1.2 * c.distinct >= self.rows]
        single = [c for c in near if self._is_key(c)]
        for column in single[:3]:
            told = f"gx.expect_column_values_to_be_unique(column => {string(column.name)}){self._per()}"
            yield f"  -- {_comment(column.name)} is a key: {self.rows:,} elements, as many values"
            yield self._constraint(column, "unique", told, "WARN")
        if single:
            return
        pairs = [
            (a, b) for i, a in enumerate(whole) for b in whole[i + 1 :] if 2 * a.distinct * b.distinct >= self.rows
        ]
        for pair in pairs[:_PAIRS]:
            if self._is_key(*pair):
                names = ", ".join(string(c.name) for c in pair)
                told = f"gx.expect_compound_columns_to_be_unique(column_list => [{names}]){self._per()}"
                both = " and ".join(_comment(c.name) for c in pair)
                yield f"  -- {both} together are a key of {self.rows:,} elements"
                yield self._constraint(pair[0], "unique_with_" + pair[1].name, told, "WARN")
                return

    def _is_key(self, *columns: ProfiledColumn) -> bool:
        quoted = ", ".join('"' + c.name.replace('"', '""') + '"' for c in columns)
        return self._one(f"SELECT count(*) FROM (SELECT DISTINCT {quoted} FROM __rows)") == self.rows

    def _volume(self) -> Iterator[str]:
        if self.time.kind == TimeKind.BIGINT:
            return
        day = MICROS["DAY"] // self.time.chronon
        if MICROS["DAY"] % self.time.chronon:
            return
        counts = self.connection.execute(
            f"SELECT sum(__n) FROM __rows GROUP BY __tick // {day} ORDER BY __tick // {day}"
        ).fetchall()
        whole = [int(n) for (n,) in counts][1:-1]
        if len(whole) < FEW_UNITS:
            return
        mean = math.fsum(whole) / len(whole)
        deviation = math.sqrt(math.fsum((n - mean) ** 2 for n in whole) / (len(whole) - 1))
        last = min(28, max(2, len(whole)))
        yield (
            f"  -- {len(whole)} whole days with rows: {min(whole):,} to {max(whole):,} a day, {mean:,.1f} on average,"
            f" standard deviation {deviation:,.1f}"
        )
        told = f"VOLUME WITHIN 4 DEVIATIONS OF LAST {last} PER INTERVAL 1 DAY"
        yield f"  CONSTRAINT {self._name('volume', 'usual')} EXPECT {told} ON VIOLATION WARN"


def _sql(value: Any) -> str:
    """A value as a literal of Spark SQL."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return string(value)
    if isinstance(value, float):
        text = repr(value)
        return text if "e" in text else f"{text}E0"  # without an exponent it would be a DECIMAL
    return str(value)


def _writable(value: Any) -> bool:
    """Whether a number has a literal."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, Decimal) or (isinstance(value, int) and value > -(1 << 63))


def _comment(text: str) -> str:
    """A text within a comment of one line."""
    return " ".join(str(text).split())
