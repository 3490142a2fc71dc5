"""Opening a user's Delta table: what of it can be read here, and what is told where it cannot."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from sweeparea.tables.errors import TableError
from sweeparea.tables.log.folders import filesystem

BASELINE = (
    "`sweeparea admit .. --baseline` goes on from the table as it is now: what it holds and was not admitted is"
    " admitted as one version, what was admitted and is gone counts as removed."
)
WIDENING = {"typeWidening", "typeWidening-preview"}
_READABLE = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "inCommitTimestamp",
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "rowTracking",
    "domainMetadata",
    "clustering",
    "allowColumnDefaults",
    "icebergCompatV1",
    "icebergCompatV2",
    *WIDENING,
}


def opened(uri: str, version: int | None, storage_options: dict[str, str] | None) -> DeltaTable:
    """A handle of a source table at ``version``, or at the latest one.

    Errors (TableError): there is none, or one that is written in a way that cannot be read.
    """
    fs, base = filesystem(uri, storage_options)
    try:
        handle = DeltaTable(uri, version=version, storage_options=storage_options)
    except TableNotFoundError as error:
        raise _unreadable(uri, fs, base, version, error) from None
    except (DeltaError, OSError, ValueError) as error:
        raise _unreadable(uri, fs, base, version, error) from error
    features = set(handle.protocol().reader_features or [])
    unknown = sorted(features - _READABLE)
    if unknown:
        raise TableError(
            f"The source table {uri} uses the Delta feature {unknown[0]}, which cannot be read here. Write it"
            " without that feature, or copy it into a plain Delta table."
        )
    for field in json.loads(handle.schema().to_json())["fields"]:
        if collation := _collation(field):
            raise TableError(
                f"Column {field['name']} of the source table {uri} has the collation {collation}, by which"
                " Spark compares, groups and sorts its texts; here texts are compared by their bytes alone. Give it"
                " back the collation UTF8_BINARY there (ALTER TABLE .. ALTER COLUMN .. TYPE STRING COLLATE"
                " UTF8_BINARY), or copy the table with such a column."
            )
    if not handle.schema().fields:
        raise TableError(f"The source table {uri} has no columns. Write some rows into it first.")
    return handle


def _not_a_table(uri: str, fs: pafs.FileSystem, base: str) -> TableError:
    kind = fs.get_file_info(base).type
    if kind == pafs.FileType.NotFound:
        return TableError(f"The source table {uri} does not exist. Check the path in its declaration.")
    if kind == pafs.FileType.File:
        return TableError(f"The source {uri} is a file, not a Delta table. Name the table's folder.")
    return TableError(
        f"The source folder {uri} is not a Delta table: it has no commit in _delta_log. Name the folder above"
        " _delta_log; Parquet files alone can be turned into one with CONVERT TO DELTA."
    )


def _unreadable(uri: str, fs: pafs.FileSystem, base: str, version: int | None, error: Exception) -> TableError:
    if fs.get_file_info(base).type != pafs.FileType.Directory or not DeltaTable.is_deltatable(uri):
        return _not_a_table(uri, fs, base)
    if version is None:
        return TableError(f"The source table {uri} cannot be opened: {error}")
    return TableError(
        f"The source table {uri} cannot be read at version {version}: {error}. If its log was cleaned: {BASELINE}"
    )


def _collation(field: dict[str, Any]) -> str | None:
    """A collation other than UTF8_BINARY that a column or a part of it has (``PROTOCOL.md``, "Collations")."""
    inside = [field]
    while inside:
        part = inside.pop()
        for collation in ((part.get("metadata") or {}).get("__COLLATIONS") or {}).values():
            if str(collation).rpartition(".")[2].upper() != "UTF8_BINARY":
                return str(collation)
        for kind in (part.get(key) for key in ("type", "elementType", "keyType", "valueType")):
            if isinstance(kind, str) and " collate " in kind:
                return kind.rpartition(" ")[2]
            if isinstance(kind, dict):
                inside += [kind, *kind.get("fields", ())]
    return None


class ReadErrors:
    """Turn delta-rs's errors while reading into a TableError that names the table."""

    def __init__(self, uri: str, what: str) -> None:
        self.uri = uri
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and "non UTF-8" in str(error):
            raise TableError(
                f"The source table {self.uri} cannot be read ({self.what}): a text in it holds bytes that are no UTF-8"
                " (Spark writes any bytes as a text). Correct them there, as by make_valid_utf8 of Spark, or write them"
                " as a BINARY."
            ) from error
        if type(error) is Exception:  # what delta-rs finds while Arrow asks it for rows
            raise TableError(
                f"The source table {self.uri} cannot be read ({self.what}): {error}. Where a value does not fit"
                " the type that its column has in the log, write the column again in that type; a damaged file, too."
            ) from error
        if isinstance(error, (DeltaError, OSError)):
            raise TableError(
                f"The source table {self.uri} cannot be read ({self.what}): {error}. A file that VACUUM took or a Delta"
                " feature that is not known here; copy the table into a plain Delta table if it goes on."
            ) from error
