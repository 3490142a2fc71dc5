"""numba's ``njit`` with a place for what it has compiled, whoever runs it.

numba keeps compiled functions beside their source, or in the user's home, and refuses to be imported where neither can
be written: a user without a home runs what somebody else has installed. There they are kept in a private folder among
the temporary files, and where there is none either, they are compiled by each process again.
"""

from __future__ import annotations

import os
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config

_VARIABLE = "NUMBA_CACHE_DIR"


def njit(*function: Any, **options: Any) -> Any:
    """As ``numba.njit``; ``cache`` holds where there is a place for it."""
    if options.get("cache") and not _has_place():
        options["cache"] = False
    return numba.njit(*function, **options)


@cache
def _has_place() -> bool:
    if _found():
        return True
    try:
        folder = _private_folder()
    except OSError:
        return False
    # both: numba reads the variable again when another one changes, and Spark's workers inherit it
    os.environ[_VARIABLE] = config.CACHE_DIR = str(folder)  # pyright: ignore[reportAttributeAccessIssue]
    return _found()


def _found() -> bool:
    try:
        numba.njit(cache=True)(_nothing)  # looks for a place; compiles nothing before a call
    except RuntimeError:
        return False
    return True


def _nothing() -> int:
    return 0


def _private_folder() -> Path:
    """A folder that nobody else can have put there, since what lies in it is run."""
    folder = Path(tempfile.gettempdir()) / f"sweeparea-numba-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix="sweeparea-numba-"))
