"""An application as its DAGs need it, read from ``queries/<app>/*.cql`` without Airflow, Spark or any table."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from sweeparea.dags.scheduling import USUAL, Scheduling, length
from sweeparea.heartbeats.minimum import INFINITE, query_heartbeat
from sweeparea.infra import dag_names, environments, locations, settings
from sweeparea.infra.dag_names import dag_prefix
from sweeparea.infra.errors import SweepAreaError
from sweeparea.tables.publication.name_kinds import NameKind

DEFAULT_SLICE = timedelta(days=1)
APPS_VARIABLE = "SWEEPAREA_APPS"
"""Names or paths of the applications to load, separated by commas; all of those under ``queries/`` if unset.

``shop@dev`` is one in an environment.
"""

DEFAULT_MAINTENANCE = timedelta(hours=1)


class ApplicationError(SweepAreaError):
    """An application that cannot be turned into DAGs."""

    type = "BindError"
    exit_code = 2


@dataclass(frozen=True)
class Source:
    """A stream or a relation. ``uri`` is its source Delta table; a ``static`` relation is copied from it once, the
    heartbeat of a ``clock`` is the time at which it was read. ``files`` is the folder of a source FROM FORMAT (empty:
    it has none), ``uri`` the table in which it is landed; None for a Delta table.
    """

    name: str
    kind: NameKind
    static: bool
    uri: str
    text: str
    place: str
    clock: bool = False
    files: str | None = None
    scheduling: Scheduling = USUAL


@dataclass(frozen=True)
class Query:
    """A continuous query. ``inputs`` are the streams, relations and queries that it reads; ``tables`` those that
    MATERIALIZE names, beside the one that is called as the query.

    ``slice`` is the length of a backfill's slices. ``group`` names the DAG that runs it live together with others, None
    where its own does; ``alert_after`` microseconds behind the clock somebody is alerted, None: never.
    """

    name: str
    inputs: tuple[str, ...]
    slice: timedelta
    text: str
    place: str
    tables: tuple[str, ...] = ()
    scheduling: Scheduling = USUAL
    group: str | None = None
    alert_after: int | None = None


@dataclass(frozen=True)
class ApplicationDags:
    """``data_folder`` holds its tables and its ledger. ``maintenance``: how often these are maintained;
    ``parallelism``: how many queries of a group run at a time, None: as many as there are cores; ``pool_slots``: how
    many tasks in a pool that is made for it; ``alert_quality``: of which expectations that are not met somebody is
    alerted: warn, all (also those that keep rows out), or off. ``folder``: that of its files, perhaps with ``@env``,
    where it is loaded by its path; empty for one under ``queries/``.
    """

    name: str
    data_folder: str
    sources: dict[str, Source]
    queries: dict[str, Query]
    maintenance: timedelta = DEFAULT_MAINTENANCE
    scheduling: Scheduling = USUAL
    parallelism: int | None = None
    alert_after: int | None = None
    pool_slots: int | None = None
    alert_quality: str = "warn"
    folder: str = ""

    @property
    def place(self) -> str:
        """What its tasks, on whatever machine, open it by."""
        return self.folder or self.name

    @property
    def groups(self) -> dict[str, tuple[Query, ...]]:
        """The queries that one DAG runs together, by the name that they give it."""
        found: dict[str, tuple[Query, ...]] = {}
        for query in self.queries.values():
            if query.group is not None:
                found[query.group] = (*found.get(query.group, ()), query)
        return found

    @property
    def limits(self) -> dict[str, int]:
        """Microseconds that streams, relations and queries may be behind the clock, where somebody is alerted."""
        own = {name: query.alert_after for name, query in self.queries.items()}
        sources = {name: self.alert_after for name, source in self.sources.items() if not source.static}
        return {name: limit for name, limit in {**sources, **own}.items() if limit is not None}

    def notified(self, name: str) -> str | None:
        """Who is alerted of a stream, a relation or a query; one that is gone is the application's."""
        query = self.queries.get(name)
        return (self if query is None else query).scheduling.notify

    @cached_property
    def watched_text(self) -> str:
        """``watched`` as JSON."""
        return json.dumps(self.watched(), sort_keys=True)

    def watched(self) -> dict[str, Any]:
        """What the application's wake-up trigger looks at (``heartbeats.trigger.Watched``)."""
        return {
            "data_folder": self.data_folder,
            "sources": {name: source.uri for name, source in self.sources.items()},
            "pinned": [name for name, source in self.sources.items() if source.static],
            "clocks": [name for name, source in self.sources.items() if source.clock],
            "queries": {name: list(query.inputs) for name, query in self.queries.items()},
            "formats": {name: source.files for name, source in self.sources.items() if source.files is not None},
            "limits": self.limits,
            "application": self.name,
        }


def application_names() -> list[str]:
    """The applications under ``queries/``: those of its folders that hold ``.cql`` files and are ``scheduled``, or
    those that SWEEPAREA_APPS lists, by name or path.

    A listed one that has no such folder stays in the list, so that loading it tells what is wrong.
    """
    listed = os.environ.get(APPS_VARIABLE, "").strip()
    if listed:
        return sorted({name.strip() for name in listed.split(",") if name.strip()})
    folders = {path.parent for path in settings.applications_folder().glob("*/*.cql")}
    return sorted(folder.name for folder in folders if _scheduled(folder))


def _scheduled(folder: Path) -> bool:
    try:
        return environments.scheduled(folder)
    except SweepAreaError:
        return True  # loading it tells what is wrong


def load(application: str, overriding: Mapping[str, str] | None = None) -> ApplicationDags:
    """Parses an application: a folder's name under ``queries/``, or its path, each perhaps with ``@environment``.
    ``overriding``: settings that stand in for SET of the files. Raises a SweepAreaError that names file and line of
    what is wrong.
    """
    from sweeparea.cql.declarations.catalog import Catalog

    folder, env = environments.located(application)
    by_path = "/" in application
    if by_path:
        folder = Path(os.path.abspath(folder))  # not resolved: a link is exchanged when the files behind it are
    name = folder.name if env is None else f"{folder.name}@{env}"
    if not any(folder.glob("*.cql")):
        raise ApplicationError(
            f"The application {name} has no .cql files in {folder}. Correct {APPS_VARIABLE}, or put the application's "
            "streams and queries there."
        )
    environment = environments.chosen(folder, env)
    catalog = Catalog.load(folder, environment)
    catalog.settings |= overriding or {}
    data = environment.data or environments.default_data(folder.resolve())
    scheduling = Scheduling.of(catalog.settings)
    sources = {s.name: _source(s, NameKind.STREAM, data, scheduling) for s in catalog.streams.values()}
    sources |= {s.name: _source(s, NameKind.RELATION, data, scheduling) for s in catalog.relations.values()}
    moving = {*catalog.queries, *(name for name, source in sources.items() if not source.static)}
    queries = {query: _query(catalog, query, {*sources, *catalog.queries}, moving) for query in catalog.queries}
    every = catalog.settings.get("maintenance.every")
    made = ApplicationDags(
        name,
        str(data),
        sources,
        queries,
        DEFAULT_MAINTENANCE if every is None else length(every),
        scheduling,
        _whole(catalog.settings, "parallelism"),
        _micros(catalog.settings),
        _whole(catalog.settings, "pool.slots"),
        catalog.settings.get("alert_quality", "warn").lower(),
        (str(folder) if env is None else f"{folder}@{env}") if by_path else "",
    )
    for group, members in made.groups.items():
        if len({query.scheduling.cron for query in members}) > 1:
            raise ApplicationError(
                f"The queries of dag = {group!r} ({', '.join(query.name for query in members)}) have several schedules,"
                " and one DAG runs them: give all the same, or those with another a dag of their own."
            )
    if faults := dag_names.faults(name, sources, queries, made.groups, alerts=bool(made.limits)):
        raise ApplicationError(" ".join(faults))
    return made


def load_all(dag_id: str | None = None) -> tuple[list[ApplicationDags], dict[str, SweepAreaError]]:
    """All applications that can be loaded, and what is wrong with each of the others, whatever it is: one's fault must
    not stop another's DAGs.

    ``dag_id`` leaves only the application whose DAG it is: a task needs no other.
    """
    loaded, broken = [], {}
    prefixes: dict[str, str] = {}
    for name in application_names():
        if dag_id is not None and not dag_id.startswith(f"{dag_prefix(name)}__"):
            continue
        other = prefixes.setdefault(dag_prefix(name), name)
        try:
            if other != name:
                raise ApplicationError(f"The application {name} would get the DAGs of {other}. Rename one of them.")
            loaded.append(load(name))
        except Exception as error:
            broken[name] = as_fault(error)
    return loaded, broken


def as_fault(error: Exception) -> SweepAreaError:
    """An error of one application as what is told of it."""
    return error if isinstance(error, SweepAreaError) else ApplicationError(f"{type(error).__name__}: {error}")


class ApplicationCache:
    """``load_all``, parsed anew only when a file has changed: for servers that are asked every few seconds."""

    def __init__(self) -> None:
        self._seen: tuple[Any, ...] | None = None
        self._loaded: tuple[list[ApplicationDags], dict[str, SweepAreaError]] = ([], {})

    def __call__(self) -> tuple[list[ApplicationDags], dict[str, SweepAreaError]]:
        names = application_names()
        folders = [environments.located(name)[0] for name in names]
        files = [path for folder in folders for path in (*sorted(folder.glob("*.cql")), folder / environments.FILE)]
        seen = (*names, *((str(path), path.stat().st_mtime_ns) for path in files if path.is_file()))
        if seen != self._seen:
            self._loaded = load_all()
            self._seen = seen
        return self._loaded


def _source(statement: Any, kind: NameKind, data: locations.Folder, scheduling: Scheduling) -> Source:
    from sweeparea.cql.syntax.statements import HeartbeatKind, SourceKind

    static = kind == NameKind.RELATION and statement.contents == "static"
    beat = None if statement.heartbeat is None else statement.heartbeat.kind
    clock = getattr(statement, "contents", "") == "feed" or beat == HeartbeatKind.CLOCK
    source = statement.source
    uri, files = _locate(source.uri, data), None
    if source.kind == SourceKind.FORMAT:
        from sweeparea.cql.syntax.source_formats import in_folder
        from sweeparea.tables.layout import Layout

        uri, files = Layout(str(data)).landing(statement.name), uri if in_folder(source) else ""
    return Source(statement.name, kind, static, uri, statement.written, _line(statement), clock, files, scheduling)


def _query(catalog: Any, name: str, known: set[str], moving: set[str]) -> Query:
    statement = catalog.queries[name]
    inputs = tuple(dict.fromkeys(_table_owner(table, known) for table in catalog.dependencies(name)))
    if not moving.intersection(inputs):
        query_heartbeat(f"{name} ({_line(statement)})", dict.fromkeys(inputs, INFINITE))  # refuses it, with the reason
    chosen = {**catalog.settings, **dict(statement.settings)}
    slice_ = length(chosen["backfill_slice"]) if "backfill_slice" in chosen else DEFAULT_SLICE
    tables = tuple(f"{name}__{kind}" for kind, _ in statement.materialize)
    scheduling, written, group = Scheduling.of(chosen), statement.written, chosen.get("dag")
    return Query(name, inputs, slice_, written, _line(statement), tables, scheduling, group, _micros(chosen))


def _whole(settings: Mapping[str, str], name: str) -> int | None:
    return int(settings[name]) if name in settings else None


def _micros(settings: Mapping[str, str]) -> int | None:
    """``alert_after`` in microseconds."""
    after = settings.get("alert_after")
    return None if after is None else length(after) // timedelta(microseconds=1)


def _table_owner(table: str, names: set[str]) -> str:
    """The query that a materialization (``q__istream``) belongs to; other names stay."""
    owner = table.rpartition("__")[0]
    return owner if table not in names and owner in names else table


def _locate(uri: str, data: locations.Folder) -> str:
    """Relative paths are relative to the application's data folder."""
    return uri if "://" in uri or uri.startswith("/") else str(data / uri)


def _line(statement: Any) -> str:
    return f"{statement.place.file}:{statement.place.line}"
