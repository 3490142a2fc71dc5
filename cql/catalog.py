"""The declarations of an application: all statements of its ``*.cql`` files, without opening a table.

Loading is parsing only (no Spark, no Delta), since Airflow does it each time it reads its DAG files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlglot import exp

from sweeparea.cql.context import MATERIALIZATIONS
from sweeparea.cql.errors import BindError, ParseError, Place, listing, nearest, not_offered, raise_all
from sweeparea.cql.statements import (
    CreateQuery,
    CreateRelation,
    CreateStream,
    SetSetting,
    Statement,
    parse_file,
)
from sweeparea.infra.errors import SetupError, SweepAreaError


@dataclass
class Catalog:
    """Streams, relations and queries by name; queries in an order in which each follows those that it reads."""

    streams: dict[str, CreateStream] = field(default_factory=dict)
    relations: dict[str, CreateRelation] = field(default_factory=dict)
    queries: dict[str, CreateQuery] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str | Path) -> Catalog:
        """The catalog of a folder of ``*.cql`` files, read in the order of their names. All errors of all files at
        once."""
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
        for path in files:
            try:
                statements += parse_file(path)
            except SweepAreaError as error:
                errors.append(error)
        raise_all(errors)
        return cls.of(statements)

    @classmethod
    def of(cls, statements: Iterable[Statement]) -> Catalog:
        """The catalog of statements. A name may be declared once, whatever its kind."""
        catalog = cls()
        taken: dict[str, Statement] = {}
        errors: list[SweepAreaError] = []
        for statement in statements:
            if isinstance(statement, SetSetting):
                catalog.settings[statement.name] = statement.value
            elif isinstance(statement, CreateStream | CreateRelation | CreateQuery):
                error = _clash(statement.name, statement.place, taken)
                if error is not None:
                    errors.append(error)
                    continue
                taken[statement.name.lower()] = statement
                if isinstance(statement, CreateStream):
                    catalog.streams[statement.name] = statement
                elif isinstance(statement, CreateRelation):
                    catalog.relations[statement.name] = statement
                else:
                    catalog.queries[statement.name] = statement
            else:
                words = " ".join(statement.text.split()[:2]).upper()
                hint = "Files declare; the command line acts: sweeparea drop, status, explain"
                errors.append(not_offered(f"the statement {words} .. in a file", statement.place, hint))
        raise_all(errors)
        catalog._order()
        return catalog

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
        statement = self.query(query) if isinstance(query, str) else query
        declared = {n.lower(): n for n in (*self.streams, *self.relations, *self.queries)}
        found: dict[str, None] = {}
        for name in table_names(statement.select):
            known = declared.get(name.lower()) or declared.get(base_name(name).lower())
            if known is not None:
                found.setdefault(known)
        return tuple(found)

    def _order(self) -> None:
        ordered: dict[str, CreateQuery] = {}
        visiting: list[str] = []

        def visit(name: str) -> None:
            if name in ordered:
                return
            if name in visiting:
                cycle = [*visiting[visiting.index(name) :], name]
                raise BindError(
                    f"queries read each other in a circle: {' reads '.join(cycle)}",
                    self.queries[name].place,
                    "Let one of them read the streams instead",
                )
            visiting.append(name)
            for dependency in self.dependencies(self.queries[name]):
                if dependency in self.queries:
                    visit(dependency)
            visiting.pop()
            ordered[name] = self.queries[name]

        errors: list[SweepAreaError] = []
        for name in self.queries:
            visiting.clear()
            try:
                visit(name)
            except BindError as error:
                errors.append(error)
                ordered[name] = self.queries[name]
        raise_all(errors)
        self.queries = ordered


def base_name(name: str) -> str:
    """``q`` of ``q__istream``; any other name as it is."""
    base, separator, suffix = name.rpartition("__")
    return base if separator and suffix.lower() in MATERIALIZATIONS else name


def table_names(query: exp.Expr) -> Iterator[str]:
    """The names in the FROM clauses of a query and its subqueries, those of its own WITH clauses left out."""
    yield from _names(query, frozenset())


def _names(node: exp.Expr, hidden: frozenset[str]) -> Iterator[str]:
    with_ = node.args.get("with_")
    if isinstance(with_, exp.With):
        for cte in with_.expressions:
            yield from _names(cte.this, hidden)
            hidden = hidden | {cte.alias.lower()}
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        name = ".".join(part.name for part in node.parts)
        if name.lower() not in hidden:
            yield name
    for key, value in node.args.items():
        if key == "with_":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield from _names(child, hidden)


def _clash(name: str, place: Place, taken: dict[str, Statement]) -> SweepAreaError | None:
    before = taken.get(name.lower())
    if before is not None:
        return BindError(
            f"{name} is declared twice: before at {before.place}",
            place,
            "Names of streams, relations and queries are shared: rename one",
        )
    if not name or not all(c.isalnum() or c == "_" for c in name):
        return ParseError(
            f"the name {name!r} cannot be the name of a table's folder",
            place,
            "Use letters, digits and _ for streams, relations and queries",
        )
    if base_name(name) != name:
        return BindError(f"{name} ends like a materialization of a query", place, "Choose a name without that ending")
    return None
