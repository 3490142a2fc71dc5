"""What other streaming systems and SQL dialects write, told by their words where a text cannot be read: the spelling to
use here. Asked only about texts that have a fault, so no text that can be read is refused for its words.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sweeparea.cql.text.tokens import Token, TokenType

_TUMBLING = "S [Tumbling INTERVAL 10 MINUTES]"
_BOUNDS = "WINDOW_START(S) and WINDOW_END(S) give its bounds"
WINDOWS = {
    "TUMBLE": f"Write a window behind the stream: {_TUMBLING}; {_BOUNDS}",
    "HOP": "Write a window behind the stream: S [Hopping INTERVAL 10 MINUTES Slide INTERVAL 5 MINUTES]; " + _BOUNDS,
    "SESSION": "Write a window behind the stream: S [Session INTERVAL 10 MINUTES Partition By a]; " + _BOUNDS,
    "CUMULATE": "Write what each bucket holds so far as S [Fixed INTERVAL 1 DAY]",
}
"""Windows as functions, as Flink, Calcite and RisingWave have them."""
_CHANGES = "Leave it out: ISTREAM(SELECT ..) gives what begins, DSTREAM(SELECT ..) what ends, the table holds both"
_EVERY = (
    "Write RSTREAM(SELECT .. EVERY INTERVAL 5 MINUTES) for the whole answer at each step, or a window with steps:"
    " S [Range INTERVAL 1 HOUR Slide INTERVAL 5 MINUTES]"
)
_BEHIND_JOIN = (
    "Write a window behind each stream: S [Range INTERVAL 5 MINUTES] JOIN T [Range INTERVAL 5 MINUTES] ON S.a = T.a"
)
_HEARTBEAT = "Write HEARTBEAT FOR t AS t - INTERVAL 5 SECONDS in CREATE STREAM"
_VERBS = "EVALUATE|COMPUTE|REFRESH|TRIGGER|UPDATE|REPEAT|EXECUTE|RUN|REPORT|SCHEDULE"
CHANCE = "Chance gives another answer each time. Filter by a column, such as a % 10 = 0"
"""The way out where a sample of rows is asked for."""
_PAST = "A query is computed for every instant: read q__at('2024-01-31 12:00:00') with `sweeparea sql`"
_LIMIT = "Write SELECT .. ORDER BY a LIMIT 3"
_ESPER = {
    "TIME": "S [Range INTERVAL 5 SECONDS]",
    "LENGTH": "S [Rows 5]",
    "TIME_BATCH": "S [Tumbling INTERVAL 5 SECONDS]",
    "LENGTH_BATCH": "S [Rows 5 Slide 5]",
    "EXT_TIMED": "S [Range INTERVAL 5 SECONDS]",
    "EXT_TIMED_BATCH": "S [Tumbling INTERVAL 5 SECONDS]",
    "UNIQUE": "S [Partition By a Rows 1]",
    "GROUPWIN": "S [Partition By a Rows 5]",
    "LASTEVENT": "S [Rows 1]",
    "KEEPALL": "S [Range Unbounded]",
    "TIME_ACCUM": "S [Session INTERVAL 5 SECONDS]",
}
_KSQL = {"TUMBLING": WINDOWS["TUMBLE"], "HOPPING": WINDOWS["HOP"], "SESSION": WINDOWS["SESSION"]}

FUNCTIONS = {
    **dict.fromkeys(("MZ_NOW", "PROCTIME", "GETDATE", "SYSDATE", "TODAY", "SYSTIMESTAMP", "CURRENT_WATERMARK"), (
        "A result must not depend on when it is computed: use the stream's instant ts, and a window for ages,"
        " S [Range INTERVAL 1 HOUR]"
    )),
    **{f"{name}{end}": f"Write WINDOW_START(S) or WINDOW_END(S), with {_TUMBLING} in FROM"
       for name in ("TUMBLE", "HOP", "SESSION") for end in ("_START", "_END", "_ROWTIME", "_PROCTIME")},
    **WINDOWS,
    **dict.fromkeys(("TIME_BUCKET_GAPFILL", "DATE_BIN"), f"Write a window, {_TUMBLING}, or date_trunc('HOUR', ts)"),
    **dict.fromkeys(("GROUP_CONCAT",), "Write listagg(a, ',') WITHIN GROUP (ORDER BY a)"),
    **dict.fromkeys(("IIF",), "Write if(a > 1, b, c)"),
    **dict.fromkeys(("CONVERT",), "Write CAST(a AS BIGINT)"),
    **dict.fromkeys(("SAFE_CAST",), "Write TRY_CAST(a AS BIGINT)"),
    **dict.fromkeys(("ROW",), "Write struct(a, b)"),
    **dict.fromkeys(("TOP",), _LIMIT),
    **dict.fromkeys(("GENERATE_SERIES", "UNNEST"), "Write LATERAL VIEW explode(sequence(1, 5)) t AS x"),
    **dict.fromkeys(("STRFTIME", "TO_CHAR_TIME"), "Write date_format(ts, 'yyyy-MM-dd')"),
    **dict.fromkeys(("TABLE", "STREAM"), "Write the name alone: FROM S [Range INTERVAL 1 HOUR]"),
}  # fmt: skip
"""Functions of other systems, and what to write. Those that Spark has are Spark's."""

COLUMNS = {
    **dict.fromkeys(("ROWTIME", "PROCTIME", "_TIME", "EVENT_TIME"), "A stream's instant is ts"),
    **dict.fromkeys(("SYSDATE", "SYSTIMESTAMP"), FUNCTIONS["SYSDATE"]),
    **dict.fromkeys(("ROWNUM", "ROWID", "TOP"), _LIMIT),
    **dict.fromkeys(
        ("STREAM", "ISTREAM", "DSTREAM", "RSTREAM", "IRSTREAM"),
        "Write SELECT ISTREAM(a, b) FROM .., with the columns in parentheses; a query without it is a table",
    ),
    "ARRAY": "Write array(1, 2)",
    "WINDOW_START": "Write WINDOW_START(S), S being the stream with its window",
    "WINDOW_END": "Write WINDOW_END(S), S being the stream with its window",
}
"""Words of other systems that read like columns."""

INPUTS = {
    **dict.fromkeys(("STREAM", "TABLE"), "Write the name alone: FROM S [Range INTERVAL 1 HOUR]"),
    "PATTERN": "Write joins of windows, or LAG and LEAD",
}
"""Words of other systems that read like names in FROM."""


@dataclass(frozen=True)
class Foreign:
    """What was recognized: the token it begins with, its name and what to write."""

    start: int
    what: str
    hint: str


_ANY = 10**6
_PATTERNS: tuple[tuple[str, str, str, int], ...] = (
    (r"PATTERN \[", "PATTERN", "Write joins of windows, or LAG and LEAD", 2),
    (
        r"STREAM [\w`]+ (?P<at>\() [^;]{0,2000}?WATERMARK FOR",
        "a list of columns",
        _HEARTBEAT + "; columns are those of the source",
        0,
    ),
    (r"# (?P<w>\w+)(?= \()", "the view #{w}", "{esper}", 0),
    (r"(?P<v>WIN|STD|EXT|EXP) : (?P<w>\w+)", "the view {v}:{w}", "{esper}", 1),
    (r"# (?!\w+ \()", "a comment that begins with #", "Comments begin with --", 0),
    (r"EMIT (?:CHANGES|FINAL|STREAM|ON|AFTER|WITH)", "EMIT", _CHANGES, 1),
    (r"OUTPUT (?:EVERY|LAST|FIRST|ALL|SNAPSHOT|AT|AFTER|WHEN|IF)", "OUTPUT", _EVERY, 1),
    (rf"(?P<w>{_VERBS})D? EVERY", "{w} EVERY", _EVERY, 1),
    (r"TRIGGER (?:PROCESSING|ONCE|AVAILABLE|CONTINUOUS)", "TRIGGER", _EVERY, 1),
    (r"(?<!HEARTBEAT )EVERY ", "EVERY at this place", _EVERY, 0),
    (r"JOIN [^;]{0,400}?(?P<at>WITHIN (?:0|\())", "WITHIN behind a join", _BEHIND_JOIN, 3),
    (r"GRACE PERIOD", "GRACE PERIOD", "How late rows may come is the stream's: HEARTBEAT and LATE in CREATE STREAM", 2),
    (r"(?:WITH )?WATERMARK", "WATERMARK", _HEARTBEAT, 1),
    (r"SELECT STREAM(?= [*`\w])", "SELECT STREAM", "Write SELECT ISTREAM(*) FROM .., or leave STREAM out", 4),
    (r"FOR SYSTEM_VERSION", "time travel", _PAST, 0),
    (r"AS OF (?:0|'s'|NOW|TIMESTAMP|DATE|\w)", "AS OF", _PAST, 2),
    (r"@ V\d+", "time travel", _PAST, 0),
    (r"(?:LEFT )?ASOF JOIN", "ASOF JOIN", "Join with the last row of each key: T [Partition By a Rows 1]", 1),
    (r"SAMPLE (?:0|\()", "SAMPLE", CHANCE, 1),
    (r"TOP (?:0|\()|FIRST 0", "TOP", _LIMIT, 1),
    (r"\* \*", "** as a power", "Write pow(a, 2)", 2),
    (r"/ /", "//", "Write a DIV b", 1),
    (r"MOD 0", "MOD between numbers", "Write a % 2, or mod(a, 2)", 1),
    (r"! ?~|~ 's'", "a match with ~", "Write a RLIKE 'pattern', or NOT a RLIKE 'pattern'", 0),
    (r"\* =", "the outer join *=", "Write FROM S LEFT JOIN R ON S.a = R.a", 1),
    (r"(?P<w>ISNULL|NOTNULL)(?! \()", "{w} as an operator", "Write a IS NULL, or a IS NOT NULL", 1),
    (r"[@:$?](?= ?\w)|\?", "a parameter marker or variable", "Write the value itself", 0),
    (r"(?:FROM|JOIN) \[", "a name in brackets", "Quote names by backticks: FROM `S`; brackets hold windows", 1),
    (r"OVER (?:\( \w+ )?\[", "a window in OVER", "Write it behind the stream's name in FROM: FROM S [Rows 5]", 3),
    (r"OVER \( LIMIT", "LIMIT in OVER", "Write a frame: OVER (ORDER BY a ROWS 4 PRECEDING)", 3),
    (r"IF (?:NOT )?EXISTS", "IF EXISTS", "Leave it out: `sweeparea plan` tells what is there and what would change", 1),
    (r"PARTITION BY", "PARTITION BY here", "Write it into a window, S [Partition By a Rows 1], or into OVER (..)", 0),
    (r"LATERAL FLATTEN", "FLATTEN", "Write LATERAL VIEW explode(a) t AS x", 2),
    (r"(?<!WINDOW )(?P<w>TUMBLE|HOP|SESSION|CUMULATE) \(", "the window function {w}(..)", "{window}", _ANY),
    (r"WINDOW (?P<w>TUMBLING|HOPPING|SESSION) \(", "WINDOW {w} (..)", "{ksql}", _ANY),
    (r"MATCH_RECOGNIZE \(", "MATCH_RECOGNIZE", "Write joins of windows, or LAG and LEAD", _ANY),
    (r"FLOOR \( [\w.` ]+ TO \w+", "FLOOR(.. TO unit)", "Write date_trunc('HOUR', ts)", _ANY),
)
"""Patterns over a text as ``_words`` gives it; what each is called; what to write; and how many tokens at most lie
between its first and the one at which a text could not be read. The first that fits counts."""


def _words(tokens: Sequence[Token]) -> tuple[str, list[int]]:
    """Tokens as one text in upper case, with 's' for strings and 0 for numbers; and where each token begins in it."""
    text, starts = "", []
    for token in tokens:
        starts.append(len(text))
        if token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            word = "'s'"
        elif token.token_type == TokenType.NUMBER:
            word = "0"
        elif token.token_type == TokenType.IDENTIFIER:
            word = "`name`"
        else:
            word = " ".join(token.text.upper().split())
        text += word + " "
    return text, starts


def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern that begins with a word matches at the beginning of one."""
    word = pattern[0].isalpha() or pattern.startswith(("(?P<w>", "(?P<v>", "(?<!", "(?:"))
    return re.compile(rf"(?<![\w`'])(?:{pattern})" if word else pattern)


_ALL = [(_compiled(pattern), what, hint, reach) for pattern, what, hint, reach in _PATTERNS]


def recognized(tokens: Sequence[Token], offset: int) -> Foreign | None:
    """What of another system stands around the character ``offset``, at which a text could not be read."""
    text, starts = _words(tokens)
    failed = max((i for i, token in enumerate(tokens) if token.start <= offset), default=0)
    for pattern, what, hint, reach in _ALL:
        for match in reversed(list(pattern.finditer(text))):
            start = match.start("at") if "at" in pattern.groupindex else match.start()
            at = bisect.bisect_left(starts, start)
            if failed - reach <= at <= failed and at < len(starts) and starts[at] == start:
                return Foreign(tokens[at].start, _filled(what, match), _filled(hint, match))
    return None


def _filled(text: str, match: re.Match[str]) -> str:
    groups = match.groupdict()
    word = groups.get("w") or ""
    view = _ESPER.get(word, "S [Range INTERVAL 5 SECONDS] or S [Rows 5]")
    return text.format_map({
        "w": word, "v": (groups.get("v") or "").lower(),
        "window": WINDOWS.get(word, ""), "ksql": _KSQL.get(word, ""),
        "esper": f"Write a window behind the stream: {view}",
    }) if "{" in text else text  # fmt: skip
