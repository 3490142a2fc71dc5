"""A static HTML page over stored verdicts: one file, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any, TypedDict

STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem;color:#222}table{border-collapse:collapse;margin:.5rem 0 2rem}"
    "th,td{padding:.3rem .8rem;text-align:left;border-bottom:1px solid #ccc;vertical-align:top}"
    ".pass{color:#176b2c}.fail,.error{color:#a3151f;font-weight:600}.warning{color:#8a5a00}code{font-size:90%}"
)


class Entry(TypedDict):
    """A verdict as the ledger keeps it: which table, which slice (readable), and ``asdict(Verdict)``."""

    table: str
    slice: str
    verdict: dict[str, Any]


def render(title: str, entries: Sequence[Entry]) -> str:
    """The page as text, in the order of ``entries`` (newest first reads best)."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        *(_section(entry) for entry in entries),
    ]
    if not entries:
        parts.append("<p>No slice has been audited yet.</p>")
    return "\n".join(parts) + "\n"


def _section(entry: Entry) -> str:
    verdict = entry["verdict"]
    word, css = ("published", "pass") if verdict["ok"] else ("refused", "fail")
    rows = "".join(_row(result) for result in verdict["results"])
    return (
        f"<h2>{escape(entry['table'])} <small>{escape(entry['slice'])}</small></h2>"
        f"<p><span class={css}>{word}</span>: {verdict['rows']} rows audited in {verdict['seconds']} s</p>"
        f"<table><tr><th>check<th>result<th>severity<th>rows<th>what was seen</tr>{rows}</table>"
    )


def _row(result: dict[str, Any]) -> str:
    css = "warning" if result["status"] == "fail" and result["severity"] != "critical" else result["status"]
    expect = result["meta"].get("expect")
    name = escape(result["id"]) + (f"<br><code>{escape(expect)}</code>" if expect else "")
    seen = result["error"] or "\n".join(json.dumps(row) for row in result["sample"])
    count = "" if result["unexpected"] is None else result["unexpected"]
    return (
        f"<tr><td>{name}<td class={css}>{result['status']}<td>{result['severity']}<td>{count}"
        f"<td><code>{escape(seen).replace(chr(10), '<br>')}</code></tr>"
    )
