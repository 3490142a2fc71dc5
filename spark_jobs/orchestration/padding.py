"""Columns of type CHAR(n) that are admitted otherwise than their sources have them now."""

from __future__ import annotations

from collections.abc import Mapping

from sweeparea.cql.declarations.catalog import Declared
from sweeparea.cql.syntax.statements import CreateFunction, CreateQuery
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.publication.ledger import LedgerRow


class Padding:
    """``head`` are the ledger's rows, which say how columns were first admitted."""

    def __init__(self, application: Application, head: Mapping[str, LedgerRow]) -> None:
        self.application, self.head = application, head

    def missing(self, name: str, statement: Declared) -> str:
        """Which columns of a source an earlier version has admitted without the padding of CHAR(n); empty if none."""
        padded, now = self._chars(name, statement)
        found = [f"{c} is {kind.upper()}" for c, kind in now.items() if c not in padded]
        return f"{', '.join(found)}, and was admitted without its padding by an earlier version" if found else ""

    def redeclared(self, name: str, statement: Declared) -> str:
        """Which columns of a source were admitted as CHAR of another length than now; empty if none."""
        padded, now = self._chars(name, statement)
        found = [f"{c} was {k.upper()} and is {now.get(c, 'no CHAR').upper()} now" for c, k in padded.items()]
        return ", ".join(text for text, (c, kind) in zip(found, padded.items(), strict=True) if now.get(c) != kind)

    def _chars(self, name: str, statement: Declared) -> tuple[dict[str, str], dict[str, str]]:
        """The columns that are admitted padded with the types by which they are, and the CHAR columns of the source now
        that are admitted; nothing of a name that is no source or was never admitted.
        """
        head = self.head.get(name)
        if head is None or isinstance(statement, CreateQuery | CreateFunction):
            return {}, {}
        try:
            now = self.application.sources.table(name).char_columns()
            admitted = {column for column, _ in self.application.plans.input_schema(name).columns}
        except SweepAreaError:
            return {}, {}  # told of by ``PlanChecks``
        return dict(head.of_source.chars or {}), {c: kind for c, kind in now.items() if c in admitted}
