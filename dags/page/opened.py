"""Applications as a server holds them: parsed when their files change, opened when somebody asks, one thread at a time
each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sweeparea.dags.model import ApplicationCache, ApplicationDags
from sweeparea.dags.page.commits import RecentCommits
from sweeparea.dags.page.looks import Looks
from sweeparea.dags.page.moments import tick_micros
from sweeparea.dags.page.state import Facts
from sweeparea.heartbeats.lag import chronons
from sweeparea.infra import settings
from sweeparea.infra.errors import SweepAreaError
from sweeparea.spark_jobs.application import Application
from sweeparea.tables.publication.deployed import Rows
from sweeparea.tables.publication.incidents import Incidents
from sweeparea.tables.publication.ledger import now_micros

SHARED_SECONDS = 1.0
"""So long the facts that one user has asked for are given to others."""


@dataclass
class HeldApplication:
    """One application: ``application`` is opened anew when its files or what is deployed have changed."""

    dags: ApplicationDags
    lock: threading.Lock = field(default_factory=threading.Lock)
    looks: Looks = field(default_factory=Looks)
    _application: Application | None = None
    _deployed: Rows | None = None
    _incidents: Incidents | None = None
    _commits: RecentCommits | None = None
    _facts: tuple[float, Facts] | None = None

    @contextmanager
    def use(self) -> Iterator[Application]:
        """The application, for one thread. SweepAreaError where its files cannot be read."""
        with self.lock:
            yield self._opened()

    def facts(self) -> Facts:
        """What the ledger and a bounded look at files say now."""
        with self.lock:
            if self._facts is not None and time.monotonic() - self._facts[0] < SHARED_SECONDS:
                return self._facts[1]
            application = self._opened()
            if self._incidents is None or self._commits is None:
                self._incidents = Incidents(self.dags.data_folder)
                self._commits = RecentCommits(application.ledger)
            head = application.ledger.head()
            looks = self.looks(application, list(self.dags.sources), list(self.dags.queries), head)
            commits = {name: tuple(found) for name, found in self._commits().items()}
            rows = self._deployed or {}
            facts = Facts(self.dags, head, rows, self._incidents.open(), looks, commits, now_micros())
            self._facts = time.monotonic(), facts
            return facts

    def forget(self) -> None:
        """What was found before does not hold any more; called by who uses the application."""
        self._facts = None

    def tick_micros(self, name: str) -> int | None:
        """How long a tick of a name lasts, in microseconds; 0: it is BIGINT, None: nobody knows yet."""
        facts = self.facts()
        return tick_micros(facts.head.get(name), chronons(facts.head, facts.inputs).get(name))

    def _opened(self) -> Application:
        if self._application is not None:
            rows = self._application.plans.deployed.rows()
            if rows == self._deployed:
                return self._application
        place = self.dags.place if "@" in self.dags.place else settings.application(self.dags.place)
        self._application = Application.open(place, self.dags.data_folder)
        self._deployed = self._application.plans.deployed.rows()
        self._commits = None
        return self._application


class Applications:
    """All applications that Airflow has DAGs of, by name."""

    def __init__(self) -> None:
        self._parsed = ApplicationCache()
        self._lock = threading.Lock()
        self._held: dict[str, HeldApplication] = {}

    def __call__(self) -> tuple[dict[str, HeldApplication], dict[str, SweepAreaError]]:
        """Those that can be loaded, and what is wrong with each of the others."""
        with self._lock:
            loaded, broken = self._parsed()
            self._held = {
                one.name: known if (known := self._held.get(one.name)) and known.dags is one else HeldApplication(one)
                for one in loaded
            }
            return dict(self._held), dict(broken)
