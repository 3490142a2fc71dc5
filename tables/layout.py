"""Where an application's tables live in its data folder: the one place that knows the folder names."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import PurePath

from sweeparea.tables.errors import TableError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


def check_name(name: str, what: str = "name") -> str:
    """``name``, if it can be part of a path and of SQL text unquoted: an ASCII identifier of at most 128 characters."""
    if len(name) > 128 or not _IDENTIFIER.match(name):
        raise TableError(
            f"The {what} {name!r} cannot name a table: it becomes a folder, so it must consist of ASCII letters, digits"
            " and underscores, begin with no digit and have at most 128 characters. Choose another name."
        )
    return name


class Layout:
    """Paths of the tables of one data folder. Paths are returned as text; nothing is created or looked at."""

    def __init__(self, data_folder: str | PathLike[str]) -> None:
        self.data_folder = fspath(data_folder).rstrip("/") or "/"

    def admitted(self, name: str) -> str:
        """The rows of a stream or relation that were admitted, in order of arrival."""
        return self._table("admitted", check_name(name, "stream or relation"))

    def quarantine(self, name: str) -> str:
        """The rows that were kept out of a stream or relation, each with its reason."""
        return self._table("quarantine", check_name(name, "stream or relation"))

    def landing(self, name: str) -> str:
        """The records of a source that is no Delta table, as they came; the checkpoint of reading it is inside."""
        return self.state(name, "landing")

    def result(self, table: str) -> str:
        """A table of results: ``<query>``, ``<query>__istream``, ``<query>__dstream``, ``<query>__corrections``."""
        return self._table("results", check_name(table, "result table"))

    def state(self, query: str, operator: str) -> str:
        """The SweepArea of one operator of a query."""
        return self._table("state", check_name(query, "query"), check_name(operator, "operator"))

    @property
    def ledger(self) -> str:
        """The head of the ledger: the last commit of every stream, relation and query."""
        return self._table("_sweeparea", "ledger")

    @property
    def history(self) -> str:
        """Every commit that was ever applied."""
        return self._table("_sweeparea", "ledger_history")

    @property
    def deployed(self) -> str:
        """The definitions of everything that is deployed."""
        return self._table("_sweeparea", "deployed")

    @property
    def incidents(self) -> str:
        """What somebody has been alerted of and is not over."""
        return self._table("_sweeparea", "incidents")

    @property
    def verdicts(self) -> str:
        """What was judged of every commit, and of those that were refused."""
        return self._table("quality", "verdicts")

    @property
    def samples(self) -> str:
        """Rows that broke a check."""
        return self._table("quality", "samples")

    def dropped(self, name: str, registration: str) -> str:
        """Where the tables of a name go that was dropped without PURGE."""
        return self._table("_sweeparea", "dropped", f"{check_name(name)}-{registration}")

    def build(self, query: str, build: str) -> str:
        """The data folder of a query that is computed beside its tables."""
        return self._table("_sweeparea", "builds", f"{check_name(query)}-{build}")

    @property
    def attempts(self) -> str:
        """Files that living attempts to publish hold locked, one each."""
        return self._table("_sweeparea", "attempts")

    def spill(self, attempt: str) -> str:
        """Where an attempt puts aside what it reads again soon; it is removed with the attempt."""
        return self._table("_sweeparea", "spill", attempt)

    def absolute(self, relative: str) -> str:
        """The path of a table that the ledger names relative to the data folder, so that the folder can be moved."""
        parts = PurePath(relative).parts
        if not parts or relative.startswith("/") or ".." in parts:
            raise TableError(f"{relative!r} is no table of the data folder {self.data_folder}: it leads out of it.")
        return self._table(*parts)

    def relative(self, path: str | PathLike[str]) -> str:
        """The opposite of :meth:`absolute`; takes a relative path as it is."""
        text = fspath(path).rstrip("/")
        prefix = self.data_folder.rstrip("/") + "/"
        relative = text.removeprefix(prefix)
        self.absolute(relative)
        return relative

    def _table(self, *parts: str) -> str:
        return "/".join((self.data_folder.rstrip("/"), *parts))
