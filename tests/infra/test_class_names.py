"""A class name means one thing: a reader who meets it need not ask which."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("cql", "dags", "heartbeats", "infra", "operators", "quality", "spark_jobs", "tables")


def test_no_two_classes_have_one_name():
    where = defaultdict(list)
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                where[node.name.lstrip("_")].append(str(file.relative_to(ROOT)))
    assert len(where) > 300
    assert {name: files for name, files in where.items() if len(files) > 1} == {}
