from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.airflow

PAGE = """
import json
import sweeparea.tables.publication.ledger as ledger

minute = 60_000_000
row = lambda kind, committed, **info: ledger.LedgerRow("-", kind, "r", 1, committed, "a", info=info, at=5 * minute)
head = {
    "orders": row("stream", 100, source_version=3),
    "products": row("relation", 1 << 62, source_version=0),
    "sales": row("query", 40, chronon=minute),
}
ledger.Ledger.head = lambda self: head if self.layout.data_folder.endswith("shop") else {}

from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi.testclient import TestClient

client = TestClient(create_app(apps="core"), raise_server_exceptions=True)
manager = get_auth_manager()
# nobody has parsed DAGs into this database: all may be seen
may = {"shop__admit_orders", "shop__admit_products", "shop__sales", "mill__recent"}
manager.get_authorized_dag_ids = lambda **_: may
manager.filter_authorized_dag_ids = lambda **_: set()
token = manager.generate_jwt(SimpleAuthManagerUser(username="someone", role="viewer"))
seen = {"Authorization": "Bearer " + token}
out = {
    "closed": [client.get(path).status_code for path in ("/sweeparea/", "/sweeparea/api/state", "/sweeparea/docs")],
    "page": client.get("/sweeparea/", headers=seen).text,
    "web": client.get("/sweeparea/web/main.js", headers=seen).status_code,
    "state": client.get("/sweeparea/api/state", headers=seen).json(),
    "hidden": [
        client.get("/sweeparea/picture/shop/sales").status_code,
        *(client.get(f"/sweeparea/picture/{p}", headers=seen).status_code for p in ("shop/surges", "no/sales")),
    ],
    "quality": [
        client.get("/sweeparea/quality/shop/sales").status_code,
        *(client.get(f"/sweeparea/quality/{p}", headers=seen).status_code for p in ("shop/surges", "no/sales")),
    ],
    "picture": client.get("/sweeparea/picture/shop/sales", headers=seen).text,
    "post": client.post("/sweeparea/api/state", headers=seen).status_code,
    "advance": [
        client.post("/sweeparea/api/heartbeat/shop/orders", json={"instant": "2020-01-01"}).status_code,
        *(
            client.post(f"/sweeparea/api/heartbeat/{p}", json={"instant": "2020-01-01"}, headers=seen).status_code
            for p in ("shop/nothing", "no/orders")
        ),
    ],
    "moved": client.post(
        "/sweeparea/api/heartbeat/shop/orders", json={"instant": "2020-01-01"}, headers=seen
    ).text,
}
print("RESULT", json.dumps(out))
"""


def test_the_page_shows_positions_to_users_only(in_airflow):
    out = json.loads(next(line for line in in_airflow(PAGE).splitlines() if line.startswith("RESULT "))[7:])
    assert out["closed"][:2] == [401, 401]
    assert out["closed"][2] == 404
    assert out["post"] == 405
    assert out["advance"] == [401, 404, 404]
    # it reaches the command, which says what it cannot do (orders has no source here, or moves by itself)
    assert "orders" in out["moved"]
    assert out["hidden"] == out["quality"] == [401, 404, 404]
    # the example's source tables are nowhere here, so its plan cannot be made: that is told, and is no failure
    assert out["picture"].startswith("<svg") or "orders" in out["picture"]
    assert "Continuous queries" in out["page"]
    assert out["web"] == 200
    mill, shop = out["state"]["applications"]
    streams = {one["name"]: one for one in shop["streams"]}
    assert {name: (one["dag"], one["kind"], one["version"]) for name, one in streams.items()} == {
        "orders": ("shop__admit_orders", "stream", 3),
        "products": ("shop__admit_products", "relation", 0),
    }
    assert streams["orders"]["heartbeat"] == {"tick": "100", "ms": 6_000_000}
    assert streams["products"]["static"]
    (sales,) = shop["queries"]  # not surges: this user may not see its DAG
    assert sales["committed"] == {"tick": "40", "ms": 2_400_000}
    assert sales["behind"] == {"ticks": "60", "ms": 3_600_000}
    assert [state["kind"] for state in sales["states"]] == ["behind"]
    assert [query["states"][0]["kind"] for query in mill["queries"]] == ["never"]
    assert out["state"]["broken"] == {}
    assert out["state"]["may_run"] == []  # a viewer
