"""What a slice tells of its tasks of many rows (``operators/worker_memory.py``): while they run, and after a worker has
died.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from sweeparea.operators.worker_memory import TaskRows, running

FIRST = 10.0
"""Seconds after which the largest task is told, and looked for again."""
AGAIN = 60.0
"""Seconds after which the same is told once more."""


@contextmanager
def telling(notes: str, query: str, tell: Callable[[str], None]) -> Iterator[None]:
    """While a job of ``query`` runs whose tasks leave ``notes``: ``tell`` gets a line on the largest one where that
    takes long. An exception of the job has it as its note, for ``readable``.
    """
    done = Event()
    thread = Thread(target=_tell, args=(notes, query, tell, done), daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if tasks := running(notes):
            error.add_note(tasks[0].words())
        raise
    finally:
        done.set()
        thread.join()


def _tell(notes: str, query: str, tell: Callable[[str], None], done: Event) -> None:
    begun = time.monotonic()
    last: TaskRows | None = None
    at = begun
    while not done.wait(FIRST):
        tasks, now = running(notes), time.monotonic()
        if tasks and (tasks[0] != last or now - at >= AGAIN):
            last, at = tasks[0], now
            tell(f"{query}: at work for {now - begun:.0f} s, now on {last.words()}")
