"""One commit of a Delta log as its JSON file tells it, and whether somebody else's commit may be adopted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pyarrow.fs import FileSystem

from sweeparea.tables.log.folders import filesystem

_TRANSACTION = re.compile(r'\s*\{\s*"txn"\s*:')


@dataclass(frozen=True)
class FileAction:
    """An add, remove or cdc action; ``path`` is raw. ``vector`` is its deletion vector as the log describes it,
    ``rows`` how many rows the file has, where the log tells.
    """

    path: str
    size: int
    partition: dict[str, str | None]
    data_change: bool
    deletion_vector: bool
    vector: dict[str, Any] | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Commit:
    """The actions of one version. ``apps`` are its application transactions, ``time`` is in microseconds, ``feed``
    the files of its change data feed.
    """

    version: int
    adds: tuple[FileAction, ...] = ()
    removes: tuple[FileAction, ...] = ()
    feed: tuple[FileAction, ...] = ()
    metadata: bool = False
    protocol: bool = False
    apps: dict[str, int] = field(default_factory=dict)
    operation: str = "unknown"
    engine: str = "unknown"
    time: int | None = None

    @property
    def rearranges(self) -> bool:
        """Whether it changes no row and no setting: OPTIMIZE, VACUUM's own log entries."""
        return not (self.metadata or self.protocol) and not any(a.data_change for a in (*self.adds, *self.removes))

    def is_of(self, apps: Iterable[str]) -> bool:
        """Whether one of ``apps`` made it. ``q`` stands for every registration ``q:<uuid>`` of q."""
        return any(own == app or own.startswith(app + ":") for own in self.apps for app in apps)


def read_commit(uri: str, version: int, storage_options: dict[str, str] | None = None) -> Commit | None:
    """The commit ``version`` of the table at ``uri``; None when its file is not there (not yet, or cleaned away)."""
    fs, base = filesystem(uri, storage_options)
    path = f"{base}/_delta_log/{version:020d}.json"
    lines = _lines(fs, path)
    if lines is None:
        return None
    actions = [json.loads(line) for line in lines]
    info = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    # inCommitTimestamp, where the table has it, is the protocol's commit time; timestamp is the writer's clock.
    millis = info.get("inCommitTimestamp") or info.get("timestamp")
    if millis is None:
        modified = fs.get_file_info(path).mtime_ns
        millis = modified // 1_000_000 if modified else None
    return Commit(
        version=version,
        adds=tuple(_file_action(action["add"]) for action in actions if "add" in action),
        removes=tuple(_file_action(action["remove"]) for action in actions if "remove" in action),
        feed=tuple(_file_action(action["cdc"]) for action in actions if "cdc" in action),
        metadata=any("metaData" in action for action in actions),
        protocol=any("protocol" in action for action in actions),
        apps={action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action},
        operation=info.get("operation", "unknown"),
        engine=info.get("engineInfo", "unknown"),
        time=None if millis is None else millis * 1000,
    )


def read_apps(uri: str, version: int, storage_options: dict[str, str] | None = None) -> dict[str, int] | None:
    """``Commit.apps`` of ``read_commit`` alone, without a look at the files of a commit of many."""
    fs, base = filesystem(uri, storage_options)
    lines = _lines(fs, f"{base}/_delta_log/{version:020d}.json")
    if lines is None:
        return None
    actions = (json.loads(line) for line in lines if _TRANSACTION.match(line))
    return {action["txn"]["appId"]: action["txn"]["version"] for action in actions}


def _lines(fs: FileSystem, path: str) -> list[str] | None:
    try:
        with fs.open_input_stream(path) as source:
            text = source.read().decode("utf-8")
    except FileNotFoundError:
        return None
    # other ends of lines that Unicode knows may stand in a text's bounds
    return [line for line in text.split("\n") if line.strip()]


def _file_action(action: dict[str, Any]) -> FileAction:
    stats = json.loads(action["stats"]) if action.get("stats") else {}
    return FileAction(
        path=unquote(action["path"]),
        size=action.get("size") or 0,
        partition=action.get("partitionValues") or {},
        data_change=action["dataChange"],
        deletion_vector=action.get("deletionVector") is not None,
        vector=action.get("deletionVector"),
        rows=stats.get("numRecords"),
    )
