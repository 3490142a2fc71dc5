"""Staging one table's rows in place of another's."""

from __future__ import annotations

from collections.abc import Collection

from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import copy_staged
from sweeparea.tables.log.schema import same_columns
from sweeparea.tables.publication.publish import Publication


class Staging:
    """Files of one attempt for one publication; ``renewed``: tables, by their paths in the data folder, that are
    exchanged whole, whatever they hold.
    """

    def __init__(self, publication: Publication, attempt: str, renewed: Collection[str]) -> None:
        self.publication, self.attempt, self._renewed = publication, attempt, renewed

    def renews(self, log: DeltaLog) -> bool:
        """Whether a table is exchanged whole."""
        return self.publication.layout.relative(log.uri) in self._renewed

    def exchange(self, new: DeltaLog, old: DeltaLog, title: str) -> None:
        """Stages all rows of one table in place of those of another, with their columns."""
        anew = self.renews(old)
        if not old.exists():
            old.create(new.schema(), name=old.uri.rsplit("/", 1)[-1], description=title)
        adds = [copy_staged(new.uri, file, old.uri, self.attempt) for file in new.files()]
        if same_columns(old.schema(), new.schema()):
            self.publication.stage(old.uri, adds=adds, removes=old.files(), anew=anew)
        else:
            self.publication.stage(old.uri, adds=adds, schema=new.schema(), anew=anew)
