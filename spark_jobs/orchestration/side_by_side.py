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
    application: Application,
    opened: Callable[[], Application],
    names: Sequence[str],
    work: Callable[[Application, str], _Done],
    threads: int,
) -> Iterator[tuple[str, _Done | SweepAreaError]]:
    """``work`` of every query of ``names``, ``threads`` at a time, each with an application that it has for itself: the
    one given, and what ``opened`` gives. Yields what came of it, or the error, as they end; one that fails does not
    stop the others.

    A query waits until those that it reads are through, whatever came of them. Errors that are no SweepAreaError are
    raised here; what runs meanwhile ends with the process.
    """
    # what a query reads besides, nobody has to wait for
    read = {name: {n for n in application.catalog.dependencies(name) if n in names} for name in names}
    order = TopologicalSorter(read)
    order.prepare()
    waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[str, _Done | BaseException]] = queue.SimpleQueue()

    def run(mine: Application) -> None:
        while (name := waiting.get()) is not None:
            try:
                done.put((name, work(mine, name)))
            except BaseException as error:
                done.put((name, error))

    several = min(threads, len(names))
    for mine in (application, *(opened() for _ in range(several - 1))):
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
    for _ in range(several):
        waiting.put(None)
