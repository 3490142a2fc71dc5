"""Files and folders, on a disk or an object store: found, moved and removed."""

from __future__ import annotations

from contextlib import suppress

import pyarrow.fs as pafs

from sweeparea.infra import storage


def filesystem(uri: str, storage_options: dict[str, str] | None = None) -> tuple[pafs.FileSystem, str]:
    """The file system of ``uri``, a path or an address, and the path in it. Options: ``infra/storage.py``."""
    if storage.is_remote(uri):
        return storage.filesystem(uri)
    return pafs.LocalFileSystem(), uri.removeprefix("file://")


def files_in(folder: str) -> list[pafs.FileInfo]:
    """The files of a folder, not of those in it; none where there is no such folder."""
    fs, base = filesystem(folder)
    found = fs.get_file_info(pafs.FileSelector(base, allow_not_found=True))
    return [info for info in found if info.type == pafs.FileType.File]


def folders_in(folder: str) -> list[str]:
    """The folders of a folder, not of those in it, by their addresses; none where there is no such folder."""
    fs, base = filesystem(folder)
    try:
        found = fs.get_file_info(pafs.FileSelector(base, allow_not_found=True))
    except NotADirectoryError:
        return []
    return [f"{folder.rstrip('/')}/{info.base_name}" for info in found if info.type == pafs.FileType.Directory]


def tables_in(folder: str) -> list[str]:
    """The Delta tables in a folder, however deep, by their addresses."""
    fs, base = filesystem(folder)
    found = fs.get_file_info(pafs.FileSelector(base, recursive=True, allow_not_found=True))
    ends = {info.path.rsplit("/_delta_log/", 1)[0] for info in found if "/_delta_log/" in info.path}
    return sorted(folder.rstrip("/") + path[len(base) :] for path in ends)


def has_folder(folder: str) -> bool:
    """Whether there is a folder, which on an object store has something in it."""
    fs, base = filesystem(folder)
    return fs.get_file_info(base).type == pafs.FileType.Directory


def move_folder(old: str, new: str) -> None:
    """Move a folder with all that is in it. On an object store file by file: one that dies is to be called again."""
    fs, source = filesystem(old)
    target = filesystem(new)[1]
    if not storage.is_remote(old):
        fs.create_dir(target.rsplit("/", 1)[0], recursive=True)
        fs.move(source, target)
        return
    for info in fs.get_file_info(pafs.FileSelector(source, recursive=True)):
        if info.type == pafs.FileType.File:
            fs.copy_file(info.path, target + info.path[len(source) :])
    fs.delete_dir(source)


def remove_folder(uri: str, quietly: bool = False) -> None:
    """Remove a folder with all that is in it, if it is there; ``quietly``: as far as that can be done."""
    with suppress(OSError if quietly else FileNotFoundError):  # somebody else may be removing it
        fs, base = filesystem(uri)
        if fs.get_file_info(base).type == pafs.FileType.Directory:
            fs.delete_dir(base)


def remove_at_once(folder: str, aside: str) -> None:
    """Removes a folder for which others may make a new one. It is moved first, in one step: who is suspended while it
    removes file by file must not go on among those of another. ``aside``: a path that is nobody's, on the same disk.
    """
    if not storage.is_remote(folder):
        with suppress(OSError):  # another file system, or somebody else removes it: then as far as it is there
            move_folder(folder, aside)
            remove_folder(aside)
    remove_folder(folder)


def remove_file(uri: str) -> None:
    """Remove a file that no log knows, if it is there."""
    fs, path = filesystem(uri)
    with suppress(FileNotFoundError):
        fs.delete_file(path)
