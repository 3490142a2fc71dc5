"""The greatest resident memory of this process and of those that it has started, by kind, looked at as they run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

EVERY = 0.5
"""Seconds between two looks: what a worker has for a shorter time is not seen."""


@contextmanager
def peaks() -> Iterator[dict[str, float]]:
    """GB of ``driver``, ``jvm`` and the largest ``worker`` while the block runs; complete when it has ended."""
    found = {"driver": 0.0, "jvm": 0.0, "worker": 0.0}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(found, done), daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def _watch(found: dict[str, float], done: threading.Event) -> None:
    me = psutil.Process()
    while True:
        for process in [me, *me.children(recursive=True)]:
            try:
                kind = "driver" if process == me else "jvm" if process.name() == "java" else "worker"
                found[kind] = max(found[kind], round(process.memory_info().rss / 1e9, 2))
            except psutil.Error:  # it has ended meanwhile
                continue
        if done.wait(EVERY):
            return
