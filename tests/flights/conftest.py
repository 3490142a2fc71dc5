"""January's flights for the tests of the example application."""

# pyright: reportAttributeAccessIssue=false
# pyarrow makes most functions of pyarrow.compute when it is imported, where no type checker sees them.

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from queries.flights.source import csv_folder
from tests.flights import oracle

FEBRUARY = datetime(2013, 2, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def january() -> pa.Table:
    """The 26,308 flights that departed in January 2013 (UTC), read by the oracle's own reader."""
    flights = oracle.flights_from_csv(csv_folder())
    return flights.filter(pc.less(flights["departed"], pa.scalar(FEBRUARY)))


@pytest.fixture(scope="session")
def planes() -> pa.Table:
    return oracle.planes_from_csv(csv_folder())
