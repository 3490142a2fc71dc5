"""What the documents say of files: links lead somewhere, paths exist, each room's README names what is in it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("cql", "dags", "heartbeats", "infra", "operators", "quality", "queries", "spark_jobs", "tables")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
PATH = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.py)`")
OF_USERS = {"queries/shop/measures.py", "queries/mill/mill_heartbeat.py", "profile.py", "queue.py"}
"""Files of applications that the pages make up."""


def _files() -> Iterator[Path]:
    """What is kept: folders with a dot, and those of a build, are made."""
    for folder, below, names in os.walk(ROOT):  # links are not followed: sweeparea/ has each folder once more
        below[:] = [name for name in below if not name.startswith(".") and name not in ("__pycache__", "build", "dist")]
        yield from (Path(folder, name).relative_to(ROOT) for name in names)


FILES = sorted(_files())
PYTHON = {str(path) for path in FILES if path.suffix == ".py"}
PAGES = {str(path): (ROOT / path).read_text(encoding="utf-8") for path in FILES if path.suffix == ".md"}


def _headings(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def test_links_lead_to_files_and_headings() -> None:
    wrong = []
    for name, text in PAGES.items():
        for link in LINK.findall(text):
            path, _, heading = link.partition("#")
            target = (ROOT / name).parent / path if path else ROOT / name
            if not target.exists() or (heading and heading not in _headings(target)):
                wrong.append((name, link))
    assert not wrong


def test_files_of_python_that_pages_name_exist() -> None:
    """From the root, or as the end of a path: pages of a room name files from there."""
    ends = {path[i:] for path in PYTHON for i in (0, *(m.end() for m in re.finditer("/", path)))}
    wrong = {name: sorted(set(PATH.findall(text)) - ends - OF_USERS) for name, text in PAGES.items()}
    assert not {name: paths for name, paths in wrong.items() if paths}


def test_the_readme_of_a_room_names_each_of_its_files() -> None:
    """A room of one or two files may be told by the README above."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for path in map(Path, sorted(PYTHON)):
        if path.name != "__init__.py" and path.parts[0] in ROOMS:
            rooms[str(path.parent)].append(path.name)
    unnamed = {}
    for room, names in rooms.items():
        text = PAGES.get(f"{room}/README.md")
        missing = [name for name in names if f"`{name}`" not in (text or "")]
        if missing and (text is not None or len(names) > 2):
            unnamed[room] = missing
    assert not unnamed
