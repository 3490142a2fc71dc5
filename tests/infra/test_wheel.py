"""What is built can be installed and used: in an empty environment, from another folder."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ORDERS = """\
CREATE STREAM orders
  FROM FORMAT 'json' PATH '../orders' OPTIONS (multiLine = false) SCHEMA (at TIMESTAMP, shop STRING, price INT)
  TIMESTAMP BY at CHRONON INTERVAL 1 SECOND HEARTBEAT FOR at AS at;
CREATE CONTINUOUS QUERY sales AS SELECT shop, SUM(price) AS total FROM orders [RANGE 1 HOUR] GROUP BY shop;
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Callable[..., str]:
    """Runs the installed ``sweeparea`` in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    home = folder / "elsewhere"
    home.mkdir()
    venv.create(folder / "env", with_pip=True)
    own = {k: v for k, v in os.environ.items() if not k.startswith(("SWEEPAREA_", "SPARK_", "PYTHONPATH"))}
    subprocess.run([folder / "env/bin/pip", "install", "-q", f"{wheel}[spark,java]"], check=True, cwd=home, env=own)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [folder / "env/bin/sweeparea", *arguments], capture_output=True, text=True, cwd=home, env=own, check=False
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    (home / "shop" / "orders").mkdir(parents=True)
    (home / "shop" / "shop.cql").write_text(ORDERS)
    rows = [{"at": f"2024-01-01T00:{m:02}:00Z", "shop": "a", "price": m} for m in (1, 2, 30, 31)]  # the last one closes
    (home / "shop" / "orders" / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


@pytest.mark.slow
@pytest.mark.spark
def test_an_installed_wheel_goes_from_setup_to_answers(command: Callable[..., str]) -> None:
    assert "share/sweeparea/jars" in command("setup")
    assert "sales" in command("plan", "shop")
    command("apply", "shop")
    command("admit", "shop")
    command("process", "shop")
    shown = command("sql", "shop", "-c", "SELECT total FROM sales__current", "--format", "json")
    assert [json.loads(line) for line in shown.splitlines()] == [{"total": 33}]
