"""Metrics as text in Prometheus' exposition format 0.0.4, such as node_exporter's textfile collector reads.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweeparea.infra.errors import SetupError, UsageError


@dataclass
class Metric:
    """One metric with its samples: values by their labels. ``kind`` is gauge or counter."""

    name: str
    help: str
    kind: str = "gauge"
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)

    def add(self, value: float | None, **labels: str) -> None:
        """Adds a sample; None, what is not known, is none."""
        if value is not None:
            self.samples.append((labels, value))


def exposition(metrics: Iterable[Metric]) -> str:
    """The text. A metric without samples is left out.

    >>> metric = Metric("rows", "Rows.")
    >>> metric.add(3, name="a")
    >>> print(exposition([metric, Metric("empty", "")]), end="")
    # HELP rows Rows.
    # TYPE rows gauge
    rows{name="a"} 3
    """
    lines: list[str] = []
    for metric in metrics:
        if not metric.samples:
            continue
        lines.append(f"# HELP {metric.name} {_escaped(metric.help)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        lines += [f"{metric.name}{_labels(labels)} {_number(value)}" for labels, value in metric.samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{key}="{_escaped(value).replace(chr(34), chr(92) + chr(34))}"' for key, value in labels.items())
    return f"{{{shown}}}" if shown else ""


def _escaped(text: str) -> str:
    # what is no Unicode, such as a folder's name in another encoding, would make all of the text unreadable
    valid = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return valid.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if isinstance(value, float) and not value.is_integer():
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN" if math.isnan(value) else repr(value))
    return str(int(value))


def write_whole(path: Path, text: str) -> None:
    """Writes a file at once: who reads it meanwhile sees what was there before, or all of ``text``.

    It is readable for others, as the collector's user is one. UsageError where the folder is not there.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir() or not target.parent.is_dir():
        what = "is a folder" if target.is_dir() else f"cannot be written: there is no folder {target.parent}"
        raise UsageError(f"{path} {what}. Name a file in a folder that is there, such as metrics.prom.")
    try:
        # in the same folder, so that it can take the other's place; a name that no collector reads
        handle, part = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise SetupError(f"{path} cannot be written: {error.strerror}. Nothing was changed there.") from error
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, target)
    except OSError as error:
        Path(part).unlink(missing_ok=True)
        raise SetupError(f"{path} cannot be written: {error.strerror}. Nothing was changed there.") from error
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
