"""How much a preview may read and give: rows, columns, bytes and seconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sweeparea.infra.errors import SweepAreaError

if TYPE_CHECKING:
    import duckdb

ROWS = 200
COLUMNS = 40
LETTERS = 300
"""Of a value's text; what is longer is cut."""
SECONDS = 8.0
MEMORY = "512MB"
POINTS = 1_500
"""Rows of a result that a plot is drawn by."""


class TooMuch(SweepAreaError):
    """A preview that was stopped at one of these bounds."""


@contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of its own for one preview: one thread, little memory, no settings of anybody's, stopped after
    ``seconds``. TooMuch where a bound was met.
    """
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = 'UTC'; SET memory_limit = '{MEMORY}'; SET threads = 1; SET temp_directory = ''")
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield connection
    except duckdb.InterruptException:
        raise TooMuch(
            f"This was stopped after {seconds:g} s: the table is large. Choose a narrower stretch or another instant,"
            " or read it with `sweeparea sql`, which has no such bound."
        ) from None
    except duckdb.OutOfMemoryException:
        raise TooMuch(
            f"This would take more than {MEMORY} of memory. Choose a narrower stretch, or read it with `sweeparea sql`."
        ) from None
    except duckdb.Error as error:
        raise SweepAreaError(f"The table cannot be read: {str(error).splitlines()[0]}") from None
    finally:
        timer.cancel()
        connection.close()
