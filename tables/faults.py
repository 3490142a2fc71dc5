"""A place where tests can kill the process, to prove that a run killed anywhere loses and doubles nothing."""

from __future__ import annotations

import os
import signal

CRASH_AT = "SWEEPAREA_CRASH_AT"
"""Environment variable that names the crash point; unset outside tests."""


def crash_point(name: str) -> None:
    """Die by SIGKILL, as a power cut would have it, if ``SWEEPAREA_CRASH_AT`` is ``name``; else do nothing."""
    if os.environ.get(CRASH_AT) == name:
        os.kill(os.getpid(), signal.SIGKILL)
