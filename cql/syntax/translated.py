"""What sqlglot says of a text that it cannot read, in the words of this language."""

from __future__ import annotations

from sqlglot.errors import SqlglotError

from sweeparea.cql.syntax.clauses.words import Words
from sweeparea.cql.text.errors import ParseError, nearest
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType

_TYPES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "interval", "array", "map", "struct", "variant"),
)
_OTHER_TYPES = {"integer": "INT", "text": "STRING", "varchar2": "STRING", "number": "DECIMAL", "datetime": "TIMESTAMP"}


def _near_type(word: str) -> str:
    known = {t: t.upper() for t in _TYPES} | _OTHER_TYPES
    close = nearest(word, known)
    return f"Did you mean {known[close.removeprefix('Did you mean ').rstrip('?')]}?" if close else ""


def _wanted_type(parser: Words) -> Token | None:
    """The word that stands where ``array<`` or the like wants a type."""
    depth = 0
    before = parser.before(20)
    for i in range(len(before) - 1, 0, -1):
        depth += (before[i].text == ">") - (before[i].text == "<")
        if depth < 0:
            kind = before[i - 1].text.upper()
            words = [t for t in parser.behind(2) if t.token_type == TokenType.VAR]
            wanted = words[1:] if kind == "STRUCT" else words
            return wanted[0] if kind in ("ARRAY", "MAP", "STRUCT") and wanted else None
    return None


def translated(error: SqlglotError, source: SourceText, parser: Words) -> ParseError:
    """The error with its place, and what to do about it."""
    details = (getattr(error, "errors", None) or [{}])[0]
    message = str(details.get("description") or str(error).splitlines()[0]).rstrip(".")
    place = source.place(parser.position())
    found = parser.found()
    wanted = _wanted_type(parser)
    if "TYPE after CAST" in message or message.startswith("Expected type") or wanted is not None:
        word = parser.word().lower() if wanted is None else wanted.text.lower()
        return ParseError(
            f"a type is expected, found {found if wanted is None else repr(wanted.text)}",
            place if wanted is None else source.place(wanted.start),
            _near_type(word) or f"Types are {', '.join(t.upper() for t in _TYPES)}",
        )
    if message.startswith("Invalid expression / Unexpected token"):
        message = f"{found} is not expected here"
    elif message.startswith("Required keyword: "):
        if found == "'>'" and [t.text for t in parser.before(2)] == [">", ">"]:
            return ParseError(">>> is not offered by this version", place, "Write shiftrightunsigned(a, n)")
        message = f"something is missing before {found}"
    elif message.startswith("Expecting ") or message.startswith("Expected "):
        what = message.split(" ", 1)[1].split(" but got ")[0].removeprefix("table name")
        what = what or "the name of a stream, relation or query"
        message = f"{what!r} is expected, found {found}" if len(what) <= 2 else f"{what} is expected, found {found}"
    else:
        message = f"{message[:1].lower()}{message[1:]}, at {found}"
    unfinished = "beside the comma" in message or "behind the comma" in message
    return ParseError(message, place, "" if unfinished else parser.near_keyword())
