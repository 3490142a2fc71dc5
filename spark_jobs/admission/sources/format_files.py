"""What lies in a folder that Spark reads as a stream, looked over before it does.

Three things happen there in silence. Files in folders below are passed over. Once a folder is named ``key=value``, as
in a partitioned table, files outside such folders are taken for read without being read. And a file whose name holds a
wildcard makes Spark read the other files of its batch twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import unquote

import pyarrow.fs as pafs

from sweeparea.infra.errors import DataError
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.sources.landing import listing, source_files

WILDCARDS = "*?[]{}\\"
SHOWN = 3
"""Files that a message names."""


@dataclass(frozen=True)
class SourceFolder:
    """``keys`` are those of its partitions; ``found`` is what :func:`listing` says of it; ``files`` are to be read."""

    found: dict[str, int]
    keys: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def looked_over(
    name: str, path: str, options: Mapping[str, str], landing: str, tell: Callable[[str], None]
) -> SourceFolder:
    """The folder ``path`` of the source of ``name``, whose checkpoint lies in the folder ``landing``. DataError where
    Spark would read it wrongly; files that it leaves out are told of.
    """
    fs, base = filesystem(path)
    if fs.get_file_info(base).type == pafs.FileType.File:
        folder, _, file = path.rpartition("/")
        raise DataError(
            f"{name}: PATH {path} is a file, and Spark reads folders as streams. Write PATH '{folder}', and to read no"
            f" other file of it OPTIONS (pathGlobFilter = '{file}')."
        )
    named = {option.lower(): value for option, value in options.items()}
    everything = source_files(path)
    files = [file for file in everything if _fits(file.rsplit("/", 1)[-1], named.get("pathglobfilter", "*"))]
    _refuse_odd(name, path, files, landing)
    folders = {file: file.split("/")[:-1] for file in files}
    if named.get("recursivefilelookup", "").lower() == "true" or not any(folders.values()):
        return SourceFolder(listing(everything), files=tuple(files))
    keys = {file: tuple(part.split("=")[0] for part in parts if "=" in part) for file, parts in folders.items()}
    if not any(keys.values()):
        below = sorted(file for file, parts in folders.items() if parts)
        tell(
            f"{name}: not read, since they lie in folders below {path}: {shown(below)}. OPTIONS (recursiveFileLookup ="
            " true) would read them."
        )
        return SourceFolder(listing(everything), files=tuple(file for file, parts in folders.items() if not parts))
    first = next(of for of in keys.values() if of)
    if stray := [file for file, of in keys.items() if of != first or len(of) != len(folders[file])]:
        raise DataError(
            f"{name}: folders below {path} are partitions by {', '.join(first)}, but {shown(stray)} lies elsewhere:"
            " Spark would take such files for read without reading them. Move it out of this folder (or, if it was not"
            " read yet, into a partition), or declare OPTIONS (recursiveFileLookup = true), by which all files are read"
            " and folders' names give no values. Nothing was read."
        )
    return SourceFolder(listing(everything), first, tuple(files))


def matched_over(name: str, path: str, landing: str) -> tuple[str, tuple[str, ...]]:
    """As :func:`looked_over`, of a path with wildcards: names of files alone. The folder before the first wildcard, and
    the files below it that are read.
    """
    parts = path.split("/")
    first = next(i for i, part in enumerate(parts) if any(sign in part for sign in WILDCARDS))
    base, wanted = "/".join(parts[:first]), parts[first:]
    files = (file.split("/") for file in source_files(base))
    read = ["/".join(file) for file in files if all(map(_fits, file, wanted)) and len(file) >= len(wanted)]
    _refuse_odd(name, base, read, landing)
    return base, tuple(read)


def _fits(part: str, pattern: str) -> bool:
    """Whether a name fits a pattern of Hadoop's: as a shell's, with ``{a,b}`` for one of several."""
    if found := re.search(r"\{([^{}]*)\}", pattern):
        before, after = pattern[: found.start()], pattern[found.end() :]
        return any(_fits(part, f"{before}{one}{after}") for one in found.group(1).split(","))
    return fnmatchcase(part, pattern)


def _refuse_odd(name: str, path: str, files: Iterable[str], landing: str) -> None:
    files = list(files)
    if with_colon := [file for file in files if ":" in file]:
        raise DataError(
            f"{name}: {shown(with_colon)} of {path}: Hadoop, by which Spark lists files, takes what stands before a"
            " colon in a name for the scheme of an address, and can list nothing of such a folder. Rename it (as"
            " 10-30-00 for 10:30:00) or move it away, then run again; nothing was read."
        )
    odd = [file for file in files if any(sign in file for sign in WILDCARDS)]
    read = _read(landing) if odd else ()
    if odd := [file for file in odd if not any(one.endswith(f"/{file}") for one in read)]:
        raise DataError(
            f"{name}: {shown(odd)} of {path}: Spark takes {' '.join(WILDCARDS)} in the name of a file for wildcards,"
            " and would read other files twice. Rename it, then run again; nothing was read."
        )


def shown(files: Iterable[str]) -> str:
    """The first of some files, in quotes, and how many there are besides."""
    ordered = sorted(files)
    more = len(ordered) - SHOWN
    return ", ".join(repr(file) for file in ordered[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _read(landing: str) -> set[str]:
    """The files that a checkpoint names as read."""
    fs, base = filesystem(landing)
    log = pafs.FileSelector(f"{base}/_checkpoint/sources/0", allow_not_found=True)
    found: set[str] = set()
    for info in fs.get_file_info(log):
        if info.type == pafs.FileType.File and info.base_name.split(".")[0].isdigit():
            with fs.open_input_stream(info.path) as source:
                lines = source.read().decode().splitlines()[1:]
            found |= {unquote(json.loads(line)["path"]) for line in lines if line.strip()}
    return found
