"""Places where tests kill or suspend the process, to prove that a run killed anywhere loses and doubles nothing.

Outside tests a point costs one look at the environment. ``SWEEPAREA_FAULTS`` names a folder that all processes of a
run share, Spark's workers too: each writes the points that it passes and its own number to the file ``journal`` there,
and looks into ``plan`` whether it is to die at this one. So a test first records what a run passes, then strikes there.
"""

from __future__ import annotations

import json
import os
import re
import signal

CRASH_AT = "SWEEPAREA_CRASH_AT"
"""Environment variable that names one point to die at, at the first passing; unset outside tests."""
FAULTS = "SWEEPAREA_FAULTS"
"""Environment variable that names the folder with ``journal`` and ``plan``; unset outside tests."""
_CHANGING = re.compile(r"[0-9a-f]{32}")


def crash_point(name: str, place: str = "") -> None:
    """Do nothing, or what a test has planned for this point: SIGKILL as a power cut would have it, SIGSTOP, or other.

    ``place`` is a path, of which the last two parts are appended to the name.
    """
    if CRASH_AT in os.environ and os.environ[CRASH_AT] == full_name(name, place):
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULTS in os.environ:
        _planned(os.environ[FAULTS], full_name(name, place))


def full_name(name: str, place: str = "") -> str:
    """The name of a point as the journal has it: ids that each run draws anew are left out."""
    if not place:
        return name
    return f"{name}:{_CHANGING.sub('*', '/'.join(place.rstrip('/').split('/')[-2:]))}"


def _planned(folder: str, name: str) -> None:
    """``plan``: JSON {point (``*``: any), nth passing of it (from 1; 0 for each), signal, pid (absent: who passes)}."""
    line = f"{name} {os.getpid()}\n"
    journal = os.open(f"{folder}/journal", os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        os.write(journal, line.encode())
        end = os.lseek(journal, 0, os.SEEK_CUR)
        names = [passed.rsplit(" ", 1)[0] for passed in os.pread(journal, end, 0).decode().splitlines()]
    finally:
        os.close(journal)
    try:
        with open(f"{folder}/plan") as file:
            plan = json.load(file)
    except FileNotFoundError:
        return
    passed = len(names) if plan["point"] == "*" else names.count(name)
    if plan["point"] in (name, "*") and plan["nth"] in (0, passed):
        os.kill(plan.get("pid") or os.getpid(), plan["signal"])
