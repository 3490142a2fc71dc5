"""The words of the language: which of them a misspelt one is, and where each of them stands."""

from __future__ import annotations

from collections.abc import Iterable

_STATEMENT = "CREATE STREAM name FROM DELTA 'path' TIMESTAMP BY column .."
_OF_A_STREAM = "It is a clause of CREATE STREAM, behind FROM DELTA 'path'"
_OF_A_RELATION = "It is a clause of CREATE RELATION, behind FROM DELTA 'path'"
_OF_BOTH = "It is a clause of CREATE STREAM and CREATE RELATION, behind FROM DELTA 'path'"
_OF_A_QUERY = "It stands in CREATE CONTINUOUS QUERY name .., before AS SELECT"
_ORDER = (
    "The clauses of a query are SELECT, FROM, WHERE, GROUP BY, HAVING, QUALIFY, ORDER BY, LIMIT, OFFSET, in this order"
)
_WINDOW = "It belongs into a window, which stands in brackets behind the stream's name: S [Range INTERVAL 1 HOUR]"
_SLIDE = "It belongs into a window: S [Range INTERVAL 1 HOUR Slide INTERVAL 5 MINUTES Anchor TIMESTAMP '2024-01-31']"
_SET = "It stands between two queries: SELECT a FROM S UNION ALL SELECT a FROM T"
_JOIN = "Joins stand in FROM, before WHERE: S JOIN T ON S.a = T.a"
_TO_STREAM = "Write ISTREAM(SELECT ..) around a query, or SELECT ISTREAM(a, b) FROM .."
_CONSTRAINT = "Write CONSTRAINT name EXPECT (condition) ON VIOLATION FAIL UPDATE"
_RSTREAM = "Write RSTREAM(SELECT .. EVERY INTERVAL 5 MINUTES ANCHOR TIMESTAMP '2024-01-31')"

PLACES: dict[str, str] = {
    **dict.fromkeys(("SELECT", "FROM", "WHERE", "GROUP BY", "GROUP", "HAVING", "QUALIFY", "ORDER BY", "ORDER"), _ORDER),
    **dict.fromkeys(("LIMIT", "OFFSET"), _ORDER),
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT", "MINUS"), _SET),
    **dict.fromkeys(("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL"), _JOIN),
    **dict.fromkeys(("ON", "USING"), "It stands behind a join: S JOIN T ON S.a = T.a, or USING (a)"),
    **dict.fromkeys(("RANGE", "ROWS", "TUMBLING", "HOPPING", "FIXED", "SESSION", "NOW", "UNBOUNDED"), _WINDOW),
    **dict.fromkeys(("INCLUSIVE", "EXCLUSIVE", "UNTIL"), _WINDOW),
    **dict.fromkeys(("SLIDE", "LAG"), _SLIDE),
    "ANCHOR": f"{_SLIDE}, or behind EVERY",
    "EVERY": _RSTREAM,
    **dict.fromkeys(("ISTREAM", "DSTREAM", "RSTREAM"), _TO_STREAM),
    **dict.fromkeys(("MATERIALIZE", "START", "AS"), _OF_A_QUERY),
    "WITH": "Write WITH v AS (SELECT ..) before SELECT for named queries, WITH (name = value) before AS for settings",
    **dict.fromkeys(("TIMESTAMP BY", "DEDUPLICATE", "MAX", "AHEAD", "RETAIN"), _OF_A_STREAM),
    "CHRONON": "It is a clause of CREATE STREAM, and of CREATE CONTINUOUS QUERY over relations alone, before AS",
    **dict.fromkeys(("HISTORY", "CHANGES", "CHANGE", "STATIC", "RETROACTIVE", "FEED"), _OF_A_RELATION),
    **dict.fromkeys(("HEARTBEAT", "LATE", "SEQUENCE", "IDLE"), _OF_BOTH),
    **dict.fromkeys(("REJECT", "REPAIR"), "Write LATE REJECT or LATE REPAIR WITHIN INTERVAL 1 DAY, in CREATE STREAM"),
    "WITHIN": "Write LATE REPAIR WITHIN INTERVAL 1 DAY, or DEDUPLICATE BY a WITHIN INTERVAL 1 DAY, in CREATE STREAM",
    **dict.fromkeys(("CONSTRAINT", "EXPECT", "VIOLATION", "QUARANTINE"), _CONSTRAINT),
    **dict.fromkeys(("STREAM", "RELATION", "CONTINUOUS", "QUERY"), f"Statements begin with CREATE: {_STATEMENT}"),
}  # fmt: skip
"""Where a word of the language stands, for who has written it elsewhere."""

_TYPED = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET", "UNION", "INTERSECT"),
    *("EXCEPT", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "ON", "USING", "DISTINCT", "WITH", "LATERAL"),
    *("CREATE", "STREAM", "RELATION", "CONTINUOUS", "QUERY", "TIMESTAMP", "CHRONON", "SEQUENCE", "HEARTBEAT", "RETAIN"),
    *("CONSTRAINT", "MATERIALIZE", "START", "EXPECT", "VIOLATION", "DEDUPLICATE", "EVERY", "ANCHOR", "ISTREAM"),
    *("DSTREAM", "RSTREAM", "WITHIN", "REPAIR", "REJECT", "HISTORY", "CHANGES", "STATIC", "RETROACTIVE", "QUARANTINE"),
)


def misspelt(word: str, known: Iterable[str] = _TYPED) -> str:
    """``Did you mean x?`` for a keyword that ``word`` is with one fault, or with two in a long one; else an empty text.
    A word of the language is itself, and no other one with faults."""
    word = word.upper()
    if word in PLACES and word not in ("GROUP", "ORDER"):
        return ""
    limit = max(1, len(word) // 3) if len(word) > 2 else 0
    ranks: list[tuple[int, int, int, str]] = []
    for keyword in known:
        upper = keyword.upper()
        faults = min(_distance(word, upper), _distance(word, upper.split()[0]))
        cut = len(word) > 3 and upper.startswith(word) and faults > limit
        if faults <= limit or cut:
            # of two that are as near the longer one: a letter is lost more often than doubled
            ranks.append((1 if cut else faults, int(cut), -len(keyword), keyword))
    best = min(ranks, default=None)
    return f"Did you mean {best[3]}?" if best is not None and best[3].upper() != word else ""


def _distance(a: str, b: str) -> int:
    """How many letters are wrong, missing, too many, or changed places."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
        before = last
    return row[-1]
