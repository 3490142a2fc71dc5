"""What a write that failed says: a disk that is full, a folder that may not be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from sweeparea.infra import storage
from sweeparea.infra.errors import SetupError

_FULL = ("No space left", "quota exceeded", "File too large")


@contextmanager
def explain_write_errors(path: str) -> Generator[None]:
    """Turn "disk full" and "permission denied" into a SetupError that names ``path`` and the way out."""
    try:
        yield
    except OSError as error:
        explained = write_error(path, error)
        if explained is None:
            raise
        raise explained from error


def has_space(folder: str) -> bool:
    """Whether something can still be written to a folder's disk: 64 KB. An object store has space."""
    if storage.is_remote(folder):
        return True
    disk = os.statvfs(folder.removeprefix("file://"))
    return disk.f_bavail * disk.f_frsize >= 65_536


def said_full(text: str) -> str | None:
    """The line of an error's text, of whatever program, that tells that a disk is full or takes no writes; None: none
    does. For programs whose errors are text: Spark's JVM.
    """
    signs = (*_FULL, "Read-only file")
    return next((line.strip() for line in text.splitlines() if any(sign in line for sign in signs)), None)


def write_error(path: str, error: BaseException) -> SetupError | None:
    """The SetupError for a failed write to ``path``, or None if the failure is of another kind.

    Looks at the text too: delta-rs reports the operating system's errors as text only.
    """
    code = getattr(error, "errno", None)
    text = str(error)
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or any(sign in text for sign in _FULL):
        return SetupError(
            f"There is no disk space left to write {path} ({text}). Free some space (old versions: VACUUM) and run the"
            " same command again: nothing is lost, and what was half written is ignored."
        )
    if code == errno.ENOTDIR or "Not a directory" in text:
        return SetupError(f"{path} cannot be written: a part of that path is a file ({text}). Choose another folder.")
    if code in (errno.EACCES, errno.EPERM, errno.EROFS) or "Permission denied" in text or "Read-only file" in text:
        return SetupError(
            f"{path} may not be written: {text}. Give this user the right to write to the data folder, or choose"
            " another one, and run the same command again."
        )
    if "AWS Error" in text:
        return SetupError(
            f"{path} cannot be written: {text}. Check the address, AWS_ENDPOINT_URL, AWS_REGION and the keys that the"
            " environment gives, then run the same command again."
        )
    return None
