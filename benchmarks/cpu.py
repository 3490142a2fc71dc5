"""CPU seconds of this process and all that it has started: on a machine that others load they say more than a clock."""

from __future__ import annotations

import psutil


def cpu_seconds(me: psutil.Process | None = None) -> dict[str, float]:
    """``jvm``: of Spark in this process (``me``: in another one); ``python``: of the process, Spark's workers and what
    they have waited for.

    Of a Spark Connect server nothing is counted: it is no child of this process.
    """
    me = me or psutil.Process()
    found = {"jvm": 0.0, "python": 0.0}
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
            kind = "jvm" if process.name() == "java" else "python"
        except psutil.Error:  # it has ended meanwhile
            continue
        found[kind] += times.user + times.system
        if process != me:
            found[kind] += times.children_user + times.children_system
    return found


def spent(since: dict[str, float], me: psutil.Process | None = None) -> dict[str, float]:
    """CPU seconds since ``cpu_seconds()`` gave ``since``."""
    return {kind: round(seconds - since[kind], 1) for kind, seconds in cpu_seconds(me).items()}
