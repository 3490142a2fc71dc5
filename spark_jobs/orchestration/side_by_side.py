"""Several queries at a time: each as soon as those that it reads are through."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from graphlib import TopologicalSorter
from typing import TypeVar

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application

_Done = TypeVar("_Done")


def each_of(
    opened: Callable[[], Application],
    names: Sequence[str],
    work: Callable[[Application, str], _Done],
    threads: int,
) -> Iterator[tuple[str, _Done | SweepAreaError]]:
    """``work`` of every query of ``names``, ``threads`` at a time, each with an application that it has for itself;
    what came of it, or the error, as they end. One that fails does not stop the others.

    A query waits until those that it reads are through, whatever came of them. Errors that are no SweepAreaError are
    raised here; what runs meanwhile ends with the process.
    """
    application = opened()
    order = TopologicalSorter({name: _read_by(application, name, names) for name in names})
    order.prepare()
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[str, _Done | BaseException]] = queue.SimpleQueue()

    def run(mine: Application) -> None:
        while True:
            name = waiting.get()
            try:
                done.put((name, work(mine, name)))
            except BaseException as error:
                done.put((name, error))

    for number in range(min(threads, len(names))):
        mine = application if number == 0 else opened()
        # nobody waits for them: after an interrupt the process ends, and Spark with it
        threading.Thread(target=run, args=(mine,), daemon=True).start()
    while order.is_active():
        for name in order.get_ready():
            waiting.put(name)
        name, found = done.get()
        if isinstance(found, BaseException) and not isinstance(found, SweepAreaError):
            raise found
        order.done(name)
        yield name, found


def _read_by(application: Application, name: str, names: Sequence[str]) -> list[str]:
    """The queries of ``names`` that a query reads, those also that it reads through hidden ones' readers."""
    return [owner for read in application.catalog.dependencies(name) if (owner := application.owner(read)) in names]
