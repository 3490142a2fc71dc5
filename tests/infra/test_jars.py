"""A shell script stands for Java and Ivy: it puts files where ``-retrieve`` points."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sweeparea.infra.errors import SetupError
from sweeparea.infra.setup import jars
from sweeparea.infra.setup.java import Java

GOOD = hashlib.sha256(b"good\n").hexdigest()
ONE = jars.Jar("org.one", "one", "1.0", GOOD)
TWO = jars.Jar("org.two", "two_2.13", "2.0", GOOD)


def ivy(tmp_path: Path, text: str, code: int = 0, output: str = "") -> Java:
    """A Java whose Ivy writes ``text`` as every jar asked for, and ends with ``code``."""
    command = tmp_path / "jdk" / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f"""#!/bin/sh
echo "$@" >> {tmp_path}/calls
echo "{output}"
while [ $# -gt 0 ]; do case $1 in -ivy) ivy=$2;; -retrieve) to=$(dirname "$2");; esac; shift; done
mkdir -p "$to"
[ {code} = 0 ] && sed -n 's/.* name="\\([^"]*\\)" rev="\\([^"]*\\)".*/\\1-\\2.jar/p' "$ivy" |
  while read -r name; do echo "{text}" > "$to/$name"; done
exit {code}
"""
    )
    command.chmod(0o755)
    return Java(tmp_path / "jdk", 17, "test")


def test_the_lock_names_seven_jars_with_sums():
    lock = jars.read_lock()
    assert len(lock) == 7
    assert all(len(jar.sha256) == 64 for jar in lock)
    assert lock[0].filename == "delta-spark_4.2_2.13-4.4.0.jar"


def test_jars_are_fetched_once(installation: Path, tmp_path: Path):
    java = ivy(tmp_path, "good")
    assert jars.fetch(java, jars=[ONE, TWO]) == ["one-1.0.jar", "two_2.13-2.0.jar"]
    assert jars.fetch(java, jars=[ONE, TWO]) == []
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    assert sorted(p.name for p in (installation / ".jars").iterdir()) == ["one-1.0.jar", "two_2.13-2.0.jar"]


def test_only_what_lacks_is_fetched(installation: Path, tmp_path: Path):
    java = ivy(tmp_path, "good")
    jars.fetch(java, jars=[ONE])
    assert jars.fetch(java, jars=[ONE, TWO]) == ["two_2.13-2.0.jar"]


def test_a_wrong_sum_is_named_and_leaves_no_file(installation: Path, tmp_path: Path):
    with pytest.raises(SetupError) as caught:
        jars.fetch(ivy(tmp_path, "evil"), jars=[ONE])
    for part in ("one-1.0.jar", GOOD, hashlib.sha256(b"evil\n").hexdigest(), "Run the same command again"):
        assert part in str(caught.value)
    assert list((installation / ".jars").iterdir()) == []


def test_a_jar_that_was_damaged_later_is_deleted_and_fetched_anew(installation: Path, tmp_path: Path):
    java = ivy(tmp_path, "good")
    jars.fetch(java, jars=[ONE])
    path = installation / ".jars" / ONE.filename
    path.write_bytes(b"half")
    with pytest.raises(SetupError, match="it has been deleted"):
        jars.fetch(java, jars=[ONE])
    assert jars.fetch(java, jars=[ONE]) == [ONE.filename]


def test_no_network_says_what_to_try(installation: Path, tmp_path: Path):
    with pytest.raises(SetupError, match=r"(?s)Server access error.*SWEEPAREA_IVY_SETTINGS"):
        jars.fetch(ivy(tmp_path, "", code=1, output="Server access error at url x"), jars=[ONE])


def test_unknown_certificates_are_tried_with_the_machines_own(installation: Path, tmp_path: Path, monkeypatch):
    certifi = pytest.importorskip("certifi")
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    with pytest.raises(SetupError):
        jars.fetch(ivy(tmp_path, "", code=1, output="PKIX path building failed"), jars=[ONE])
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert "trustStore" not in first
    assert "-Djavax.net.ssl.trustStore=" in second


def test_a_mirror_is_handed_to_ivy(installation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWEEPAREA_IVY_SETTINGS", str(tmp_path / "none.xml"))
    java = ivy(tmp_path, "good")
    with pytest.raises(SetupError, match=r"none\.xml, which is no file"):
        jars.fetch(java, jars=[ONE])
    (tmp_path / "none.xml").write_text("<ivysettings/>")
    jars.fetch(java, jars=[ONE])
    assert f"-settings {tmp_path}/none.xml" in (tmp_path / "calls").read_text()


def test_they_are_fetched_whatever_the_path_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Ivy itself: parentheses, brackets and dollars mean something in its patterns
    (tmp_path / "one-1.0.jar").write_text("good\n")
    (tmp_path / "mirror.xml").write_text(
        '<ivysettings><settings defaultResolver="here"/><resolvers><filesystem name="here" m2compatible="true">'
        '<ivy pattern="${ivy.settings.dir}/[module]-[revision].pom"/>'
        '<artifact pattern="${ivy.settings.dir}/[module]-[revision].jar"/></filesystem></resolvers></ivysettings>'
    )
    (tmp_path / "one-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.one</groupId><artifactId>one</artifactId>"
        "<version>1.0</version></project>"
    )
    folder = tmp_path / "a b & (c), [d] ${e} 100% \u00fc" / "jars"
    monkeypatch.setenv("SWEEPAREA_JARS", str(folder))
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWEEPAREA_IVY_SETTINGS", "mirror.xml")
    assert jars.fetch(jars=[ONE]) == [ONE.filename]
    assert [path.name for path in folder.iterdir()] == [ONE.filename]


def test_a_class_path_without_jars_says_how_to_get_them(installation: Path):
    with pytest.raises(SetupError, match="make jars"):
        jars.class_path()
