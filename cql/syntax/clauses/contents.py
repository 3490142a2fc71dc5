"""Where a relation's history comes from: its clauses, and whether they fit each other."""

from __future__ import annotations

from typing import Any

from sweeparea.cql.text.errors import ParseError, Place


def contents_of(name: str, found: dict[str, Any], places: dict[str, Place]) -> str:
    """Which of the four kinds of contents a relation has, once its clauses fit each other."""
    kinds = {"static": "STATIC", "history": "HISTORY BY", "changes": "CHANGES BY", "feed": "CHANGE DATA FEED"}
    given = [k for k in kinds if k in found]
    if len(given) > 1:
        raise ParseError(
            f"relation {name} has {kinds[given[0]]} and {kinds[given[1]]}, but its history comes from one place",
            max((places[k] for k in given), key=lambda p: (p.line, p.column)),
            "Keep one of them",
        )
    contents = given[0] if given else "static"
    for clause, words in (("key", "KEY"), ("sequence_by", "SEQUENCE BY")):
        if clause in found and contents != "changes":
            raise ParseError(
                f"{words} belongs to CHANGES BY, which relation {name} does not have",
                places[clause],
                "Write CHANGES BY (op, ts) KEY (id)",
            )
    if "sequence_by" in found and "key" not in found:
        raise ParseError(
            f"SEQUENCE BY orders the changes of a key, and relation {name} has no KEY",
            places["sequence_by"],
            "Write CHANGES BY (op, ts) KEY (id) SEQUENCE BY n, or leave SEQUENCE BY out",
        )
    if contents == "feed" and "heartbeat" in found:
        raise ParseError(
            f"relation {name} is a CHANGE DATA FEED: it is known up to the time at which its source was read, so it"
            " takes no HEARTBEAT",
            places["heartbeat"],
            "Leave HEARTBEAT out, or say where the instants of its changes stand: HISTORY BY or CHANGES BY",
        )
    if contents in ("history", "changes") and "heartbeat" not in found:
        column = found[contents][0 if contents == "history" else 1]
        raise ParseError(
            f"relation {name} has {kinds[contents]} and no HEARTBEAT, so nobody knows how far its history is told",
            places[contents],
            f"Write HEARTBEAT FOR {column} AS {column}",
        )
    return contents
