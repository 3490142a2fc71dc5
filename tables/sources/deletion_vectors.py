"""Deletion vectors of the Delta protocol: which rows of a data file are deleted, by position.

Format: PROTOCOL.md, "Deletion Vector Format"; the bitmaps inside are those of the Roaring specification.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import Any

import numpy as np
import pyarrow.fs as pafs

from sweeparea.tables.errors import TableError

_MAGIC = 1681511377
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUE = {digit: i for i, digit in enumerate(_DIGITS)}
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_NO_OFFSET_THRESHOLD = 4
"""A bitmap that knows runs leaves out its table of offsets below so many containers."""


def deleted_rows(vector: dict[str, Any], fs: pafs.FileSystem, base: str) -> np.ndarray:
    """The positions that a deletion vector's log entry deletes, ascending, as int64.

    ``base`` is the table's folder in ``fs``. Raises TableError where the bytes are no deletion vector, and
    FileNotFoundError where its file is gone.
    """
    kind, text = vector["storageType"], vector["pathOrInlineDv"]
    if kind == "i":
        return _positions(_z85(text))
    if kind == "u":
        # the last 20 characters are the file's id, a random folder may stand before
        folder, name = text[:-20], uuid.UUID(bytes=_z85(text[-20:]))
        path = f"{base}/{folder}/deletion_vector_{name}.bin" if folder else f"{base}/deletion_vector_{name}.bin"
    elif kind == "p":
        path = pafs.FileSystem.from_uri(text)[1] if "://" in text else text.removeprefix("file:")
    else:
        raise TableError(f"A deletion vector of the storage type {kind!r} is not known.")
    with fs.open_input_file(path) as source:
        source.seek(vector.get("offset") or 0)
        size = int.from_bytes(source.read(4), "big")
        data, check = source.read(size), int.from_bytes(source.read(4), "big")
    if size != vector["sizeInBytes"] or zlib.crc32(data) != check:
        raise TableError(f"The deletion vector {path} is damaged: its size or check sum is not what the log says.")
    return _positions(data)


def _z85(text: str) -> bytes:
    """Base 85 as ZeroMQ's RFC 32 writes it."""
    out = bytearray()
    for at in range(0, len(text), 5):
        number = 0
        for digit in text[at : at + 5]:
            number = number * 85 + _VALUE[digit]
        out += number.to_bytes(4, "big")
    return bytes(out)


def _positions(data: bytes) -> np.ndarray:
    magic, count = struct.unpack_from("<iQ", data)
    if magic != _MAGIC:
        raise TableError(f"A deletion vector begins with {magic}, which is no format known here.")
    at, parts = 12, []
    for _ in range(count):
        (key,) = struct.unpack_from("<I", data, at)
        low, at = _bitmap(data, at + 4)
        parts.append(low + (np.int64(key) << np.int64(32)))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _bitmap(data: bytes, at: int) -> tuple[np.ndarray, int]:
    """One 32-bit Roaring bitmap at ``at``: its values and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    runs = np.zeros(0, bool)
    if cookie & 0xFFFF == _WITH_RUNS:
        size = (cookie >> 16) + 1
        flags = (size + 7) // 8
        packed = np.frombuffer(data, np.uint8, flags, at + 4)
        runs = np.unpackbits(packed, bitorder="little")[:size].astype(bool)
        at += 4 + flags
    elif cookie == _WITHOUT_RUNS:
        (size,) = struct.unpack_from("<I", data, at + 4)
        runs = np.zeros(size, bool)
        at += 8
    else:
        raise TableError(f"A deletion vector holds a bitmap that begins with {cookie}, which is no format known here.")
    heads = np.frombuffer(data, "<u2", 2 * size, at).reshape(size, 2)
    at += 4 * size
    if cookie == _WITHOUT_RUNS or size >= _NO_OFFSET_THRESHOLD:
        at += 4 * size
    parts = []
    for (key, less), run in zip(heads.tolist(), runs.tolist(), strict=True):
        if run:
            (count,) = struct.unpack_from("<H", data, at)
            pairs = np.frombuffer(data, "<u2", 2 * count, at + 2).reshape(count, 2).astype(np.int64)
            values = np.concatenate([np.arange(start, start + length + 1) for start, length in pairs.tolist()])
            at += 2 + 4 * count
        elif less + 1 > 4096:
            bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, at), bitorder="little")
            values = np.flatnonzero(bits)
            at += 8192
        else:
            values = np.frombuffer(data, "<u2", less + 1, at)
            at += 2 * (less + 1)
        parts.append(values.astype(np.int64) + (key << 16))
    return (np.concatenate(parts) if parts else np.empty(0, np.int64)), at
