"""Where the slices of a query put what they make: in the query's own tables, or beside them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeparea.tables.layout import Layout
from sweeparea.tables.publication.ledger import Ledger

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application

BESIDE = -(1 << 40)
"""Sequence numbers of rows in SweepAreas that were computed beside the query: lower than any that its own slices give,
so that what these add counts as later."""


@dataclass(frozen=True)
class SlicePlace:
    """A data folder, its ledger, the registration that commits there, and the sequence number of the first slice."""

    data: str
    layout: Layout
    ledger: Ledger
    registration: str
    first_seq: int = 1
    stands: int | None = None
    """Of results that are computed beside the query's own: up to this tick those stand."""

    @classmethod
    def of(cls, application: Application, query: str) -> SlicePlace:
        """The query's own tables."""
        registration = application.registry.registration(query, application.ledger.head().get(query))
        return cls(str(application.data), application.layout, application.ledger, registration)

    @classmethod
    def of_deployed(cls, application: Application, query: str) -> SlicePlace:
        """The query's own tables, whatever the files say of it now."""
        registration = application.registry.deployed.rows()[query].registration
        return cls(str(application.data), application.layout, application.ledger, registration)

    @classmethod
    def beside(cls, application: Application, query: str, build: str | None = None) -> SlicePlace:
        """A folder, new unless it is named, from where results are taken over into the query's own tables."""
        build = build or uuid.uuid4().hex
        folder = application.layout.build(query, build)
        return cls(folder, Layout(folder), Ledger(folder), build, BESIDE)
