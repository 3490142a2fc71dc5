"""Two files of results beside each other: ``python -m benchmarks.compare before.json after.json``.

For each case and engine the median seconds and CPU seconds of both and their ratio, and, for cases with rivals, how the
ratio to each rival has changed: a machine that was slower on one day was so for all engines of that day's run.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.record import Record, read

OURS = "sweeparea"


def keyed(record: Record) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Cases by suite, data and query."""
    return {(case["suite"], case["data"], case["query"]): case for case in record.cases}


def cpu(engine: dict[str, Any]) -> float | None:
    """The median of an engine's CPU seconds."""
    return statistics.median(engine["cpu"]) if engine.get("cpu") else None


def lines(before: Record, after: Record) -> list[str]:
    """The comparison as text."""
    found = [
        f"before: {before.name} ({before.commit}, {before.made})",
        f"after:  {after.name} ({after.commit}, {after.made})",
    ]
    if before.machine.get("processor") != after.machine.get("processor"):
        found.append("The machines differ: compare ratios to rivals, not seconds.")
    old, new = keyed(before), keyed(after)
    found.append(f"{'':44} {'seconds':>17} {'':>6}  {'CPU seconds':>17}")
    for key in [key for key in old if key in new]:
        found.append(" ".join(key))
        engines, others = old[key]["engines"], new[key]["engines"]
        for name in [name for name in engines if name in others]:
            a, b = engines[name], others[name]
            if "median" in a and "median" in b:
                told = f"  {name:42} {_pair(a['median'], b['median'])}  {_pair(cpu(a), cpu(b))}"
                found.append(told)
            else:
                found.append(f"  {name:42} {_state(a)} -> {_state(b)}")
        for name in engines:
            ratios = [_ratio(case["engines"], name) for case in (old[key], new[key])]
            if name != OURS and all(ratio is not None for ratio in ratios):
                found.append(f"  {name + ' / ' + OURS:42} {_pair(*ratios)}")
    found += [f"only before: {' '.join(key)}" for key in old if key not in new]
    found += [f"only after: {' '.join(key)}" for key in new if key not in old]
    return found


def _ratio(engines: dict[str, Any], rival: str) -> float | None:
    ours, other = engines.get(OURS, {}).get("median"), engines.get(rival, {}).get("median")
    return other / ours if ours and other else None


def _pair(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    return f"{before:8.2f} {after:8.2f} {after / before if before else float('nan'):5.2f}x"


def _state(engine: dict[str, Any]) -> str:
    for state in ("cannot", "fault"):
        if state in engine:
            return state
    return f"answer {engine['answer']}" if engine.get("answer") == "differs" else f"{engine.get('median', 'no time')}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a file, or a name in benchmarks/results")
    parser.add_argument("after")
    options = parser.parse_args(arguments)
    print("\n".join(lines(read(options.before), read(options.after))))


if __name__ == "__main__":
    main()
