"""A proxy in the environment: local clients of every kind go past it, others through it."""

from __future__ import annotations

import os
import socket
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sweeparea.infra import proxies
from sweeparea.infra.services import airflow

PROXY = "http://127.0.0.1:9"  # nothing listens there
NAMES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "no_proxy", "NO_PROXY", "no_grpc_proxy", "ALL_PROXY")


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [*NAMES, "HTTP_PROXY", "HTTPS_PROXY"]:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.mark.parametrize("given", [{}, {"no_proxy": "localhost"}, {"NO_PROXY": "a.org"}, {"no_proxy": "*"}])
def test_local_connections_go_past_the_proxy(clean: pytest.MonkeyPatch, given: dict[str, str]):
    import httpx
    import requests

    for name in ("http_proxy", "https_proxy", "all_proxy"):
        clean.setenv(name, PROXY)
    for name, value in given.items():
        clean.setenv(name, value)
    server = HTTPServer(("127.0.0.1", 0), _Hello)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        for name, value in proxies.exceptions(os.environ).items():
            clean.setenv(name, value)
        for host in ("127.0.0.1", "localhost"):
            url = f"http://{host}:{server.server_address[1]}/"
            assert httpx.get(url, timeout=5).text == requests.get(url, timeout=5).text == "hello"
        if given.get("no_proxy") != "*":
            with pytest.raises(requests.exceptions.ProxyError):
                requests.get("http://store.invalid/", timeout=5)
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("variable", ["http_proxy", "https_proxy", "grpc_proxy"])
@pytest.mark.parametrize("given", [{"no_proxy": "localhost"}, {"no_grpc_proxy": "a.org"}, {"no_grpc_proxy": ""}])
def test_grpc_to_this_machine_goes_past_the_proxy(clean: pytest.MonkeyPatch, variable: str, given: dict[str, str]):
    import grpc

    clean.setenv(variable, PROXY)
    for name, value in given.items():
        clean.setenv(name, value)
    for name, value in proxies.exceptions(os.environ).items():
        clean.setenv(name, value)
    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            grpc.channel_ready_future(channel).result(timeout=5)
            with pytest.raises(grpc.RpcError) as answer:
                channel.unary_unary("/no.Service/Method")(b"", timeout=5)
            # what our server says of a service that it does not have: the proxy would not answer at all
            assert answer.value.code() is grpc.StatusCode.UNIMPLEMENTED  # pyright: ignore[reportAttributeAccessIssue]
    finally:
        server.stop(None)


def test_the_health_check_does_not_ask_the_proxy(installation: Path, clean: pytest.MonkeyPatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = HTTPServer(("127.0.0.1", port), _Hello)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    clean.setenv("http_proxy", PROXY)
    clean.setenv("SWEEPAREA_AIRFLOW_PORT", str(port))
    try:
        assert airflow.health() == {"scheduler": "healthy"}
    finally:
        server.shutdown()
        server.server_close()


def test_airflow_keeps_proxies_for_others_and_no_socks(installation: Path, clean: pytest.MonkeyPatch):
    clean.setenv("https_proxy", PROXY)
    clean.setenv("all_proxy", "socks5://127.0.0.1:9")
    names = airflow.environment()
    assert names["https_proxy"] == PROXY
    assert "all_proxy" not in names
    assert names["no_proxy"] == names["NO_PROXY"] == "127.0.0.1,localhost,::1"


def test_without_a_proxy_nothing_is_set():
    assert proxies.exceptions({"no_proxy": "a.org", "HOME": "/"}) == {}


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        health = self.path == "/api/v2/monitor/health"
        body = b'{"scheduler": {"status": "healthy"}}' if health else b"hello"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass
