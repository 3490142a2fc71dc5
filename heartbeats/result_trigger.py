"""Airflow's trigger behind deferred tasks of other DAGs: fires once when a query's result, or its inputs, are there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from sweeparea.heartbeats.result import Reached, progress
from sweeparea.infra.errors import UsageError

log = logging.getLogger(__name__)

SEVERAL = 20
"""So often in a row the ledger cannot be read until that is told to the task, which fails."""


class ResultTrigger(BaseTrigger):
    """Fires with ``{"reached": True}`` when results of ``query`` are final up to ``up_to``, or with ``of_inputs`` when
    its inputs are known so far; with ``{"error": ..}`` where that cannot be found out. It looks every ``poll`` seconds.
    """

    def __init__(
        self,
        data_folder: str,
        query: str,
        up_to: str,
        inputs: Sequence[str],
        poll: float = 10.0,
        of_inputs: bool = False,
    ):
        super().__init__()
        self.data_folder, self.query, self.up_to, self.inputs = data_folder, query, up_to, list(inputs)
        self.poll, self.of_inputs = poll, of_inputs

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("data_folder", "query", "up_to", "inputs", "poll", "of_inputs")
        return "sweeparea.heartbeats.result_trigger.ResultTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        failures = 0
        while True:
            try:
                if self.reached(await asyncio.to_thread(self.look)):
                    yield TriggerEvent({"reached": True})
                    return
                failures = 0
            except UsageError as error:
                yield TriggerEvent({"error": str(error), "final": True})
                return
            except Exception as error:  # unmounted, without rights, a store that is away: it may come back
                failures += 1
                log.warning("The data folder %s cannot be looked at: %s", self.data_folder, error)
                if failures >= SEVERAL:
                    yield TriggerEvent({"error": f"The data folder {self.data_folder} cannot be looked at: {error}"})
                    return
            await asyncio.sleep(self.poll)

    def look(self) -> Reached:
        """How far the query is."""
        return progress(self.data_folder, self.query, self.up_to, self.inputs)

    def reached(self, found: Reached) -> bool:
        """Whether it is what is waited for."""
        return found.has_inputs if self.of_inputs else found.has_result
