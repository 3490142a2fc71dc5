"""The declarations of an application: all statements of its ``*.cql`` files, without opening a table.

Loading is parsing only (no Spark, no Delta), since Airflow does it each time it reads its DAG files.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sweeparea.cql.declarations.dependency_order import cycle_error, in_order_of_dependency
from sweeparea.cql.declarations.environment_sources import exchange_sources, faults_of_settings
from sweeparea.cql.declarations.known_names import KnownNames, names_in
from sweeparea.cql.declarations.names import base_name, clash
from sweeparea.cql.declarations.offered import not_offered_statements
from sweeparea.cql.declarations.suites import expanded
from sweeparea.cql.syntax.parser import parse_leniently, read_file
from sweeparea.cql.syntax.statements import (
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    ExpectationKind,
    SetSetting,
    Statement,
)
from sweeparea.cql.syntax.trees import table_names
from sweeparea.cql.text.errors import BindError, in_order, listing, nearest, not_offered, raise_all
from sweeparea.infra.environments import Environment
from sweeparea.infra.errors import SetupError, SweepAreaError
from sweeparea.operators.plan.plan import UserKind

_WORD = re.compile(r"\w+")
Declared = CreateStream | CreateRelation | CreateQuery | CreateFunction


@dataclass
class Catalog:
    """Streams, relations and queries by name; queries in an order in which each follows those that it reads."""

    streams: dict[str, CreateStream] = field(default_factory=dict)
    relations: dict[str, CreateRelation] = field(default_factory=dict)
    queries: dict[str, CreateQuery] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    functions: dict[str, CreateFunction] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    cycles: dict[str, BindError] = field(default_factory=dict)
    """Queries that read themselves, directly or through others, where the files were read leniently."""
    complete: bool = True
    """Whether every statement of the files could be read."""
    unread: dict[str, SweepAreaError] = field(default_factory=dict)
    """For the names, in lower case, that statements which cannot be read were to declare: what is wrong with those."""

    @classmethod
    def load(cls, folder: str | Path, environment: Environment | None = None) -> Catalog:
        """The catalog of a folder of ``*.cql`` files, read in the order of their names. All errors of all files at
        once."""
        catalog, errors = cls.load_leniently(folder, environment)
        raise_all(errors)
        return catalog

    @classmethod
    def load_leniently(
        cls, folder: str | Path, environment: Environment | None = None
    ) -> tuple[Catalog, list[SweepAreaError]]:
        """As ``load``, but returns what could be read together with all errors, for reports on everything at once."""
        root = Path(folder)
        if not root.is_dir():
            raise SetupError(f"{root} is no folder: an application is a folder of *.cql files, such as queries/flights")
        files = sorted(root.glob("*.cql"))
        if not files:
            raise SetupError(
                f"{root} holds no *.cql file, so there is nothing to run. Declare a stream and a query in one."
            )
        statements: list[Statement] = []
        errors: list[SweepAreaError] = []
        unread: dict[str, SweepAreaError] = {}
        for path in files:
            try:
                found, faults, names = parse_leniently(read_file(path), str(path))
                for statement in found:
                    whole, wrong = expanded(statement, path.parent)
                    statements.append(whole)
                    errors += wrong
                errors += faults
                unread |= names
            except SweepAreaError as error:
                errors.append(error)
        catalog, more = cls._of(statements)
        catalog.complete, catalog.unread = not errors, unread
        errors += [*more, *catalog._unknown_references()]
        if errors:  # else they are told when the query is bound
            known = catalog._known_names()
            for query in catalog.queries.values():
                errors += known.unknown_in(query)
        if environment is not None:
            errors += catalog._use(environment)
        return catalog, in_order(errors)

    @classmethod
    def of(cls, statements: Iterable[Statement]) -> Catalog:
        """The catalog of statements. A name may be declared once, whatever its kind."""
        catalog, errors = cls._of(statements)
        raise_all([*errors, *catalog._unknown_references()])
        return catalog

    @classmethod
    def _of(cls, statements: Iterable[Statement]) -> tuple[Catalog, list[SweepAreaError]]:
        catalog = cls()
        taken: dict[str, Statement] = {}
        errors: list[SweepAreaError] = []
        for statement in statements:
            errors += not_offered_statements(statement)
            if isinstance(statement, SetSetting):
                catalog.settings[statement.name] = statement.value
            elif isinstance(statement, Declared):
                error = clash(statement.name, statement.place, taken)
                if error is not None:
                    errors.append(error)
                    continue
                taken[statement.name.lower()] = statement
                if isinstance(statement, CreateStream):
                    catalog.streams[statement.name] = statement
                elif isinstance(statement, CreateRelation):
                    catalog.relations[statement.name] = statement
                elif isinstance(statement, CreateFunction):
                    catalog.functions[statement.name] = statement
                else:
                    catalog.queries[statement.name] = statement
            else:
                words = " ".join(statement.text.split()[:2]).upper()
                hint = f"Files declare; `sweeparea run APP -c '{words} ..'` acts"
                errors.append(not_offered(f"the statement {words} .. in a file", statement.place, hint))
        errors += catalog._order()
        return catalog, errors

    def _unknown_references(self) -> list[SweepAreaError]:
        """Expectations that reference what nobody declares, or a stream, which holds nothing at an instant."""
        errors: list[SweepAreaError] = []
        known = {n.lower(): n for n in (*self.relations, *self.queries)}
        for statement in (*self.streams.values(), *self.relations.values(), *self.queries.values()):
            for spec in statement.expectations:
                other = str(dict(spec.arguments).get("other", ""))
                if spec.kind != ExpectationKind.REFERENCES or other.lower() in known:
                    continue
                what = f"constraint {spec.name} of {statement.name}"
                at = spec.argument_places.get("other", spec.place)
                if other in self.streams:
                    hint = "Name a relation, or a query whose result is one"
                    errors.append(
                        BindError(f"{what}: {other} is a stream, which holds nothing at an instant", at, hint)
                    )
                elif other.lower() not in self.unread:
                    hint = nearest(other, known.values()) or f"There are {listing(known.values()) or 'none'}"
                    errors.append(BindError(f"{what}: there is no relation or query {other}", at, hint))
        return errors

    def _use(self, environment: Environment) -> list[SweepAreaError]:
        """Exchanges sources and settings for those of an environment."""
        self.environment = environment
        self.settings |= {name.lower(): value for name, value in environment.settings.items()}
        return [*faults_of_settings(environment), *exchange_sources(self.streams, self.relations, environment)]

    def declared(self) -> dict[str, Declared]:
        """Everything that is declared, by name: functions, sources, then queries, each after what it reads."""
        return {**self.functions, **self.streams, **self.relations, **self.queries}

    def query(self, name: str) -> CreateQuery:
        """A query by name, without regard to case. BindError with the nearest name."""
        for known, query in self.queries.items():
            if known.lower() == name.lower():
                return query
        known_names = list(self.queries)
        raise BindError(
            f"there is no continuous query {name}",
            None,
            nearest(name, known_names) or f"Queries: {listing(known_names) or 'none'}",
        )

    def dependencies(self, query: CreateQuery | str) -> tuple[str, ...]:
        """What a query reads: declared names as they were declared, in the order of their first use.

        A materialization of a query counts as the query (``q__istream`` as ``q``). Unknown names are left out: the
        binder tells of them.
        """
        return tuple(dict.fromkeys(self.owner(name) for name in self.inputs(query)))

    def inputs(self, query: CreateQuery | str) -> tuple[str, ...]:
        """What a query reads, as it reads it: declared names, and materializations of queries (``q__istream``)."""
        statement = self.query(query) if isinstance(query, str) else query
        declared, queries = self._spelled
        found: dict[str, None] = {}
        for name in table_names(statement.select):
            known = declared.get(name.lower())
            owner = queries.get(base_name(name).lower())
            if known is not None:
                found.setdefault(known)
            elif owner is not None:
                found.setdefault(f"{owner}__{name.lower().rpartition('__')[2]}")
        return tuple(found)

    @functools.cached_property
    def _spelled(self) -> tuple[dict[str, str], dict[str, str]]:
        """By name in lower case the name as it was declared: of all that can be read, and of queries. Kept from when
        the queries were first put in order: no name is added later.
        """
        queries = {n.lower(): n for n in self.queries}
        return {n.lower(): n for n in (*self.streams, *self.relations)} | queries, queries

    def functions_of(self, query: CreateQuery | str) -> tuple[str, ...]:
        """The user's functions, aggregates and windows that a query's text names, as they were declared."""
        statement = self.query(query) if isinstance(query, str) else query
        called = {word.lower() for word in _WORD.findall(statement.text)}
        return tuple(name for name in self.functions if name.lower() in called)

    def check_names(self, query: CreateQuery) -> None:
        """BindErrors for names in FROM that nothing has: the binder, given a query's inputs only, cannot say what there
        is. A query that names what could not be read gets the fault of that.
        """
        rests = [self.unread[n.lower()] for n in names_in(query) if n.lower() in self.unread]
        raise_all([*rests, *self._known_names().unknown_in(query)])

    def _known_names(self) -> KnownNames:
        kinds = dict.fromkeys(self.streams, "stream") | dict.fromkeys(self.relations, "relation")
        kinds |= dict.fromkeys((*self.queries, *self.unread), "query")
        windows = [f.name for f in self.functions.values() if f.kind == UserKind.WINDOW]
        functions = {name.lower() for name in self.functions}
        return KnownNames(kinds, tuple(self.queries), windows, functions, self.unread.keys())

    def owner(self, name: str) -> str:
        """The query that a materialization belongs to (``q`` of ``q__istream``); any other name as it is."""
        base = base_name(name)
        return base if base in self.queries else name

    def readers(self, name: str) -> tuple[str, ...]:
        """The queries that read a name directly, in order of dependency."""
        return tuple(query for query in self.queries if name in self.dependencies(query))

    def _order(self) -> list[SweepAreaError]:
        """Puts the queries in order of dependency. Every cycle is told of once."""
        self.queries, cycles = in_order_of_dependency(self.queries, self.dependencies)
        errors: list[SweepAreaError] = []
        for cycle in cycles:
            error = cycle_error(cycle, self.queries)
            self.cycles |= dict.fromkeys(cycle, error)
            errors.append(error)
        return errors
