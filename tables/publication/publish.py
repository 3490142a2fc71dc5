"""Publishing a slice: stage files, commit to the ledger, apply to the tables. The ledger commit is *the* commit.

* stage: Parquet files lie in the tables' folders, but no log names them, so nobody sees them.
* ledger: one compare-and-swap advances the name's row, which holds per table the files to add and remove. It is atomic
  over all tables of the slice; who loses it has changed nothing.
* apply: every table gets one Delta commit with exactly those actions, tagged (name:registration, sequence); then the
  row goes into the ledger's history. Anyone may apply, twice is harmless, and recovery is applying: a run that died
  after its ledger commit is completed by the next one. Nothing is ever undone.

The ledger keeps a name's last row only, so the row before must be applied before a new one is committed:
:meth:`Publication.begin` sees to that.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike
from typing import IO, Any

import pyarrow as pa

from sweeparea.tables.errors import CommitConflict, LostRace, TableError
from sweeparea.tables.faults import crash_point
from sweeparea.tables.layout import Layout
from sweeparea.tables.log.adopt import adjust
from sweeparea.tables.log.delta_log import DeltaLog, schema_text
from sweeparea.tables.log.files import DataFile, is_file
from sweeparea.tables.publication.attempts import Attempts
from sweeparea.tables.publication.deployed import Deployed
from sweeparea.tables.publication.ledger import Ledger, LedgerRow, now_micros
from sweeparea.tables.publication.name_kinds import NameKind

TABLES = "tables"
"""Key of a row's ``info``: per table the last sequence that changed it. What a table says must agree."""


class State(Enum):
    """How far a publication is. Who is killed leaves one of these, and the next run goes on from it."""

    PREPARED = "prepared"
    """Files may lie in the tables' folders, but no log names them; they go when the attempt is ended."""
    COMMITTED = "committed"
    """The ledger's row stands, and with it the commit; tables may still lack it."""
    APPLIED = "applied"
    """Every table has the commit, and the ledger's history says so."""


@dataclass
class _Staged:
    base_version: int
    previous_seq: int | None
    adds: list[DataFile] = field(default_factory=list)
    removes: list[DataFile] = field(default_factory=list)
    schema: pa.Schema | None = None


class Publication:
    """One commit of one stream, relation or query: ``begin``, then ``stage`` per table, then ``commit``.

    ``registration`` is the id of the current definition. A row of another registration is refused, so that a run left
    over from a dropped definition cannot commit; ``replaces=True`` starts a new registration of the name.
    """

    def __init__(
        self,
        data_folder: str | PathLike[str],
        ledger: Ledger,
        name: str,
        kind: NameKind,
        registration: str,
        *,
        replaces: bool = False,
    ) -> None:
        _same_folder(data_folder, ledger)
        self.layout = ledger.layout
        self.ledger = ledger
        self.name = name
        self.kind = kind
        self.registration = registration
        self.replaces = replaces
        self.previous: LedgerRow | None = None
        """The row this run began from."""
        self.state: State | None = None
        """None where nothing is begun, or where it is not known whether the commit stands."""
        self._attempt: str | None = None
        self._lock: IO[str] | None = None
        self._attempts = Attempts(self.layout)
        self._staged: dict[str, _Staged] = {}

    def begin(self) -> str:
        """Roll the name's last commit forward, remember where it stands, return a new attempt id (32 hex digits)."""
        self.previous = self.ledger.row(self.name)
        if self.previous is not None:
            _roll_forward(self.ledger, self.previous)
            if self.previous.registration != self.registration and not self.replaces:
                raise LostRace(
                    f"{self.name} was registered anew meanwhile, by a first run that was faster or by a new definition"
                    f" (registration {self.previous.registration}, this run's is {self.registration}). Nothing of this"
                    " run was committed. Start it again: it goes on from what stands there."
                )
        self._staged = {}
        self.abandon()
        self._attempts.bury(self.name, self._was_committed)
        self._attempt = uuid.uuid4().hex
        self._lock = self._attempts.begin(self.name, self._attempt)
        self.state = State.PREPARED
        return self._attempt

    def require(self, row: LedgerRow) -> None:
        """Raises LostRace if the name has gone on since ``row`` was read, on which what is to be committed rests. To be
        called after :meth:`begin`, for whoever has decided or computed anything before it.
        """
        if _made_by(self.previous) != _made_by(row):
            self.abandon()
            raise self._lost(self.previous, row)

    def refuse_overtaken(self) -> None:
        """Raises LostRace if another run has committed since :meth:`begin`: what this one finds wrong may be due to
        that alone, since it reads the tables of both.
        """
        now = self.ledger.row(self.name)
        if self._attempt is not None and _made_by(now) != _made_by(self.previous):
            raise self._lost(now, self.previous)

    def _lost(self, now: LedgerRow | None, began: LedgerRow | None) -> LostRace:
        return LostRace(
            f"{self.name}: another run was faster: the ledger is at commit {now.seq if now else 'none'}, this run began"
            f" at {began.seq if began else 'none'}. Nothing of this run was committed, and there is nothing to repair:"
            " the next run goes on from what the ledger says."
        )

    def abandon(self) -> None:
        """Ends an attempt that was not committed: what it has staged and spilled is removed. So does forgetting it."""
        if self._attempt is not None:
            self._attempts.remove(self.name, self._attempt)
            self._attempt = self.state = None
            self._end()

    def __del__(self) -> None:
        with suppress(Exception):
            self.abandon()

    def _end(self) -> None:
        if self._lock is not None:
            self._attempts.end(self._lock)
            self._lock = None

    def _was_committed(self, attempt: str) -> bool:
        return self.ledger.made(self.name, attempt)

    def stage(
        self,
        table_path: str | PathLike[str],
        adds: Iterable[DataFile] = (),
        removes: Iterable[DataFile] = (),
        *,
        base_version: int | None = None,
        schema: pa.Schema | None = None,
        anew: bool = False,
    ) -> None:
        """Name files to add to and remove from a table, which must exist. Several calls for one table add up.

        ``base_version`` is the version at which the caller read the files that it removes; the latest if not given.
        ``schema``: the table gets these columns and holds nothing but ``adds`` then. ``anew``: whatever has become of
        the table is taken as it is; for who exchanges all of its rows.
        Raises ForeignWrite if others changed the table, TableError if the actions do not fit it.
        """
        self._begun()
        adds, removes = list(adds), list(removes)
        relative = self.layout.relative(table_path)
        staged = self._staged.get(relative)
        log = self.ledger.log(relative)
        if staged is None:
            latest = log.version()
            previous_seq = log.app_version(f"{self.name}:{self.registration}", latest)
            if not anew:
                log.foreign_commits(log.last_version_of({self.name}, latest), {self.name}, latest)
                self._check_state(log.uri, relative, previous_seq)
            staged = _Staged(latest if base_version is None else base_version, previous_seq)
        elif base_version is not None and base_version != staged.base_version:
            raise TableError(
                f"The table {relative} was staged on version {staged.base_version} and on {base_version}. Read it once."
            )
        staged.schema = schema or staged.schema
        log.validate([*staged.adds, *adds], [*staged.removes, *removes], staged.base_version, staged.schema)
        staged.adds += adds
        staged.removes += removes
        self._staged[relative] = staged

    def content(self, table_path: str | PathLike[str]) -> list[DataFile]:
        """The files that a table will hold once this is committed."""
        relative = self.layout.relative(table_path)
        log, staged = self.ledger.log(relative), self._staged.get(relative)
        live = log.files() if log.exists() else []
        if staged is None:
            return live
        gone = {file.path for file in staged.removes}
        kept = [] if staged.schema is not None else [file for file in live if file.path not in gone]
        return [*kept, *staged.adds]

    def commit(
        self,
        committed: int | None,
        pins: dict[str, dict[str, Any]] | None = None,
        info: dict[str, Any] | None = None,
        forget: Iterable[str] = (),
        numbers: int = 1,
    ) -> LedgerRow:
        """Commit to the ledger and apply. Returns the row as the ledger holds it. ``forget``: tables, by their paths in
        the data folder, that this name does not have any more. ``numbers``: how many sequence numbers it takes, where
        rows of one commit count as those of several; its own is the last of them.

        Raises LostRace if another run has committed since :meth:`begin`: then nothing of this one is left. Any other
        error after the ledger commit leaves a commit that stands and is applied by the next run.
        """
        attempt = self._begun()
        previous = self.previous
        expected = None if previous is None else previous.seq
        seq = (expected or 0) + numbers
        touched = {
            table: seq for table, staged in self._staged.items() if staged.adds or staged.removes or staged.schema
        }
        known = self._known()
        if known is not None:
            known = {table: last for table, last in known.items() if table not in set(forget)}
        wanted = LedgerRow(
            name=self.name,
            kind=self.kind,
            registration=self.registration,
            seq=seq,
            committed=committed,
            attempt=attempt,
            pins=pins or {},
            actions={
                table: {
                    "base_version": staged.base_version,
                    "previous_seq": staged.previous_seq,
                    "adds": [file.stored() for file in staged.adds],
                    "removes": [{**file.stored(), "stats": ""} for file in staged.removes],
                    **({} if staged.schema is None else {"schema": schema_text(staged.schema)}),
                }
                for table, staged in sorted(self._staged.items())
                if table in touched
            },
            info={**(info or {}), **({} if known is None else {TABLES: {**known, **touched}})},
            at=now_micros(),
        )
        crash_point("publish.staged")
        self._attempt = self.state = None  # from here on an error does not tell whether the commit stands
        try:
            row = self.ledger.commit(wanted, expected, None if previous is None else previous.attempt, numbers)
        except LostRace:
            self._attempt = attempt
            self.abandon()
            raise
        self.state = State.COMMITTED
        crash_point("publish.ledger_committed")
        apply(self.ledger, row)
        self.state = State.APPLIED
        self._end()
        return row

    def _known(self) -> dict[str, int] | None:
        """Per table the last sequence of this registration that changed it; None where rows before do not tell."""
        previous = self.previous
        if previous is None or previous.registration != self.registration:
            return {}
        return previous.info.get(TABLES)

    def _check_state(self, uri: str, table: str, applied: int | None) -> None:
        """Refuses a table that lacks commits of the ledger, or has commits that the ledger knows nothing of."""
        known = self._known()
        last = self.previous.seq if self.previous is not None else 0
        if (applied or 0) > last if known is None else applied != known.get(table):
            now = self.ledger.row(self.name)
            if now is None or self.previous is None or now.attempt != self.previous.attempt:
                raise self._lost(now, self.previous)
            said = f"none beyond {last}" if known is None else f"{known.get(table)}"
            raise TableError(
                f"The table {uri} holds commit {applied} of {self.name} as its last, the ledger says {said}."
                f" {_NOT_ONE_STATE}"
            )

    def _begun(self) -> str:
        if self._attempt is None:
            raise TableError(f"{self.name}: begin() a publication before staging or committing; a commit ends it.")
        return self._attempt


def _made_by(row: LedgerRow | None) -> tuple[str, int, str] | None:
    """What tells a commit of a name from all others, also from those of a name that was dropped and made anew."""
    return None if row is None else (row.registration, row.seq, row.attempt)


def recover(data_folder: str | PathLike[str], ledger: Ledger, names: Iterable[str] | None = None) -> list[str]:
    """Apply what the ledger holds and the tables lack; returns the names that needed it. Called before every slice."""
    _same_folder(data_folder, ledger)
    head = ledger.head()
    wanted = head.keys() if names is None else set(names) & head.keys()
    return [name for name in sorted(wanted) if _roll_forward(ledger, head[name])]


def apply(ledger: Ledger, row: LedgerRow) -> None:
    """Bring every table of a committed ledger row up to it, then append the row to the history. Twice is harmless."""
    for table in sorted(row.actions):
        _apply_table(ledger.log(table), row, table)
        crash_point(f"publish.applied:{table}")
    if (exchanged := row.of_query.exchanged) is not None:
        deployed = Deployed(ledger.layout.data_folder, ledger.storage_options)
        deployed.exchange(row.name, row.registration, exchanged.old, dict(exchanged.new), row.at)
    ledger.append_history(row)
    crash_point("publish.history")


def state_of(ledger: Ledger, row: LedgerRow) -> State:
    """How far the commit of a ledger row is: the history is written last, so a row that stands there is applied
    everywhere.
    """
    return State.APPLIED if (ledger.applied_seq(row) or 0) >= row.seq else State.COMMITTED


def _roll_forward(ledger: Ledger, row: LedgerRow) -> bool:
    if state_of(ledger, row) is State.APPLIED:
        return False
    apply(ledger, row)
    return True


_NOT_ONE_STATE = (
    "The table and the ledger are not of one state: were folders copied or restored one by one? Restore the whole data"
    " folder from one moment, or drop the name and run it anew."
)


def _apply_table(log: DeltaLog, row: LedgerRow, table: str) -> None:
    action = row.actions[table]
    adds = [DataFile.of_stored(file) for file in action["adds"]]
    removes = [DataFile.of_stored(file) for file in action["removes"]]
    tries = 0
    while True:
        version = log.version()
        applied = log.app_version(row.app, version)
        # Seen after each commit too: what the log says counts, not what the commit call said.
        if applied is not None and applied >= row.seq:
            return
        if applied != action["previous_seq"]:
            raise TableError(
                f"The table {log.uri} holds commit {applied} of {row.name}, but commit {row.seq} follows"
                f" {action['previous_seq']}. {_NOT_ONE_STATE}"
            )
        optimizes = log.foreign_commits(action["base_version"], {row.name}, version)
        schema = action.get("schema")
        actions = (adds, []) if schema else adjust(log, adds, removes, optimizes, version)
        try:
            tag = {"sweeparea": f"{row.name}/{row.seq}"}
            log.commit(*actions, app=(row.app, row.seq), base_version=version, metadata=tag, schema=schema)
        except CommitConflict:
            tries += 1
            time.sleep(random.uniform(0.002, 0.02) * min(tries, 10))
        except TableError as error:
            gone = next(
                (file.path for file in adds if not is_file(f"{log.uri}/{file.path}", log.storage_options)), None
            )
            if gone is None:
                raise
            raise TableError(
                f"Commit {row.seq} of {row.name} stands in the ledger, but its file {gone} of {log.uri} was deleted"
                " before it was applied, for example by a VACUUM after more days than its retention. Restore the file"
                f" from a backup, or drop {row.name} and run it anew."
            ) from error


def _same_folder(data_folder: str | PathLike[str], ledger: Ledger) -> None:
    if Layout(data_folder).data_folder != ledger.layout.data_folder:
        raise TableError(f"The ledger of {ledger.layout.data_folder} cannot commit to tables in {data_folder}.")
