"""Drop: forgets a stream, relation or query and removes its tables. Source tables are the user's and are never
touched.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application


def drop(application: Application, name: str) -> Iterator[str]:
    """Removes the name from the ledger first, so that a run killed in between leaves files nobody reads, never half a
    table.

    Refused while another query that has run reads it. Yields what was done, a line each.
    """
    head = application.ledger.head()
    known = {*head, *application.catalog.queries, *application.catalog.streams, *application.catalog.relations}
    if name not in known:
        raise SweepAreaError(f"There is nothing named {name}. Known: {', '.join(sorted(known)) or 'nothing'}.")
    readers = [q for q in application.catalog.queries if q in head and name in application.catalog.dependencies(q)]
    if readers:
        raise SweepAreaError(
            f"{name} is read by {', '.join(readers)}, whose results rest on it. Drop the readers first."
        )
    if name in head:
        application.ledger.forget(name, head[name].seq)
        yield f"{name}: removed from the ledger"
    layout = application.layout
    suffixes = ("", "__relation", "__istream", "__dstream", "__rstream", "__corrections")
    folders = [layout.result(name + s) for s in suffixes] if name in application.catalog.queries else []
    folders += [layout.admitted(name), layout.quarantine(name), str(Path(layout.state(name, "x")).parent)]
    for folder in folders:
        if Path(folder).is_dir():
            shutil.rmtree(folder)
            yield f"{name}: removed {folder}"
