"""numba's ``njit`` with a place for what it has compiled, whoever runs it.

numba keeps compiled functions beside their source, or in the user's home, and refuses to be imported where neither can
be written: a user without a home runs what somebody else has installed. There they are kept in a private folder among
the temporary files, and where there is none either, they are compiled by each process again.

Machine code holds what a function calls. numba looks whether the file of the function itself has changed, not those of
the functions it calls: after an update of one of them the old code would go on giving the old answers. So what is
kept belongs to the text of all kernels.
"""

from __future__ import annotations

import hashlib
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
    compiled = numba.njit(*function, **options)
    if not options.get("cache"):
        return compiled
    return _of_this_text(compiled) if function else lambda python: _of_this_text(compiled(python))


def _of_this_text(dispatcher: Any) -> Any:
    """With code that was compiled from these kernels, word for word; else it is compiled again."""
    kept = dispatcher._cache._cache_file  # the version is compared before anything of the file is looked at
    kept._version = f"{numba.__version__} {_text_of_kernels()}"
    return dispatcher


@cache
def _text_of_kernels() -> str:
    """A hash of all kernels' source."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        source = file.read_bytes()
        digest.update(f"{file.name} {len(source)} ".encode() + source)
    return digest.hexdigest()


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
