"""``docs/benchmarks.md`` with its plots, from files of results: ``python -m benchmarks.page [NAME ..]``.

Without names all files in ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import plot, record
from benchmarks.compare import OURS

DOCS = Path(__file__).parent.parent / "docs"
LABELS = {
    "sweeparea": "SweepArea",
    "flink": "Flink",
    "duckdb": "DuckDB",
    "spark": "Spark",
    "streaming": "Structured Streaming",
}
AXES = {
    "window": "window, ticks",
    "rate": "elements a tick",
    "elements": "elements of the slice",
    "reports": "reports a second",
    "query": "query of the workload",
}
"""What an axis of a figure is called, where its name does not say it."""
SPACE = "bytes of state"
AIM = 1.2
"""Of the better of the other two strategies, what ``upa`` may take."""
HEAD = """# Measured against others

Made by `python -m benchmarks.page` from `benchmarks/results/*.json`; how it is measured, and how to do it again:
[benchmarks](../benchmarks/README.md).

SweepArea's time is that of a query that catches up: planned, computed, materialized, judged and published in Delta
tables. **Flink** (2 parallel tasks, mini-batches, state on the heap, no checkpoints) reads the same Parquet files and
writes nothing. **DuckDB** and **Spark** compute the whole answer anew and write it as Parquet; neither gives any
instant but the last. **Structured Streaming** runs one batch of all that is there into a Delta table, with its state in
RocksDB. Starting up is part of no time. A time counts only where the answer was equal to the reference's. "x" is the
rival's time by ours: above 1 SweepArea is faster.

The papers' figures have CPU seconds of a slice behind a full window, by the strategies `upa`, `negative` and `direct`
([explain.md](explain.md#strategies)). The papers' engines take one element at a time, so that shapes can be compared
and seconds cannot.
"""


def page(records: Sequence[record.Record], folder: Path = DOCS) -> Path:
    """Writes the page and its plots into ``folder``; the page's path."""
    parts = [HEAD]
    for kept in records:
        parts += _section(kept, folder)
    path = folder / "benchmarks.md"
    path.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    return path


def _section(kept: record.Record, folder: Path) -> list[str]:
    machine = dict(kept.machine)
    loads = machine.pop("load at the beginning", None), machine.pop("load at the end", None)
    told = ", ".join(
        f"{name} {value}" if name not in ("processor", "system") else value for name, value in machine.items()
    )
    parts = [f"## {kept.name}", f"{kept.made}, commit `{kept.commit}`; {told}."]
    if all(loads) and max(load[0] for load in loads if load) > machine.get("cores", 0):
        parts.append(
            f"**Other work ran beside it** (load {loads[0]} at the beginning, {loads[1]} at the end): the seconds are"
            " upper bounds, and only what stands in one row was measured under like conditions."
        )
    versions = {f"{k} {v}" for each in kept.versions.values() for k, v in each.items() if not k.startswith("seconds")}
    if versions:
        parts.append(f"Versions: {', '.join(sorted(versions))}.")
    admission = [
        f"{k.removeprefix('seconds of admit ')} {v}" for k, v in kept.versions.get(OURS, {}).items() if "admit" in k
    ]
    if admission:
        parts.append(f"Admission of the last data, once for all queries, in seconds: {', '.join(admission)}.")
    if kept.startup:
        parts.append("Start-up, in seconds: " + ", ".join(f"{LABELS[k]} {v}" for k, v in kept.startup.items()) + ".")
    parts.append("")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for case in kept.cases:
        groups.setdefault((case["suite"], case["data"]), []).append(case)
    for number, ((suite, data), cases) in enumerate(groups.items()):
        parts += [f"### {suite}, {data}", *_table(cases), ""]
        seconds = {
            case["query"]: {
                LABELS[e]: case["engines"][e]["median"] for e in LABELS if "median" in case["engines"].get(e, {})
            }
            for case in cases
        }
        if any(len(group) > 1 for group in seconds.values()):
            name = f"benchmarks-{kept.name}-{number}.svg"
            (folder / name).write_text(plot.bars(f"{suite}, {data}", "seconds", seconds), encoding="utf-8")
            parts += [f"![Seconds of each query by engine]({name})", ""]
        parts += _notes(cases)
    parts += _figures(kept, folder)
    for name, text in kept.printed.items():
        parts += [f"### {name}", "```", text.rstrip(), "```", ""]
    return parts


def _figures(kept: record.Record, folder: Path) -> list[str]:
    """A picture for each figure, and under it what its paper found and what was measured here."""
    parts, places, beyond = [], 0, []
    for number, figure in enumerate(sorted(kept.lines, key=lambda line: _order(line["title"]))):
        name = f"benchmarks-{kept.name}-figure-{number}.svg"
        title, unit = figure["title"], figure["unit"]
        across = AXES.get(figure["across"]) or str(figure["across"])
        series = {one: dict(points) for one, points in figure["series"].items()}
        if any(isinstance(place, str) for points in series.values() for place in points):
            groups = {str(p): {one: points[p] for one, points in series.items()} for p in series["upa"]}
            drawn = plot.bars(title, unit, groups, across)
        else:
            drawn = plot.lines(title, unit, across, figure["series"])
        (folder / name).write_text(drawn, encoding="utf-8")
        parts += [f"![{title}: {unit} by {across}]({name})", "", f"**{title}**. {figure.get('paper', '')}".rstrip()]
        ratios = _ratios(series)
        if ratios:
            told = ", ".join(f"{ratio:.2f} ({_place(place)})" for place, ratio in ratios.items())
            parts.append(f"*Here* `upa` takes, of the better of `negative` and `direct`: {told}.")
        if unit != SPACE:
            places += len(ratios)
            beyond += [f"{title} at {_place(place)}: {ratio:.2f}" for place, ratio in ratios.items() if ratio > AIM]
        parts.append("")
    if places:
        told = f": {'; '.join(beyond)}" if beyond else ""
        parts += [f"Of {places} measured points `upa` is beyond {AIM} times the better one at {len(beyond)}{told}.", ""]
    return parts


def _order(title: str) -> list[tuple[int, str]]:
    """Figure 9 stands before figure 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", title)]


def _ratios(series: dict[str, dict[Any, float]]) -> dict[Any, float]:
    """At each place ``upa`` by the better of the other two; none where a strategy was not measured."""
    if not {"upa", "negative", "direct"} <= set(series):
        return {}
    better = {place: min(series["negative"][place], series["direct"][place]) for place in series["upa"]}
    return {place: mine / better[place] for place, mine in series["upa"].items() if better[place]}


def _place(place: Any) -> str:
    return place if isinstance(place, str) else f"{place:,}"


def _table(cases: list[dict[str, Any]]) -> list[str]:
    engines = [name for name in LABELS if any(name in case["engines"] for case in cases)]
    rivals = [name for name in engines if name != OURS]
    found = [
        "| query | rows | " + " | ".join(map(_heading, engines)) + " |",
        "| --- | --- |" + " --- | --- |" * len(engines),
    ]
    ratios: dict[str, list[float]] = {rival: [] for rival in rivals}
    for case in cases:
        ours = case["engines"].get(OURS, {})
        rows = next((f"{e['rows']:,}" for e in case["engines"].values() if "rows" in e), "")
        cells = [case["query"], rows]
        for engine in engines:
            mine = case["engines"].get(engine, {})
            cells.append(_seconds(mine))
            if engine == OURS:
                verdict = mine.get("phases", {}).get("quality")
                cells.append(f"{statistics.median(verdict):.2f}" if verdict else "")
            elif "median" in mine and "median" in ours:
                ratios[engine].append(mine["median"] / ours["median"])
                cells.append(f"{ratios[engine][-1]:.2f}")
            else:
                cells.append("")
        found.append(f"| {' | '.join(cells)} |")
    if len(cases) > 1 and any(ratios.values()):
        cells = ["geometric mean", ""]
        for engine in engines:
            of = ratios.get(engine)
            cells += ["", f"{math.exp(sum(map(math.log, of)) / len(of)):.2f}" if of else ""]
        found.append(f"| {' | '.join(cells)} |")
    return found


def _heading(engine: str) -> str:
    return f"{LABELS[engine]} s (CPU s) | {'of it verdict' if engine == OURS else 'x'}"


def _seconds(mine: dict[str, Any]) -> str:
    if "median" in mine:
        return f"{mine['median']:.2f} ({statistics.median(mine['cpu']):.1f})"
    if "cannot" in mine:
        return "cannot"
    return "answer differs" if mine.get("answer") == "differs" else "fault" if "fault" in mine else ""


def _notes(cases: list[dict[str, Any]]) -> list[str]:
    found: dict[str, list[str]] = {}
    for case in cases:
        for engine, mine in case["engines"].items():
            for kind in ("cannot", "fault"):
                if kind in mine:
                    found.setdefault(f"{LABELS[engine]}: {' '.join(mine[kind].split())[-300:]}", []).append(
                        case["query"]
                    )
    return [f"- {', '.join(queries)}: {why}" for why, queries in found.items()] + [""]


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="files, or names in benchmarks/results")
    names = parser.parse_args(arguments).name or sorted(record.FOLDER.glob("*.json"))
    print(page([record.read(name) for name in names]))


if __name__ == "__main__":
    main()
