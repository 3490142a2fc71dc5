"""Connections to this machine go to it directly, whatever proxy the environment names.

Every client reads that from variables of its own: curl, requests, httpx and urllib ``no_proxy`` and ``NO_PROXY``, gRPC
``no_grpc_proxy`` and else ``no_proxy``. So the addresses of this machine are added to all of them, and the proxies stay
as they are: an object store may be behind one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

HERE = ("127.0.0.1", "localhost", "::1")
_PROXY = re.compile(r"([a-z]+_proxy|[A-Z]+_PROXY)")
_EXCEPT = ("no_proxy", "NO_PROXY")
_EXCEPT_GRPC = "no_grpc_proxy"


def exceptions(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to set beside those of ``environment``; none where it names no proxy."""
    proxies = [name for name, value in environment.items() if value and _PROXY.fullmatch(name)]
    if all(name in _EXCEPT for name in proxies):
        return {}
    lower, upper = (environment.get(name, "") for name in _EXCEPT)
    made = {"no_proxy": _with_here(lower or upper), "NO_PROXY": _with_here(upper or lower)}
    # gRPC asks the first of the two that is set, if it is empty too
    if _EXCEPT_GRPC in environment:
        made[_EXCEPT_GRPC] = _with_here(environment[_EXCEPT_GRPC])
    return made


def except_here() -> None:
    """Take them over into this process, before it connects to a service of this machine."""
    os.environ.update(exceptions(os.environ))


def for_airflow(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with the exceptions, and without SOCKS proxies: httpx, with which a task asks Airflow's API, does
    not start where one is named, even if it is not to be used.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if not (_PROXY.fullmatch(name) and "://" in value and not re.match("https?://", value, re.IGNORECASE))
    }
    return kept | exceptions(kept)


def _with_here(hosts: str) -> str:
    given = [host.strip() for host in hosts.split(",") if host.strip()]
    return ",".join(given if "*" in given else [*given, *(host for host in HERE if host not in given)])
