"""Stops what this process runs on a Spark Connect server, which would go on without its client."""

from __future__ import annotations

import logging
import sys
import threading
import time

log = logging.getLogger(__name__)


def interrupt(again: float | None = 0.5) -> None:
    """Interrupts by the tags that the job has set, so that nothing else of the server is touched; without a tag,
    everything of this session, which only this process holds. To be called in the thread in which the job runs.

    A task that is killed goes on for some seconds until its process ends and may begin the next operation meanwhile, so
    this is repeated every ``again`` seconds; None: it is not.
    """
    module = sys.modules.get("pyspark.sql.connect.session")
    session = module.SparkSession.getActiveSession() if module else None
    if session is None:
        return
    tags = list(session.getTags())  # those of this thread, in which the job runs

    def stop() -> list[str]:
        return [op for tag in tags for op in session.interruptTag(tag)] if tags else list(session.interruptAll())

    def keep_stopping(pause: float) -> None:
        while True:
            time.sleep(pause)
            stop()

    log.info("Interrupted on the Spark server: %s", ", ".join(stop()) or "nothing was running")
    if again is not None:
        threading.Thread(target=keep_stopping, args=(again,), name="interrupt-spark", daemon=True).start()
