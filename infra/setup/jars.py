"""The Delta jars: fetched once by the Ivy that pyspark carries, each checked against ``infra/jars.lock``.

Ivy's own default settings say where jars come from; SWEEPAREA_IVY_SETTINGS may name a settings file for a mirror.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import ssl
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from sweeparea.infra import machine, settings
from sweeparea.infra.errors import SetupError, exit_code_of
from sweeparea.infra.setup.java import Java, find_java

_STORE_PASSWORD = "changeit"


@dataclass(frozen=True)
class Jar:
    """One line of the lock: Maven coordinates and the sha256 of the file."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        """The file's name in the jars folder."""
        return f"{self.name}-{self.version}.jar"


def read_lock(path: Path | None = None) -> list[Jar]:
    """The jars that ``infra/jars.lock`` names: lines ``organisation:name:version sha256``."""
    path = path or Path(__file__).resolve().parents[1] / "jars.lock"
    jars = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            coordinates, digest = line.split()
            organisation, name, version = coordinates.split(":")
            jars.append(Jar(organisation, name, version, digest))
    return jars


def class_path() -> str:
    """The jars as a class path; SetupError if one is missing or not what the lock says."""
    folder = settings.jars_folder()
    missing = check(folder, read_lock())
    if missing:
        raise SetupError(
            f"{folder} lacks {', '.join(j.filename for j in missing)}. Run `{settings.fetch_command()}` to fetch the"
            " Delta jars."
        )
    return os.pathsep.join(str(folder / jar.filename) for jar in read_lock())


def s3_lock() -> list[Jar]:
    """The jars with which Spark reads and writes on S3; fetched only when asked for."""
    return read_lock(Path(__file__).resolve().parents[1] / "jars_s3.lock")


def s3_class_path() -> str:
    """The jars for S3 as a class path; empty if they were not fetched."""
    paths = [settings.jars_folder() / jar.filename for jar in s3_lock()]
    return os.pathsep.join(map(str, paths)) if all(path.is_file() for path in paths) else ""


def check(folder: Path, jars: list[Jar]) -> list[Jar]:
    """The jars that ``folder`` lacks. A file with a wrong sum is removed and raises SetupError."""
    missing = []
    for jar in jars:
        path = folder / jar.filename
        if not path.is_file():
            missing.append(jar)
            continue
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != jar.sha256:
            path.unlink()
            raise SetupError(
                f"{path} is not the file that infra/jars.lock names: its sha256 is {found}, the lock says {jar.sha256}."
                " The file was damaged, or changed on its way here; it has been deleted. Run the same command again to"
                " fetch it anew; if the sums differ again, the server that sends it is not to be trusted."
            )
    return missing


def fetch(java: Java | None = None, folder: Path | None = None, jars: list[Jar] | None = None) -> list[str]:
    """Bring ``folder`` (default: the installation's) to what the lock says; returns the names of the fetched files."""
    folder = folder or settings.jars_folder()
    jars = read_lock() if jars is None else jars
    missing = check(folder, jars)
    if not missing:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        scratch = Path(name)
        _retrieve(java or find_java(), missing, scratch)
        # checked before they get their final name, so that a bad file is never in place
        absent = check(scratch / "jars", missing)
        if absent:
            raise SetupError(
                f"The download ended without {', '.join(j.filename for j in absent)}. Run the same command again."
            )
        for jar in missing:
            (scratch / "jars" / jar.filename).replace(folder / jar.filename)
    return [jar.filename for jar in missing]


def _retrieve(java: Java, jars: list[Jar], scratch: Path) -> None:
    """Run Ivy; with the machine's own certificates if Java's do not do (a proxy, a private mirror)."""
    (scratch / "ivy.xml").write_text(_module_file(jars))
    output = _run_ivy(java, scratch, [])
    if output is not None and ("PKIX" in output or "SSLHandshake" in output):
        store = _trust_store(scratch / "trust.p12")
        if store is not None:
            options = [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={_STORE_PASSWORD}"]
            output = _run_ivy(java, scratch, [*options, "-Djavax.net.ssl.trustStoreType=PKCS12"])
    if output is not None:
        log = settings.jars_folder() / "fetch.log"
        log.write_text(output)
        reason = next(
            (line.strip() for line in output.splitlines() if "error" in line.lower() or "unresolved" in line.lower()),
            "",
        )
        raise SetupError(
            f"The Delta jars could not be fetched: {reason[:300] or 'Ivy failed'}. Check the network (a proxy: set"
            " JAVA_TOOL_OPTIONS; a mirror: let SWEEPAREA_IVY_SETTINGS name an Ivy settings file), then run the same"
            f" command again. All output: {log}"
        )


def _run_ivy(java: Java, scratch: Path, options: list[str]) -> str | None:
    """None on success, else all output."""
    command = [str(java.executable), *options, "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-warn"]
    mirror = os.environ.get("SWEEPAREA_IVY_SETTINGS")
    if mirror:
        if not Path(mirror).is_file():
            raise SetupError(
                f"SWEEPAREA_IVY_SETTINGS names {mirror}, which is no file. Point it to an Ivy settings file or"
                " unset it."
            )
        command += ["-settings", str(Path(mirror).absolute())]
    # parentheses, brackets and dollars mean something in Ivy's patterns: the path of the project stays out of them
    command += ["-ivy", "ivy.xml", "-cache", "cache", "-retrieve", "jars/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            cwd=scratch,
            env=machine.with_names_as_utf8(os.environ),
            timeout=600,
        )
    except subprocess.TimeoutExpired:
        return "error: no answer within 600 s"
    return None if done.returncode == 0 else done.stdout


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin else None
    found = sorted(folder.glob("ivy-*.jar")) if folder is not None else []
    if not found:
        raise SetupError("pyspark's jars are missing from the environment. Run `make env` to install it.")
    return found[-1]


def _module_file(jars: list[Jar]) -> str:
    """An Ivy file that asks for these jars and nothing they depend on (the rest of their closure is in pyspark)."""
    lines = "\n".join(
        f"<dependency org={quoteattr(j.organisation)} name={quoteattr(j.name)} rev={quoteattr(j.version)}"
        ' conf="default->master" transitive="false"/>'
        for j in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="sweeparea" module="jars"/><configurations><conf'
        f' name="default"/></configurations><dependencies>\n{lines}\n</dependencies></ivy-module>\n'
    )


def _trust_store(path: Path) -> Path | None:
    """The certificates that Python trusts here (SSL_CERT_FILE or the system's) as a trust store for Java, if any."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    source = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    if not source or not Path(source).is_file():
        return None
    entries = []
    end = b"-----END CERTIFICATE-----"
    for block in Path(source).read_bytes().split(end):
        start = block.find(b"-----BEGIN CERTIFICATE-----")
        if start >= 0:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    certificate = x509.load_pem_x509_certificate(block[start:] + end + b"\n")
            except ValueError:
                continue  # an old root that today's parser refuses is no reason to trust none
            entries.append(pkcs12.PKCS12Certificate(certificate, str(len(entries)).encode()))
    if not entries:
        return None
    path.write_bytes(pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(_STORE_PASSWORD.encode())))
    return path


def main() -> int:
    """``make jars``; with ``--s3`` also those for object stores on S3."""
    return exit_code_of(_main, "run the same command again: it fetches what is missing")


def _main() -> None:
    bring(s3="--s3" in sys.argv)


def bring(s3: bool = False) -> None:
    """Fetches the jars that are missing, and tells of it; ``s3``: also those for object stores on S3."""
    wanted = [*read_lock(), *(s3_lock() if s3 else [])]
    java = find_java()
    if java.note:
        print(f"[jars] {java.note}", flush=True)
    if check(settings.jars_folder(), wanted):
        print(f"[jars] fetching the Delta jars with Java {java.version} of {java.origin} ..", flush=True)
        fetched = fetch(java, jars=wanted)
        print(f"[jars] {len(fetched)} files checked and put into {settings.jars_folder()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
