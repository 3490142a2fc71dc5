"""The verdicts of one stream, relation or query as one HTML file, which needs no network and no other file.

What it shows is what ``quality.verdicts`` and ``quality.samples`` hold: the verdict of now, each expectation's observed
values over time, and violations with rows that break them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]

POINTS = 400
"""So many points a plot has at most; where there are more verdicts the worst of several next to each other is shown."""
VIOLATIONS = 100
"""So many violations are listed, the latest."""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 96, 56, 18
_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; color: #1d2733; max-width: 960px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #d5dce4; }
h3 { font-size: 1em; margin: 1.4em 0 .2em; } p.sub { color: #5b6876; margin-top: .2em; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .25em .6em; vertical-align: top;
border-bottom: 1px solid #e5eaef; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: 12px/1.4 ui-monospace, monospace; background: #f4f6f8; } pre { padding: .5em; overflow-x: auto; }
.pass { color: #1a7f4b; } .fail { color: #b42318; } .error { color: #b42318; } .warning { color: #9a6700; }
svg text { font: 10px system-ui, sans-serif; fill: #5b6876; } .mark { font-weight: 600; }
"""


def page(
    title: str,
    verdicts: pa.Table,
    samples: pa.Table,
    *,
    made_at: datetime,
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """The HTML of one name's verdicts (columns of ``records.VERDICTS``, in the order of commits), with its samples.

    ``links`` are (text, command or address) for what is kept elsewhere, the quarantine above all.
    """
    rows = verdicts.to_pylist()
    by_commit: dict[tuple[str, str, str], list[str]] = {}
    for sample in samples.to_pylist():
        by_commit.setdefault((sample["attempt"], sample["table_name"], sample["expectation"]), []).append(sample["row"])
    parts = [
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><p class=sub>{len(rows):,} verdicts, written {escape(_time(made_at))}</p>",
        *_now(rows),
        *_series(rows),
        *_violations(rows, by_commit),
    ]
    if links:
        parts.append("<h2>Where rows are kept</h2><table>")
        parts += [f"<tr><td>{escape(text)}</td><td><code>{escape(where)}</code></td></tr>" for text, where in links]
        parts.append("</table>")
    return "\n".join([*parts, "</body></html>\n"])


def latest(rows: Sequence[Row]) -> list[Row]:
    """The rows of the last commit that has a verdict, and of a refused one if that came after."""
    if not rows:
        return []
    attempt = rows[-1]["attempt"]
    return [row for row in rows if row["attempt"] == attempt]


def _now(rows: Sequence[Row]) -> Iterable[str]:
    yield "<h2>The verdict of now</h2>"
    now = latest(rows)
    if not now:
        yield "<p>Nothing has been judged yet.</p>"
        return
    last = now[0]
    failing = [row for row in now if row["status"] != "pass"]
    state = "refused" if last["refused"] else "committed"
    worst = f"{len(failing)} of {len(now)} checks are not met" if failing else f"all {len(now)} checks are met"
    kind = (
        "fail"
        if last["refused"] or any(r["severity"] == "critical" for r in failing)
        else "warning"
        if failing
        else "pass"
    )
    yield f"<p><span class='mark {kind}'>{state}: {worst}</span>, {escape(_where(last))}.</p>"
    if last["note"]:
        yield f"<p>{escape(last['note'])}</p>"
    yield "<table><tr><th>table<th>expectation<th>severity<th>status<th>rows<th>unexpected<th>share<th>observed</tr>"
    for row in now:
        cells = (row["table_name"], row["expectation"], row["severity"])
        yield "<tr>" + "".join(f"<td>{escape(str(cell or ''))}</td>" for cell in cells)
        yield f"<td class={row['status']}>{row['status']}</td>"
        numbers = (_number(row["rows"]), _number(row["unexpected"]), _share(row["share"]))
        yield "".join(f"<td class=n>{number}</td>" for number in numbers)
        yield f"<td>{escape(_short(row['error'] or row['observed'] or ''))}</td></tr>"
    yield "</table>"


def _series(rows: Sequence[Row]) -> Iterable[str]:
    yield "<h2>Over time</h2>"
    series: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        series.setdefault((row["table_name"], row["expectation"]), []).append(row)
    for (table, expectation), own in sorted(series.items()):
        values = [_value(row) for row in own]
        of_observed = any(row["observed"] is not None for row in own)
        what = "observed value" if of_observed else "share of rows that break it"
        failed = sum(row["status"] != "pass" for row in own)
        yield f"<h3>{escape(expectation)} <small>({escape(table)})</small></h3>"
        yield f"<p class=sub>{what}; {len(own):,} verdicts, {failed:,} not met</p>"
        yield plot([(row, value) for row, value in zip(own, values, strict=True)], share=not of_observed)


def plot(points: Sequence[tuple[Row, float | None]], share: bool = False) -> str:
    """An SVG of values in the order of their commits; those not met are marked, refused ones are hollow."""
    shown = _thinned(points)
    known = [value for _, value in shown if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if share:
        low = 0.0
    if high == low:
        high = low + 1.0
    width, height = _WIDTH - _LEFT - 8, _HEIGHT - _BOTTOM - 8

    def x(i: int) -> float:
        return round(_LEFT + width * (i / max(1, len(shown) - 1)), 1)

    def y(value: float) -> float:
        return round(8 + height * (1 - (value - low) / (high - low)), 1)

    line = " ".join(f"{x(i)},{y(value)}" for i, (_, value) in enumerate(shown) if value is not None)
    parts = [
        f"<svg width={_WIDTH} height={_HEIGHT} viewBox='0 0 {_WIDTH} {_HEIGHT}' role=img>",
        f"<line x1={_LEFT} y1={8 + height} x2={_LEFT + width} y2={8 + height} stroke='#d5dce4'/>",
        f"<text x={_LEFT - 6} y=14 text-anchor=end>{escape(_axis(high, share))}</text>",
        f"<text x={_LEFT - 6} y={8 + height} text-anchor=end>{escape(_axis(low, share))}</text>",
        f"<polyline points='{line}' fill=none stroke='#3b6ea8' stroke-width=1.3 />",
    ]
    for i, (row, value) in enumerate(shown):
        if row["status"] == "pass" and len(shown) > 60:
            continue
        at = y(value) if value is not None else 8 + height
        colour = "#3b6ea8" if row["status"] == "pass" else "#b42318" if row["severity"] == "critical" else "#c98a00"
        fill = "none" if row["refused"] else colour
        tip = f"{_where(row)}: {row['status']}, {'' if value is None else _axis(value, share)}"
        parts.append(
            f"<circle cx={x(i)} cy={at} r=2.6 fill='{fill}' stroke='{colour}'><title>{escape(tip)}</title></circle>"
        )
    if shown:
        ends = ((0, "start"), (len(shown) - 1, "end"))
        for i, anchor in ends if len(shown) > 1 else ends[:1]:
            text = escape(_time(_instant(shown[i][0])))
            parts.append(f"<text x={x(i)} y={_HEIGHT - 3} text-anchor={anchor}>{text}</text>")
    return "".join([*parts, "</svg>"])


def _thinned(points: Sequence[tuple[Row, float | None]]) -> list[tuple[Row, float | None]]:
    """At most ``POINTS``: of several next to each other the worst one."""
    each = -(-len(points) // POINTS) or 1
    rank = {"pass": 0, "fail": 1, "error": 2}
    groups = (points[i : i + each] for i in range(0, len(points), each))
    return [max(group, key=lambda p: (rank[p[0]["status"]], p[0]["share"] or 0.0)) for group in groups]


def _violations(rows: Sequence[Row], samples: Mapping[tuple[str, str, str], list[str]]) -> Iterable[str]:
    bad = [row for row in rows if row["status"] != "pass"]
    yield "<h2>Violations</h2>"
    if not bad:
        yield "<p>None.</p>"
        return
    yield f"<p class=sub>the latest {min(len(bad), VIOLATIONS)} of {len(bad):,}</p>"
    for row in reversed(bad[-VIOLATIONS:]):
        told = "refused" if row["refused"] else "committed"
        count = "" if row["unexpected"] is None else f", {row['unexpected']:,} of {row['rows'] or 0:,} rows"
        observed = "" if row["observed"] is None else f", observed {_short(row['observed'])}"
        yield f"<h3 class={row['severity'] if row['status'] == 'fail' else 'error'}>{escape(row['expectation'])}</h3>"
        yield f"<p class=sub>{escape(row['table_name'])}, {told}, {escape(_where(row))}{count}{escape(observed)}</p>"
        if row["error"]:
            yield f"<p>could not be judged: {escape(row['error'])}</p>"
        shown = samples.get((row["attempt"], row["table_name"], row["expectation"]), [])
        if shown:
            yield f"<pre>{escape(chr(10).join(shown))}</pre>"


def _value(row: Row) -> float | None:
    """What is plotted: the observed value where it is a number, else the share of rows that break a check."""
    if row["observed"] is not None:
        try:
            value = json.loads(row["observed"])
        except ValueError:
            return None
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return row["share"] if row["share"] is not None else 0.0 if row["status"] == "pass" else None


def _instant(row: Row) -> datetime:
    return row["upto"] or row["judged_at"]


def _where(row: Row) -> str:
    slice_ = f"slice up to {_time(row['upto'])}" if row["upto"] else f"tick {row['upto_tick']}"
    if row["upto"] is None and row["upto_tick"] is None:
        slice_ = f"version {row['source_version']} of the source"
    unit = ""
    if row["unit_from"] is not None:
        unit = f", unit of ticks {row['unit_from']} to {row['unit_to']}"
    cause = f", {row['cause']}" if row["cause"] else ""
    return f"commit {row['seq']}, {slice_}{unit}{cause}, judged {_time(row['judged_at'])}"


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.4g} %"


def _axis(value: float, share: bool) -> str:
    return f"{100 * value:.3g} %" if share else f"{value:.4g}"


def _short(text: str, most: int = 160) -> str:
    return text if len(text) <= most else text[:most] + ".."
