"""Where a folder is: on this machine, or at the address of an object store."""

from __future__ import annotations

from pathlib import Path

from sweeparea.infra.storage import is_remote


class Remote(str):
    """The address of a remote folder; ``/`` goes into it, as with a Path."""

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.rstrip('/')}/{name}")


Folder = Path | Remote


def folder(text: str | Path, base: Path | None = None) -> Folder:
    """An address as it is; a path made absolute, from ``base`` or the current folder on."""
    if isinstance(text, Remote) or (isinstance(text, str) and is_remote(text)):
        return Remote(str(text).rstrip("/"))
    plain = str(text).removeprefix("file://")
    return ((base or Path()) / Path(plain).expanduser()).resolve()
