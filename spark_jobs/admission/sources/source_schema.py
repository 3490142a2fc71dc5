"""The columns of a source against those that were admitted: what may change, and taking over what came new.

A source that lost a column or changed its type is refused before anything is written. One that gained columns is
refused too, so that no value is silently dropped, until somebody says ``sweeparea admit .. --take-columns``: then the
admitted table gets them, NULL in all rows before. Queries that are deployed go on with the columns that they were
registered with, so no ``SELECT *`` changes its meaning by what happens to a source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.declarations.source_columns import refuse_reserved
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.schema import arrow_type, spark_type

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application
    from sweeparea.tables.sources.source import SourceTable


def check_columns(application: Application, name: str, source: SourceTable, take_columns: bool = False) -> list[str]:
    """Compares the source of a stream or relation with what was admitted; returns the columns that were taken over.

    Raises SweepAreaError for a column that is missing or of another type, and for new ones unless ``take_columns``.
    """
    what = "Stream" if name in application.catalog.streams else "Relation"
    found = dict(source.spark_schema())
    log = DeltaLog(application.layout.admitted(name))
    if not log.exists():
        return []
    admitted = {f.name: spark_type(f.type) for f in log.schema() if not f.name.startswith("__")}
    for column, kind in admitted.items():
        if found.get(column) != kind:
            raise SweepAreaError(
                f"{what} {name}: column {column} was {kind} when it was first admitted and is"
                f" {found.get(column, 'missing')} in its source now. Nothing was admitted. Restore the column in the"
                f" source, or declare a new {what.lower()} over the changed table."
            )
    check_chars(application, name, source)
    added = [column for column in found if column not in admitted]
    if not added:
        return []
    if not take_columns:
        raise SweepAreaError(
            f"{what} {name}: its source has gained the column(s) {', '.join(added)}. Nothing was admitted, so that no"
            f" value is silently dropped. Run `{application.command('admit', name, '--take-columns')}` to take them"
            " over: they are NULL in what was admitted before, and queries that are deployed go on without them. Or"
            " remove the columns again."
        )
    _take(application, name, log, [pa.field(column, arrow_type(found[column])) for column in added], list(admitted))
    return added


def check_chars(application: Application, name: str, source: SourceTable) -> None:
    """The columns that were admitted padded must still be CHAR of the same length, or all values would change."""
    now = source.char_columns()
    for column, kind in application.sources.char_columns(name).items():
        if now.get(column) != kind:
            raise SweepAreaError(
                f"{name}: column {column} was {kind.upper()} when it was first admitted, whose values are padded when"
                f" they are read, and is {now.get(column, 'no CHAR').upper()} in its source now. So Spark reads all of"
                " its rows otherwise, also those that were admitted. Nothing was admitted. Make it"
                f" {kind.upper()} again in the source, or say CREATE OR REPLACE and apply, which admits it anew."
            )


def chars_after(application: Application, name: str, source: SourceTable, taken: Iterable[str]) -> dict[str, str]:
    """What is padded of a source from now on, as its ledger info keeps it: the columns that were, and those of the
    columns that were ``taken`` over just now which are CHAR.
    """
    now = source.char_columns()
    return application.sources.char_columns(name) | {column: now[column] for column in taken if column in now}


def _take(application: Application, name: str, log: DeltaLog, added: list[pa.Field], before: list[str]) -> None:
    """The queries are told to keep their columns first: a run that dies in between has changed nothing for anybody."""
    refuse_reserved(name, [field.name for field in added])
    known = {column.lower(): column for column in before}
    for field in added:
        if field.name.lower() in known:
            raise SweepAreaError(
                f"{name}: its source has gained the column {field.name}, beside {known[field.name.lower()]}. Names that"
                " differ in case only are one name to a query. Rename it in the source."
            )
    application.registry.keep_columns(name, before)
    log.add_columns(added, f"{name}:columns")
    application.plans.forget_schemas()
