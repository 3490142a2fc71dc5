"""``make demo``: the flights of 2013 through a running installation. Fourteen days arrive one by one, the rest as one
backfill.

Everything here is what a user could do by hand: write to the source tables, let Airflow wake the DAGs, start a
backfill through its REST API, read results with SQL. Run again, it goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from queries.flights import importer
from sweeparea.infra import settings
from sweeparea.infra.errors import SweepAreaError, exit_code_of
from sweeparea.infra.services import airflow
from sweeparea.infra.services.airflow_client import AirflowClient
from sweeparea.tables.publication.ledger import Ledger, LedgerRow

APP = "flights"
QUERIES = ("delay_by_origin", "congestion_alerts", "seats_in_air")
DAYS = [date(2013, 1, 1) + timedelta(days=k) for k in range(14)]
REST = datetime(2013, 1, 15, tzinfo=UTC), datetime(2014, 1, 2, tzinfo=UTC)
PATIENCE = 240.0
"""Seconds without any progress after which the demo gives up and shows what Airflow says."""

EXAMPLES = (
    (
        "The average delay per airport as of one instant",
        "SELECT * FROM delay_by_origin__at('2013-01-13 18:00:00') ORDER BY origin",
    ),
    (
        "The worst hours of the year (each row is valid from .. to, exact to the minute)",
        (
            "SELECT origin, round(avg_delay, 1) AS avg_delay, departures, valid_from, valid_to FROM delay_by_origin "
            "WHERE departures >= 30 ORDER BY avg_delay DESC LIMIT 3"
        ),
    ),
    (
        "Alerts by airport",
        (
            "SELECT origin, count(*) AS alerts, max(worst_hours) AS worst_hours FROM congestion_alerts GROUP BY 1 ORDER"
            " BY 1"
        ),
    ),
    (
        "Who moved most seats at once",
        "SELECT manufacturer, departures, seats, valid_from FROM seats_in_air ORDER BY seats DESC LIMIT 3",
    ),
    (
        "What was kept out, and why",
        'SELECT "__reason" AS reason, count(*) AS n FROM quarantine.flights GROUP BY 1 ORDER BY n DESC',
    ),
)


def say(text: str) -> None:
    """One line of progress."""
    print(f"[demo] {text}", flush=True)


class Demo:
    """The story, over one installation."""

    def __init__(self) -> None:
        self.data = settings.data(APP)
        self.data.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(str(self.data))
        self.airflow = AirflowClient()

    def run(self) -> None:
        begun = time.monotonic()
        dags = [f"{APP}__{query}" for query in QUERIES]
        say("waiting for Airflow to read the DAGs that queries/flights/*.cql give")
        self.airflow.wait_for_dags([*dags, f"{APP}__admit_flights", f"{APP}__admit_planes"])
        for dag in dags:
            self.airflow.set_paused(dag, False)
        importer.load_planes(self.data)
        flights = importer.read_flights()
        for number, day in enumerate(DAYS, start=1):
            started = time.monotonic()
            new = importer.load_flights(self.data, [day], flights=flights)
            if not new:
                continue
            self._caught_up(f"day {number} of {len(DAYS)}, {day}", day)
            say(f"day {number} of {len(DAYS)}: {day} is in all three queries after {time.monotonic() - started:.1f} s")
        self._caught_up("the fourteen days", DAYS[-1])
        self._backfill(dags, flights)
        self._show()
        say(f"done in {time.monotonic() - begun:.0f} s")
        say(f"Airflow: {settings.airflow_url()}  user {airflow.USER}, password in {airflow.password_file()}")
        say("more: .venv/bin/sweeparea sql flights   .venv/bin/sweeparea status flights   end all with: make stop")

    def _backfill(self, dags: list[str], flights: object) -> None:
        """The rest of the year: one commit to the source, then one backfill per query while its live DAG rests."""
        started = time.monotonic()
        for dag in dags:
            self.airflow.set_paused(dag, True)
        rows = importer.load_rest(self.data, flights=flights)  # type: ignore[arg-type]
        if rows:
            say(f"the rest of the year: {rows:,} flights in one commit; waiting for their admission")
        last = importer.LAST_DAY
        self._wait("admission of the rest of the year", lambda head: self._heartbeat(head) >= self._day(last))
        behind = [q for q in QUERIES if not self._up_to_date(self.ledger.head(), q)]
        for query in behind:
            self.airflow.backfill(f"{APP}__{query}", *REST)
        for dag in dags:
            self.airflow.set_paused(dag, False)
        if behind:
            say(f"backfill of {', '.join(behind)} from {REST[0]:%Y-%m-%d}, started through Airflow's REST API")
            self._caught_up("the rest of the year", last)
            say(f"the rest of the year is in all three queries after {time.monotonic() - started:.0f} s")

    # -- waiting -------------------------------------------------------------------------------------------------------

    def _caught_up(self, what: str, day: date) -> None:
        """Waits until the stream's heartbeat has reached ``day`` and all queries have committed up to it."""

        def done(head: dict[str, LedgerRow]) -> bool:
            return self._heartbeat(head) >= self._day(day) and all(self._up_to_date(head, q) for q in QUERIES)

        self._wait(what, done)

    def _wait(self, what: str, done: Callable[[dict[str, LedgerRow]], bool]) -> None:
        seen, moved, told = "", time.monotonic(), time.monotonic()
        while not done(head := self.ledger.head()):
            now, state = time.monotonic(), self._state(head)
            if state != seen:
                seen, moved = state, now
            if now - told > 10:
                say(f"{what}: {state}")
                told = now
            if now - moved > PATIENCE:
                raise SweepAreaError(f"{what}: nothing has moved for {PATIENCE:.0f} s. {state}. {self._failures()}")
            time.sleep(0.2)

    def _failures(self) -> str:
        failed = [run for run in self.airflow.runs(state="failed") if run["dag_id"].startswith(f"{APP}__")]
        if not failed:
            return f"No run has failed; look at {self.airflow.url} and at `make status`."
        run = failed[0]
        return f"{run['dag_id']} failed: {self.airflow.failures(run['dag_id'], run['dag_run_id'])}"

    @staticmethod
    def _heartbeat(head: dict[str, LedgerRow]) -> int:
        row = head.get("flights")
        return -1 if row is None or row.committed is None else row.committed

    def _up_to_date(self, head: dict[str, LedgerRow], query: str) -> bool:
        row = head.get(query)
        return row is not None and row.committed is not None and row.committed >= self._heartbeat(head)

    @staticmethod
    def _day(day: date) -> int:
        """The first tick of a day; a stream's tick is one minute."""
        return (day - date(1970, 1, 1)).days * 24 * 60

    def _state(self, head: dict[str, LedgerRow]) -> str:
        def shown(name: str) -> str:
            row = head.get(name)
            if row is None or row.committed is None:
                return "-"
            return f"{datetime.fromtimestamp(row.committed * 60, UTC):%Y-%m-%d %H:%M}"

        return ", ".join(f"{name} {shown(name)}" for name in ("flights", *QUERIES))

    # -- showing -------------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        from sweeparea.spark_jobs.application import Application
        from sweeparea.spark_jobs.commands.sql import Reader

        reader = Reader(Application.open(APP))
        for title, statement in EXAMPLES:
            print(f"\n-- {title}\nsql> {statement};\n{reader.run(statement)}", flush=True)
        print()


def main() -> int:
    """Runs the demo; an error is one paragraph."""
    return exit_code_of(
        lambda: Demo().run(), "the services run on: `make demo` goes on where it stopped, `make stop` ends them"
    )


if __name__ == "__main__":
    raise SystemExit(main())
