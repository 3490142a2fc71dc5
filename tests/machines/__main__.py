"""``make machines``: one application under the settings of many machines, each of which must export the same rows.

Every setting gets a folder of its own and runs the commands as a user does, ``admit``, ``process`` and ``sql``, with
its variables in their environment. What is compared is the sorted output of ``sql``, with rows that were worked out by
hand. ``--only text`` runs the settings whose name holds it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from sweeparea.infra.errors import exit_code_of

ROOT = Path(__file__).resolve().parents[2]

APPLICATION = """
CREATE STREAM s FROM FORMAT 'json' PATH '../../läden' SCHEMA (at TIMESTAMP, place STRING)
  TIMESTAMP BY at CHRONON INTERVAL 1 SECOND HEARTBEAT FOR at AS at;
CREATE CONTINUOUS QUERY places AS
  SELECT LOWER(place) AS small, UPPER(place) AS large, COUNT(*) AS n, MAX(date_format(at, 'EEEE MMMM')) AS day
  FROM s [RANGE UNBOUNDED] GROUP BY LOWER(place), UPPER(place);
CREATE CONTINUOUS QUERY days AS
  SELECT COUNT(*) AS n, MIN(from_utc_timestamp(at, 'America/Mexico_City')) AS local
  FROM s [Tumbling By day In 'America/Mexico_City'];
"""
FILES = {
    "naïve.json": """\
{"at": "2023-05-01T05:30:00Z", "place": "Istanbul é"}
{"at": "2023-05-01T12:00:00Z", "place": "ISTANBUL É"}
""",
    "plain.json": """\
{"at": "2023-05-02T05:30:00Z", "place": "ISTANBUL É"}
{"at": "2023-05-03T12:00:00Z", "place": "Ì"}
{"at": "2023-05-04T12:00:00Z", "place": "after the last heartbeat"}
""",
}
EXPECTED = """\
istanbul é,ISTANBUL É,3,Tuesday May
small,large,n,day
ì,Ì,1,Wednesday May
0,,1970-01-01 00:00:00+00:00
0,,2023-05-03 05:59:59+00:00
1,2023-04-30 23:30:00+00:00,2023-05-01 05:59:59+00:00
1,2023-05-03 06:00:00+00:00,2023-05-04 05:59:59+00:00
2,2023-05-01 06:00:00+00:00,2023-05-02 05:59:59+00:00
n,local,valid_from
""".splitlines()
"""A day of Mexico began at 06:00Z in 2023: that summer time had ended is known since October 2022."""
QUERIES = (
    "SELECT small, large, n, day FROM places__current",
    "SELECT n, local, valid_from FROM days ORDER BY local",
)
PLAIN: Mapping[str, str] = {}
JVM = "-Duser.language={0} -Duser.country={1} -Dfile.encoding=ISO-8859-9 -Duser.timezone=Asia/Tokyo"
SETTINGS: dict[str, Mapping[str, str]] = {
    "plain": PLAIN,
    "tr locale": {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "JAVA_TOOL_OPTIONS": JVM.format("tr", "TR")},
    "lt locale": {"LANG": "lt_LT.UTF-8", "LC_ALL": "lt_LT.UTF-8", "JDK_JAVA_OPTIONS": JVM.format("lt", "LT")},
    "C locale": {"LC_ALL": "C"},
    "C locale without UTF-8": {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    },
    "zone of Kathmandu": {"TZ": "Asia/Kathmandu"},
    "zone of Mexico, no system rules": {"TZ": "America/Mexico_City", "PYTHONTZPATH": ""},
    "zone of Lord Howe": {"TZ": "Australia/Lord_Howe"},
    "proxy": dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"), "http://127.0.0.1:9"),
    "foreign Spark": {
        "SPARK_HOME": "/nowhere/spark",
        "SPARK_CONF_DIR": "/nowhere/conf",
        "SPARK_DIST_CLASSPATH": "/nowhere/*",
        "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
        "PYSPARK_PYTHON": "/nowhere/python",
        "HADOOP_CONF_DIR": "/nowhere/hadoop",
        "_JAVA_OPTIONS": "-Xmx16m",
    },
    "foreign PostgreSQL": {"PGSSLMODE": "verify-full", "PGSERVICE": "none", "PGHOST": "/nowhere", "PGPORT": "1"},
    "path with a space": {"IN": "a folder (with) & signs"},
    "PYTHONOPTIMIZE": {"PYTHONOPTIMIZE": "2"},
    "no home": {"HOME": "/nowhere/home", "USER": "", "LOGNAME": ""},
}
SETTINGS |= {
    "all at once, in Turkish": {
        **SETTINGS["tr locale"],
        **SETTINGS["zone of Mexico, no system rules"],
        **SETTINGS["proxy"],
        **SETTINGS["path with a space"],
    },
    "all at once, in the C locale": {
        **SETTINGS["C locale without UTF-8"],
        **SETTINGS["zone of Kathmandu"],
        **SETTINGS["foreign Spark"],
        **SETTINGS["foreign PostgreSQL"],
        **SETTINGS["PYTHONOPTIMIZE"],
        **SETTINGS["no home"],
    },
}


def rows(folder: Path, variables: Mapping[str, str], python: str = sys.executable) -> list[str]:
    """What the application exports under these variables, sorted line by line. RuntimeError with the output of a
    command that failed.
    """
    folder = folder / variables.get("IN", "machine")
    (folder / "läden").mkdir(parents=True)
    (folder / "app").mkdir()
    (folder / "app" / "app.cql").write_text(APPLICATION, "utf-8")
    for name, text in FILES.items():
        (folder / "läden" / name).write_text(text, "utf-8")
    environment = {k: v for k, v in os.environ.items() if k not in ("SPARK_REMOTE", "PYTHONUTF8", "SWEEPAREA_HOME")}
    environment |= {"SWEEPAREA_SPARK_MASTER": "local[2]", "SWEEPAREA_RUN": str(folder / "run"), "SWEEPAREA_SYNC": "off"}
    environment |= {k: v for k, v in variables.items() if k != "IN"}

    def run(*arguments: str) -> list[str]:
        command = [python, "-m", "sweeparea", *arguments]
        done = subprocess.run(command, capture_output=True, env=environment, cwd=ROOT, timeout=590)
        if done.returncode:
            said = (done.stderr + done.stdout).decode("utf-8", "backslashreplace")
            raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {said[-1500:]}")
        return done.stdout.decode("utf-8").splitlines()

    app = str(folder / "app")
    run("admit", app)
    run("process", app)
    return [line for query in QUERIES for line in sorted(run("sql", app, "-c", query, "--format", "csv"))]


def main() -> int:
    """Runs the settings; returns 1 if one exports other rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    bad = 0
    for name, variables in SETTINGS.items():
        if only not in name:
            continue
        began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="machines-"))
        try:
            found = rows(folder, variables)
            verdict = "same rows" if found == EXPECTED else f"OTHER ROWS: {sorted({*found} ^ {*EXPECTED})}"
        except RuntimeError as error:
            verdict = f"FAILED: {error}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        bad += verdict != "same rows"
        print(f"{name:34} {time.monotonic() - began:4.0f} s  {verdict}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main, "ONLY=text runs some of the settings"))
