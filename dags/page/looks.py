"""What costs a look at files beside the ledger: definitions against what is deployed, tables against the ledger,
newest versions of sources. Names take turns within a budget of time, so that a page of 200 queries answers at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.spark_jobs.commands.input_status import kept_out, newest, rows_of
from sweeparea.spark_jobs.upkeep.agreement import faults
from sweeparea.tables.publication.ledger import LedgerRow

BUDGET = 0.5
"""Seconds that one request spends on looking."""
FRESH = {"input": 10.0, "query": 60.0}
"""Seconds after which a name is looked at again although its ledger row stands."""


@dataclass(frozen=True)
class Look:
    """``refused``: why the name is not run as its files stand; ``wrong``: what is wrong with its tables. Of a stream or
    relation besides ``newest``, the newest version of its source (None: it cannot be told, ``lost`` says why), and how
    many rows are ``admitted``, ``kept_out`` and ``remembered`` (dropped duplicates).
    """

    refused: str = ""
    wrong: tuple[str, ...] = ()
    newest: int | None = None
    lost: str = ""
    admitted: int | None = None
    kept_out: int | None = None
    remembered: int = 0


class Looks:
    """The last look at each name of one application; used by one thread at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[str, tuple[tuple[str, int] | None, float, Look]] = {}

    def __call__(
        self, application: Application, inputs: Sequence[str], queries: Sequence[str], head: Mapping[str, LedgerRow],
        budget: float = BUDGET,
    ) -> dict[str, Look]:  # fmt: skip
        """Looks at the names whose look is oldest or outdated, until the ``budget`` is spent; those that were never
        looked at are missing.
        """
        begun = self._clock()
        due = []
        for kind, names in (("input", inputs), ("query", queries)):
            for name in names:
                row = head.get(name)
                stamp = None if row is None else (row.attempt, row.seq)
                known = self._found.get(name)
                if known is None or known[0] != stamp or begun - known[1] > FRESH[kind]:
                    due.append((-1.0 if known is None else known[1], kind, name, stamp))
        for _, kind, name, stamp in sorted(due, key=lambda one: one[0]):
            if self._clock() - begun > budget:
                break
            self._found[name] = (stamp, self._clock(), look(application, name, head.get(name), kind == "input"))
        wanted = {*inputs, *queries}
        return {name: found for name, (_, _, found) in self._found.items() if name in wanted}


def look(application: Application, name: str, row: LedgerRow | None, is_input: bool) -> Look:
    """One name, now."""
    try:
        refused = application.registry.refused(name, row)
        wrong = tuple(faults(application, row)) if row is not None else ()
        if not is_input:
            return Look(refused, wrong)
        if row is None:
            return Look(refused, wrong, _version(application, name))
        version, lost = newest(application, name, row)
        out, remembered = kept_out(application, name)
        admitted = rows_of(application.layout.admitted(name))
        return Look(refused, wrong, version, lost, admitted, out, remembered)
    except (SweepAreaError, OSError) as error:
        return Look(wrong=(str(error),))


def _version(application: Application, name: str) -> int | None:
    try:
        return application.sources.table(name).version()
    except (SweepAreaError, OSError):
        return None
