"""doctor: each thing that a machine may lack is found, with what to do; no check stops another."""

from __future__ import annotations

import hashlib
import json
import socket

import pytest

from sweeparea.infra import doctor, zones
from sweeparea.infra.doctor import Finding, Level
from sweeparea.infra.setup.jars import Jar
from sweeparea.spark_jobs.commands.cli import main


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with folders of its own, and one jar that is as the lock says."""
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "a-1.jar").write_bytes(b"a jar")
    lock = [Jar("org", "a", "1", hashlib.sha256(b"a jar").hexdigest())]
    monkeypatch.setattr("sweeparea.infra.setup.jars.read_lock", lambda: lock)
    for name in ("DATA", "RUN", "JARS"):
        monkeypatch.setenv(f"SWEEPAREA_{name}", str(tmp_path / name.lower()))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return tmp_path


def found(check: str) -> list[Finding]:
    return [finding for finding in doctor.examine() if finding.check == check]


class TestDoctor:
    def test_what_is_fit_is_told_as_such(self, machine):
        assert [f.level for check in ("jars", "rights", "python") for f in found(check)] == [Level.OK] * 4

    def test_jars_that_are_missing_or_damaged(self, machine):
        jar = machine / "jars" / "a-1.jar"
        jar.write_bytes(b"another")
        (finding,) = found("jars")
        assert (finding.level, "not as" in finding.found, jar.exists()) == (Level.FAIL, True, True)
        jar.unlink()
        (finding,) = found("jars")
        assert finding.level == Level.FAIL
        assert "a-1.jar missing" in finding.found
        assert finding.todo

    def test_a_java_that_is_none(self, machine, monkeypatch):
        monkeypatch.setenv("JAVA_HOME", str(machine))
        (finding,) = found("java")
        assert finding.level == Level.FAIL
        assert str(machine) in finding.found

    def test_a_port_that_somebody_has(self, machine, monkeypatch):
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            sock.listen()
            port = str(sock.getsockname()[1])
            monkeypatch.setenv("SWEEPAREA_SPARK_PORT", port)
            finding, _ = found("ports")
        assert (finding.level, port in finding.found) == (Level.WARN, True)

    def test_a_port_that_is_no_number_stops_no_other_check(self, machine, monkeypatch):
        monkeypatch.setenv("SWEEPAREA_SPARK_PORT", "many")
        assert [f.level for f in found("ports")] == [Level.FAIL]
        assert found("disk")

    @pytest.mark.parametrize(("remote", "says"), [("sc://127.0.0.1:1", "no answer"), ("spark://x", "sc://host:port")])
    def test_a_server_that_does_not_answer(self, machine, monkeypatch, remote, says):
        monkeypatch.setenv("SPARK_REMOTE", remote)
        (finding,) = found("spark")
        assert finding.level == Level.FAIL
        assert says in f"{finding.found} {finding.todo}"

    def test_folders_that_cannot_be_written_and_full_disks(self, machine, monkeypatch):
        (machine / "data").write_text("a file")
        data, run = found("rights")
        assert (data.level, run.level) == (Level.FAIL, Level.OK)
        assert "SWEEPAREA_DATA" in data.todo
        usage = type("Usage", (), {"free": 1_000_000})
        monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
        assert {f.level for f in found("disk")} == {Level.FAIL}

    def test_packages_that_are_others_or_missing(self, machine, monkeypatch):
        monkeypatch.setattr(doctor, "_locked", lambda: {"numpy": "0.1"})
        monkeypatch.setattr(doctor, "NEEDED", ("numpy", "no-such-package"))
        levels = {f.found: f.level for f in found("packages")}
        assert next(level for text, level in levels.items() if "tested with 0.1" in text) == Level.WARN
        assert levels["no-such-package is not installed"] == Level.FAIL

    def test_rules_of_zones_that_java_has_others_of(self, machine, monkeypatch):
        monkeypatch.setattr(doctor, "_zones_of_java", lambda: "1999a")
        (finding,) = found("zones")
        assert (finding.level, "1999a" in finding.found) == (Level.WARN, True)
        monkeypatch.setattr(doctor, "_zones_of_java", zones.release)
        assert [f.level for f in found("zones")] == [Level.OK]

    def test_the_release_in_a_java_is_read(self, machine, monkeypatch):
        home = machine / "java"
        (home / "lib").mkdir(parents=True)
        (home / "lib" / "tzdb.dat").write_bytes(b"\x01\x00\x04TZDB\x00\x01\x00\x052025a\x02\x57")
        monkeypatch.setattr("sweeparea.infra.setup.java.find_java", lambda: type("Java", (), {"home": home}))
        assert doctor._zones_of_java() == "2025a"

    def test_a_check_that_breaks_is_a_finding(self, machine, monkeypatch):
        def broken():
            raise ValueError("odd")

        monkeypatch.setattr(doctor, "CHECKS", {"memory": broken, "disk": doctor.CHECKS["disk"]})
        first, *others = doctor.examine()
        assert (first.level, "ValueError: odd" in first.found, len(others)) == (Level.WARN, True, 2)

    def test_the_command(self, machine, monkeypatch, capsys):
        only = {"rights": doctor.CHECKS["rights"]}
        monkeypatch.setattr(doctor, "CHECKS", only)
        assert main(["doctor"]) == 0
        assert "This machine is fit." in capsys.readouterr().out
        (machine / "data").write_text("a file")
        assert main(["doctor", "--json"]) == 3
        told = json.loads(capsys.readouterr().out)
        assert (told["format"], told["fit"], [f["level"] for f in told["findings"]]) == (1, False, ["fail", "ok"])
