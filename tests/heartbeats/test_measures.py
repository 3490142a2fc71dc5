"""What is sent to Airflow's StatsD: names, values, units; and nothing where nobody has asked for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sweeparea.heartbeats import measures
from sweeparea.heartbeats.measures import distances
from sweeparea.heartbeats.minimum import INFINITE
from sweeparea.tables.publication.ledger import LedgerRow
from sweeparea.tables.publication.name_kinds import NameKind

SECOND = 1_000_000
NOW = 1_000 * SECOND


def row(name: str, kind: NameKind, committed: int | None, **info: object) -> LedgerRow:
    return LedgerRow(name, kind, "r", 1, committed, "a", info=info)


HEAD = {
    each.name: each
    for each in (
        row("orders", NameKind.STREAM, 900, chronon=SECOND),
        row("prices", NameKind.RELATION, 950 * SECOND, chronon=1),
        row("fixed", NameKind.RELATION, INFINITE, chronon=1),
        row("silent", NameKind.STREAM, None, chronon=SECOND),
        row("ticks", NameKind.STREAM, 7, chronon=0),
        row("sales", NameKind.QUERY, 840, chronon=SECOND),
        row("counts", NameKind.QUERY, 5, chronon=0),
        row("gone", NameKind.QUERY, 1, chronon=SECOND),
    )
}
QUERIES = {"sales": ["orders", "prices", "fixed"], "counts": ["ticks"], "never": ["orders"]}


def test_distances_are_seconds_of_what_has_an_instant_of_the_clock():
    assert sorted(distances(HEAD, QUERIES, NOW)) == [
        ("orders", "heartbeat_age", 100.0),
        ("prices", "heartbeat_age", 50.0),
        ("sales", "behind", 60.0),
        ("sales", "lag", 160.0),
    ]


@contextmanager
def receiver() -> Iterator[socket.socket]:
    """A StatsD on this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(0.2)
        yield sock


def received(sock: socket.socket) -> list[str]:
    """What has come, in order."""
    found: list[str] = []
    while True:
        try:
            found += sock.recv(65_536).decode().splitlines()
        except TimeoutError:
            return found


SEND = """
import sys
from sweeparea.heartbeats import measures
from tests.heartbeats.test_measures import HEAD, NOW, QUERIES
if measures.on():
    measures.begin()
    measures.send_report("my.shop@dev", "sales", {"slices": 2, "rows_in": 10, "rows_out": 3, "seconds": 1.5,
        "phases": {"compute": 0.25}, "quarantined": {"a": 2, "b": 1}, "repaired": []})
    measures.send_failure("shop", "sales")
    measures.send_distances("shop", HEAD, QUERIES, NOW)
print("statsd" in sys.modules)
"""


def sent(sock: socket.socket, **settings: str) -> tuple[str, list[str]]:
    """What a process prints and sends under settings of Airflow's."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW__")},
        "AIRFLOW_HOME": tempfile.mkdtemp(prefix="sweeparea-airflow-"),
        "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
        "AIRFLOW__METRICS__STATSD_PORT": str(sock.getsockname()[1]),
        **settings,
    }
    done = subprocess.run([sys.executable, "-c", SEND], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1], received(sock)


@pytest.mark.airflow
class TestStatsD:
    def test_names_stand_in_the_path(self):
        with receiver() as sock:
            _, lines = sent(sock, AIRFLOW__METRICS__STATSD_ON="true", AIRFLOW__METRICS__STATSD_PREFIX="prod")
        mine = [line for line in lines if ".sweeparea." in line]
        assert mine == [
            "prod.sweeparea.my_shop_dev.sales.quarantined_rows:3|c",
            "prod.sweeparea.my_shop_dev.sales.slices:2|c",
            "prod.sweeparea.my_shop_dev.sales.read_rows:10|c",
            "prod.sweeparea.my_shop_dev.sales.written_rows:3|c",
            "prod.sweeparea.my_shop_dev.sales.slice_time.compute:250.000000|ms",
            "prod.sweeparea.my_shop_dev.sales.run_time:1500.000000|ms",
            "prod.sweeparea.shop.sales.failures:1|c",
            "prod.sweeparea.shop.orders.heartbeat_age_seconds:100.0|g",
            "prod.sweeparea.shop.prices.heartbeat_age_seconds:50.0|g",
            "prod.sweeparea.shop.sales.lag_seconds:160.0|g",
            "prod.sweeparea.shop.sales.behind_seconds:60.0|g",
        ]

    def test_nothing_is_sent_or_imported_where_metrics_are_off(self):
        with receiver() as sock:
            assert sent(sock) == ("False", [])


@pytest.mark.parametrize(
    ("options", "tagged"),
    [
        ({"statsd_on", "statsd_influxdb_enabled"}, True),
        ({"statsd_datadog_enabled"}, True),
        ({"otel_on"}, True),
        ({"statsd_on"}, False),
    ],
)
def test_names_are_tags_where_there_are_some(monkeypatch, options, tagged):
    """Airflow's own functions are given what their backends take: a name of its letters, and tags of letters that also
    InfluxDB's names may have."""
    from airflow.sdk._shared.observability.metrics import stats as backend

    sent = []

    class Backend:
        def gauge(self, stat, value, **more):
            sent.append((stat, value, more))

    monkeypatch.setattr(measures, "_set", lambda asked: bool(options & set(asked)))
    monkeypatch.setattr(backend, "_get_backend", Backend)
    measures.gauge("my.shop@dev", "sales", "lag_seconds", 3.5)
    named = {"tags": {"application": "my.shop_dev", "name": "sales"}}
    path = "sweeparea.my_shop_dev.sales.lag_seconds"
    assert sent == [("sweeparea.lag_seconds", 3.5, named) if tagged else (path, 3.5, {})]


def test_a_receiver_that_is_wrong_fails_nothing(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("airflow.sdk.observability.stats.incr", broken)
    measures.count("shop", "sales", "slices")
