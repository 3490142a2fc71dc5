"""``ResultSensor``: a DAG of one's own waits for a continuous query's result."""

from __future__ import annotations

from datetime import datetime, timedelta
from os import PathLike
from typing import Any

from airflow.sdk import BaseSensorOperator

from sweeparea.dags.waiting import look, opened, require_reached, text_of, trigger_of


class ResultSensor(BaseSensorOperator):
    """Waits until results of ``query`` are final up to and including the instant ``up_to``, and no repair of them is
    due: then a task behind it reads what will stay so, unless late elements repair it later.

    ``application`` is the folder of ``.cql`` files, or the name of one under ``queries/``, perhaps with ``@env``;
    ``up_to`` an instant (UTC without a zone), a tick where time is BIGINT, or a template of these.
    Where it is ``deferrable`` it takes no worker while it waits; the ledger is looked at every ``poke_interval``
    seconds. Its XCom says how far the query was.
    """

    template_fields = ("application", "query", "up_to")
    ui_color = "#e8f3ec"

    def __init__(
        self,
        *,
        application: str | PathLike[str],
        query: str,
        up_to: str | int | datetime,
        deferrable: bool = True,
        poke_interval: timedelta | float = 10,
        **kwargs: Any,
    ):
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.application, self.query, self.up_to, self.deferrable = str(application), query, text_of(up_to), deferrable

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            super().execute(context)
            return self._words
        trigger = self._trigger()
        found = look(trigger)
        if trigger.reached(found):
            return found.words
        self.log.info("Waiting for %s up to %s: it is %s.", self.query, self.up_to, found.words)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=float(self.timeout)))

    def execute_complete(self, context: Any, event: Any = None) -> str:
        """The trigger has fired."""
        require_reached(event)
        return look(self._trigger()).words

    def poke(self, context: Any) -> bool:
        trigger = self._trigger()
        found = look(trigger)
        self._words = found.words
        self.log.info("%s is %s", self.query, found.words)
        return trigger.reached(found)

    def _trigger(self) -> Any:
        seconds = (
            self.poke_interval.total_seconds() if isinstance(self.poke_interval, timedelta) else self.poke_interval
        )
        application = opened(self.application, self.query)
        return trigger_of(application, self.query, str(self.up_to), float(seconds), of_inputs=False)
