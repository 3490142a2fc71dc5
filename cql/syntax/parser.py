"""Text to statements: the grammar of ``docs/grammar.ebnf`` above the level of SELECT, which ``dialect/`` reads.

Each statement is read on its own (``statement_parser.py``), so that one fault does not hide the faults of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sweeparea.cql.syntax import recovery
from sweeparea.cql.syntax import statements as st
from sweeparea.cql.syntax.dialect.tokenizing import tokenize
from sweeparea.cql.syntax.statement_parser import StatementParser
from sweeparea.cql.syntax.translated import translated
from sweeparea.cql.text import foreign_words
from sweeparea.cql.text.errors import ParseError, RefusedError, not_offered, raise_all
from sweeparea.cql.text.source_text import SourceText
from sweeparea.cql.text.tokens import Token, TokenType
from sweeparea.infra.deep_stack import deep
from sweeparea.infra.errors import SweepAreaError


def parse_text(text: str, filename: str = "<text>") -> list[st.Statement]:
    """The statements of a text. Raises one error or ``CqlErrors`` with at most one error a statement."""
    return parse(text, filename)


def read_file(path: str | Path) -> str:
    """The text of a file of statements."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8 text (byte {error.start})", None, "Save the file as UTF-8") from None
    except OSError as error:
        raise ParseError(
            f"{path} cannot be read: {error.strerror}", None, "Remove it, or make it a readable file"
        ) from None


def parse(text: str, filename: str) -> list[st.Statement]:
    """All statements of a text; raises ``CqlErrors`` (or the one error) after every statement was tried."""
    parsed, errors, _ = parse_leniently(text, filename)
    raise_all(errors)
    return parsed


@deep
def parse_leniently(
    text: str, filename: str
) -> tuple[list[st.Statement], list[SweepAreaError], dict[str, SweepAreaError]]:
    """The statements of a text that can be read, the faults of the others, and for the names that these were to
    declare, in lower case, why they are not."""
    swallowing = False
    try:
        chunks, faults = recovery.split(tokenize(text, filename)), []
        swallowing = recovery.swallows(text, chunks)
    except ParseError:
        chunks, faults = recovery.readable(text, filename)
    read = _read(text, filename, chunks, faults)
    if swallowing and read[1]:
        return _read(text, filename, *recovery.readable(text, filename))
    return read


def _read(
    text: str, filename: str, chunks: list[list[Token]], faults: list[tuple[str, ParseError]]
) -> tuple[list[st.Statement], list[SweepAreaError], dict[str, SweepAreaError]]:
    parsed: list[st.Statement] = []
    errors: list[SweepAreaError] = []
    unread: dict[str, SweepAreaError] = {}

    def failed(statement: str, error: SweepAreaError) -> None:
        errors.append(error)
        name = recovery.declared(statement)
        if name is not None:
            unread.setdefault(name.lower(), error)

    for statement, error in faults:
        failed(statement, error)
    before = 0
    for chunk in chunks:
        end = chunk[-1].end + 1
        try:
            read = _guarded(text, filename, chunk, StatementParser.statement)
            parsed.append(replace(read, written=text[before:end].strip(" \t\r\n;")))
        except SweepAreaError as error:
            failed(text[chunk[0].start : end], error)
        before = end
    return parsed, errors, unread


@deep
def parse_query_text(text: str, filename: str = "<query>") -> tuple[exp.Expr, SourceText]:
    """One SELECT (or ISTREAM(..), WITH ..) without a statement around it, as ``replay`` and EXPLAIN take it."""
    chunks = recovery.split(tokenize(text, filename))
    if not chunks:
        raise ParseError("the query is empty", SourceText(text, filename).place(0), "Write SELECT .. FROM ..")
    if len(chunks) > 1:
        place = SourceText(text, filename).place(chunks[1][0].start)
        raise ParseError("one query is expected, but a second statement begins here", place)
    return _guarded(text, filename, chunks[0], StatementParser.only_query)


LEVELS = 1_000
"""Levels of nesting that are read, on any machine."""


def _levels(chunk: list[Token]) -> list[int]:
    """How many parentheses, brackets and CASEs are open at each token, it included."""
    found: list[int] = []
    depth = 0
    for token in chunk:
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
        found.append(depth)
        depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
    return found


def _guarded(text: str, filename: str, chunk: list[Token], read: Callable[[StatementParser], Any]) -> Any:
    source = SourceText(text, filename, chunk)
    parser = StatementParser(source, chunk)
    level = _levels(chunk)
    if max(level, default=0) > LEVELS:
        raise ParseError(
            f"this statement nests too deeply to be read: parentheses, brackets and CASE stand {max(level):,} inside"
            f" one another, and {LEVELS:,} may",
            source.place(chunk[next(i for i, depth in enumerate(level) if depth > LEVELS)].start),
            "Take parts of it into queries of their own",
        )
    try:
        return read(parser)
    except SqlglotError as error:
        foreign = _foreign(source, chunk, parser.position())
        raise foreign or translated(error, source, parser) from None
    except ParseError as error:
        offset = _offset(chunk, source, error)
        if _in_window(chunk, offset) or not any(words in error.message for words in _NOT_EXPECTED):
            raise  # it says more than that a word is not expected
        raise _foreign(source, chunk, offset) or error from None
    except RecursionError:
        raise ParseError(
            "this statement nests too deeply to be read",
            source.place(chunk[level.index(max(level))].start),
            "Take parts of it into queries of their own",
        ) from None
    except SweepAreaError:
        raise
    except Exception as error:
        # sqlglot's parser trusts its input in places; whatever it trips over is still a fault of the text
        place = source.place(parser.position())
        raise ParseError("this statement cannot be read near here", place) from error


def _offset(chunk: list[Token], source: SourceText, error: ParseError) -> int:
    """Where in the text an error is placed; behind all of it where it has no place."""
    at = error.place
    behind = (t.start for t in chunk if at is not None and source.place(t.start) == at)
    return next(behind, chunk[-1].end)


_NOT_EXPECTED = ("is expected, found", "is not expected here", "begins no clause of", "a window stands in brackets")


def _in_window(chunk: list[Token], offset: int) -> bool:
    """Whether a bracket is open before a character."""
    kinds = [t.token_type for t in chunk if t.start < offset]
    return kinds.count(TokenType.L_BRACKET) > kinds.count(TokenType.R_BRACKET)


def _foreign(source: SourceText, chunk: list[Token], offset: int) -> RefusedError | None:
    """The refusal of what another system has before a place at which a text could not be read."""
    found = foreign_words.recognized(chunk, offset)
    return None if found is None else not_offered(found.what, source.place(found.start), found.hint)
