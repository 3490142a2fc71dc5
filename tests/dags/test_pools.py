"""Pools that settings name are made, and those of others left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweeparea.dags import model, pools


class Airflow:
    """Pools in memory."""

    def __init__(self, *there: dict[str, Any]) -> None:
        self.there = list(there)

    def pools(self) -> list[dict[str, Any]]:
        return self.there

    def make_pool(self, name: str, slots: int, description: str) -> None:
        self.there.append({"name": name, "slots": slots, "description": description})

    def change_pool(self, name: str, slots: int) -> None:
        next(pool for pool in self.there if pool["name"] == name)["slots"] = slots


def test_a_pool_is_made_once_with_the_slots_of_the_settings_and_others_stay(home: Path):
    text = (home / "queries" / "mill" / "mill.cql").read_text()
    shop = home / "queries" / "shop" / "shop.cql"
    (home / "queries" / "mill" / "mill.cql").write_text("SET pool = 'spark'; SET pool.slots = 3;\n" + text)
    shop.write_text(shop.read_text().replace("backfill_slice", "pool = 'big', backfill_slice"))
    wanted = pools.wanted([model.load("shop"), model.load("mill")])
    assert wanted == {"big": 2, "spark": 3}
    airflow = Airflow({"name": "big", "slots": 9, "description": "made by hand"})
    assert pools.make(wanted, airflow) == ["pool spark: made, with 3 slots"]
    assert pools.make(wanted, airflow) == []
    assert pools.make({"spark": 5, "big": 1}, airflow) == ["pool spark: 5 slots, had 3"]
    assert [(pool["name"], pool["slots"]) for pool in airflow.there] == [("big", 9), ("spark", 5)]
