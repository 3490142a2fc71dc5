"""What the ``.cql`` files of an application say, and where its tables are. Without Spark."""

from __future__ import annotations

import difflib
import functools
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sweeparea.cql.declarations.canonical import Declaration, declaration
from sweeparea.cql.declarations.catalog import Catalog, base_name
from sweeparea.cql.functions.column_types import Analyze
from sweeparea.cql.text.errors import raise_all
from sweeparea.cql.text.hidden_names import is_hidden
from sweeparea.infra import environments, locations, settings, storage
from sweeparea.infra.errors import SweepAreaError, UsageError
from sweeparea.operators.plan.plan import UserFunction
from sweeparea.operators.time.domain import TimeDomain
from sweeparea.operators.user_code.user_modules import Modules
from sweeparea.spark_jobs.declarations.user_code import registered
from sweeparea.tables.layout import Layout
from sweeparea.tables.publication.ledger import Ledger, LedgerRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.cql.syntax.statements import CreateQuery, CreateRelation, CreateStream


@dataclass
class Declarations:
    """``catalog`` is what the ``.cql`` files say, ``layout`` where the tables are, ``ledger`` what has been committed.

    ``name`` is what reports call it (``shop``, ``shop@dev``), ``given`` and ``options`` how its user named it on the
    command line, where that is known. ``faults`` are the errors of its files where it was
    opened leniently. ``analyze`` tells types that only Spark knows, where there is one to ask.
    """

    name: str
    catalog: Catalog
    data: locations.Folder
    folder: Path | None = None
    faults: tuple[SweepAreaError, ...] = ()
    analyze: Analyze | None = None
    given: str = ""
    options: tuple[str, ...] = ()
    layout: Layout = field(init=False)
    ledger: Ledger = field(init=False)
    _definitions: dict[str, Declaration] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.layout = Layout(str(self.data))
        self.ledger = Ledger(str(self.data))

    @classmethod
    def open(
        cls, application: str | Path, data: str | Path | None = None, env: str | None = None, lenient: bool = False
    ) -> Self:
        """``application`` is a folder of ``.cql`` files, or the name of one under ``queries/``.

        ``env`` is an environment of its ``sweeparea.toml``, also written ``shop@dev``. ``lenient`` keeps errors of the
        files in ``faults`` instead of raising them.
        """
        given = str(application)
        options = (*(("--data", str(data)) if data else ()), *(("--env", env) if env else ()))
        folder = Path(application)
        if not folder.is_dir():
            application, named = environments.split_name(str(application))
            env = env or named
            folder = Path(application)
        if not folder.is_dir():
            folder = settings.application(str(application))
        if not folder.is_dir():
            known = sorted(p.parent.name for p in settings.applications_folder().glob("*/*.cql"))
            listed = ", ".join(dict.fromkeys(known)) or "none"
            raise UsageError(
                f"There is no application {application}: neither {Path(application).absolute()} nor {folder} is a"
                f" folder. Give a folder of .cql files or one of the names under {settings.applications_folder()}:"
                f" {listed}."
            )
        folder = folder.resolve()
        environment = environments.chosen(folder, env)
        catalog, faults = Catalog.load_leniently(folder, environment)
        if not lenient:
            raise_all(faults)
        name = f"{folder.name}@{env}" if env else folder.name
        storage.use(environment.storage)
        where = locations.folder(data) if data else environment.data or environments.default_data(folder)
        return cls(name, catalog, where, folder, tuple(faults), given=given, options=options)

    def command(self, verb: str, *arguments: str) -> str:
        """What to type to run a command on this application, as its user has named it."""
        return shlex.join(["sweeparea", *verb.split(), self.given or self.name, *arguments, *self.options])

    # -- names ---------------------------------------------------------------------------------------------------------

    def source(self, name: str) -> CreateStream | CreateRelation:
        """The declaration of a stream or relation."""
        declared = {**self.catalog.streams, **self.catalog.relations}
        if name not in declared:
            raise _unknown("stream or relation", name, declared)
        return declared[name]

    def stream(self, name: str) -> CreateStream:
        if name not in self.catalog.streams:
            raise _unknown("stream", name, self.catalog.streams)
        return self.catalog.streams[name]

    def query(self, name: str) -> CreateQuery:
        if name not in self.catalog.queries:
            raise _unknown("continuous query", name, self.catalog.queries)
        return self.catalog.queries[name]

    def is_query(self, name: str) -> bool:
        """Whether a name is a continuous query, declared or hidden."""
        return name in self.catalog.queries or is_hidden(name)

    def is_static(self, name: str) -> bool:
        """Whether an input is a snapshot, whose heartbeat is infinity."""
        return name in self.catalog.relations and self.catalog.relations[name].contents == "static"

    def never_changes(self, name: str, row: LedgerRow | None) -> bool:
        """Whether an input, whose ledger row is ``row``, has one and the same contents at all instants: a snapshot that
        was not refreshed.
        """
        return self.is_static(name) and not (row is not None and row.of_source.refreshed)

    def unchanging(self) -> tuple[str, ...]:
        """The relations that never change."""
        head = self.ledger.head()
        return tuple(name for name in self.catalog.relations if self.never_changes(name, head.get(name)))

    def scale(self, name: str, time: TimeDomain) -> int:
        """How many of an admitted input's own ticks make one of a query's: relations count in microseconds and take the
        query's chronon.
        """
        return time.stored_scale if name in self.catalog.relations else 1

    def located(self, uri: str) -> str:
        """A path of a declaration: an address or absolute as it is, else from the data folder on."""
        return uri if "://" in uri or uri.startswith("/") else str(self.data / uri)

    def owner(self, name: str) -> str:
        """The query whose materialization an input is; any other name as it is."""
        base = base_name(name)
        return base if base != name and base in self.catalog.queries else name

    def definition(self, name: str) -> Declaration:
        """The canonical text of a name's declaration, with its fingerprint."""
        if name not in self._definitions:
            self._definitions[name] = declaration(self.catalog.declared()[name])
        return self._definitions[name]

    # -- Python sources, types -----------------------------------------------------------------------------------------

    @functools.cached_property
    def modules(self) -> Modules | None:
        """The Python sources beside the ``.cql`` files, as they were when they were first needed."""
        if self.folder is None:
            return None
        sources = (*self.catalog.streams.values(), *self.catalog.relations.values())
        policies = (s.heartbeat.policy for s in sources if s.heartbeat is not None and s.heartbeat.policy)
        return Modules.of(self.folder, *(f.target for f in self.catalog.functions.values()), *policies)

    @functools.cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The user's own functions, aggregates and windows, imported."""
        return registered(self.catalog.functions.values(), self.modules)

    @contextmanager
    def analyzing(self, spark: SparkSession) -> Iterator[None]:
        """While inside, types are asked of a session."""
        from sweeparea.spark_jobs.declarations.analysis import analyzer

        with self.asking(analyzer(spark)):
            yield

    @contextmanager
    def asking(self, analyze: Analyze | None) -> Iterator[None]:
        """While inside, types are asked of ``analyze``; None: of what they were asked of before."""
        before, self.analyze = self.analyze, analyze or self.analyze
        try:
            yield
        finally:
            self.analyze = before


def _unknown(what: str, name: str, known: object) -> SweepAreaError:
    names = sorted(str(n) for n in known)  # type: ignore[attr-defined]
    near = difflib.get_close_matches(name, names, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UsageError(f"There is no {what} named {name}.{hint} Known: {', '.join(names) or 'none'}.")
