from __future__ import annotations

import os
import subprocess
import sys
import zoneinfo
from pathlib import Path

import pytest

from sweeparea.infra import machine, zones
from sweeparea.infra.errors import SetupError
from sweeparea.infra.services import spark_connect
from sweeparea.operators.time.wall_clock import bucket
from sweeparea.spark_jobs.spark.session import spark_session

HOUR = 3_600_000_000
FOREIGN = {
    "SPARK_HOME": "/nowhere",
    "PYSPARK_SUBMIT_ARGS": "--master yarn",
    "HADOOP_CONF_DIR": "/nowhere",
    "JAVA_TOOL_OPTIONS": "-Duser.language=tr",
    "_JAVA_OPTIONS": "-Xmx1m",
}


def test_a_jvm_finds_nothing_of_the_machine_and_of_other_installations():
    given = {**FOREIGN, "LC_ALL": "C", "LC_CTYPE": "tr_TR", "LANGUAGE": "tr", "TZ": "Asia/Tokyo", "PYTHONOPTIMIZE": "2"}
    found = machine.jvm_environment({**given, "PATH": "/bin", "PYTHONPATH": "/mine"})
    assert found == {**machine.WORKER, "PATH": "/bin", "PYTHONPATH": "/mine"}
    assert found["LC_ALL"] == "C.UTF-8"
    assert found["TZ"] == "UTC"


def test_executors_of_a_cluster_are_told_what_their_machines_do_not_know(monkeypatch: pytest.MonkeyPatch):
    given = {"SWEEPAREA_SYNC": "off", "SWEEPAREA_WORKER_MEMORY": "2g", "AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}
    for name, value in {**given, "AWS_SECRET_ACCESS_KEY": "key", "SWEEPAREA_EXECUTOR_MEMORY": "3g"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    found = machine.executor_conf()
    environment = {
        n.removeprefix("spark.executorEnv."): v for n, v in found.items() if n.startswith("spark.executorEnv")
    }
    assert environment == {**machine.WORKER, **given}
    assert found["spark.executor.memory"] == "3g"
    # expressions are walked by recursion in executors too
    assert machine.STACK in found["spark.executor.extraJavaOptions"].split()
    assert "key" not in found.values()


SOMEBODYS_PYTHON = {
    "PYTHONWARNINGS": "error",
    "PYTHONDEVMODE": "1",
    "PYTHONINSPECT": "1",
    "PYTHONIOENCODING": "ascii",
    "PYTHONINTMAXSTRDIGITS": "640",
    "PYTHONMALLOC": "malloc_debug",
    "PYTHONPROFILEIMPORTTIME": "1",
    "PYTHONVERBOSE": "1",
}
HARMLESS_PYTHON = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONFAULTHANDLER": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHON_VERSION": "3",
}


@pytest.mark.parametrize(
    ("made", "ours"),
    [
        (machine.jvm_environment, machine.WORKER),
        (machine.python_environment, {"PYTHONUTF8": "1"}),
    ],
)
def test_settings_of_python_for_other_programs_reach_none_of_ours(made, ours):
    assert made({**SOMEBODYS_PYTHON, **HARMLESS_PYTHON}) == {**HARMLESS_PYTHON, **ours}
    wanted = {"PYTHONDEVMODE": "1", machine.INHERIT: "PYTHONDEVMODE"}
    assert wanted.items() <= made(wanted).items()


def test_a_command_runs_whatever_the_settings_of_python():
    code = (
        "import sys, warnings; from sweeparea.infra import machine; machine.fit_command(); warnings.warn('old');"
        " print('läden', sys.flags.inspect, int('9' * 1000) % 10); sys.exit(2)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **SOMEBODYS_PYTHON, "PYTHONVERBOSE": "", "PYTHONPROFILEIMPORTTIME": ""},
        timeout=120,
    )
    assert done.stdout.decode("utf-8") == "läden 0 9\n", done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("option", "refused"),
    [("error", True), ("e", True), ("error::DeprecationWarning", True), ("error:::mine", False), ("ignore", False)],
)
def test_a_process_that_takes_warnings_for_errors_is_told_so(
    monkeypatch: pytest.MonkeyPatch, option: str, refused: bool
):
    monkeypatch.setattr(sys, "warnoptions", ["default", option])
    assert ("PYTHONWARNINGS" in " ".join(machine.faults())) == refused


def test_make_finds_its_modules_whatever_the_settings_of_python():
    folder, given = Path(__file__).resolve().parents[2], {**SOMEBODYS_PYTHON, **HARMLESS_PYTHON}
    done = subprocess.run(
        ["make", "-s", "--eval", "shown: ; @env", "shown"],
        capture_output=True,
        text=True,
        env={**os.environ, **given},
        cwd=folder,
        check=True,
    )
    seen = {line.split("=")[0] for line in done.stdout.splitlines()}
    assert not seen & {"PYTHONSAFEPATH", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONIOENCODING", "PYTHONINTMAXSTRDIGITS"}
    assert "PYTHONUTF8" in seen


def test_who_wants_his_own_names_it():
    found = machine.jvm_environment({**FOREIGN, machine.INHERIT: "HADOOP_CONF_DIR, JAVA_TOOL_OPTIONS"})
    assert {name for name in FOREIGN if name in found} == {"HADOOP_CONF_DIR", "JAVA_TOOL_OPTIONS"}


def test_the_server_has_a_language_and_a_zone_of_its_own(installation: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in {**FOREIGN, "LC_ALL": "C"}.items():
        monkeypatch.setenv(name, value)
    jars = installation / ".jars"
    monkeypatch.setattr(spark_connect.jars, "class_path", lambda: str(jars))
    service = spark_connect.service(port=1)
    assert service.environment["LC_ALL"] == "C.UTF-8"
    assert "HADOOP_CONF_DIR" not in service.environment
    options = next(o for o in service.command if o.startswith("spark.driver.extraJavaOptions="))
    assert options.endswith(machine.jvm_options())


def test_rules_of_zones_do_not_come_from_the_system(tmp_path: Path):
    # a system whose Mexico still has summer time in 2023, as Chicago has
    (tmp_path / "America").mkdir()
    other = zones.resources.files("tzdata").joinpath("zoneinfo", "America", "Chicago").read_bytes()
    (tmp_path / "America" / "Mexico_City").write_bytes(other)
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    try:
        zoneinfo.ZoneInfo.clear_cache()
        zones.zone.cache_clear()
        assert bucket(1_682_950_000_000_000, "day", "America/Mexico_City")[0] % (24 * HOUR) == 6 * HOUR
    finally:
        zoneinfo.reset_tzpath()
        zoneinfo.ZoneInfo.clear_cache()
    with pytest.raises(zoneinfo.ZoneInfoNotFoundError):
        zones.zone("../zones")


def test_a_command_reads_and_prints_names_as_utf8_whatever_the_locale(tmp_path: Path):
    given = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONOPTIMIZE": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "sweeparea", "status", str(tmp_path / "läden")],
        capture_output=True,
        env={**os.environ, **given},
        timeout=120,
    )
    assert done.returncode == 2
    assert "läden" in done.stderr.decode("utf-8")


@pytest.mark.parametrize("closed", ["1>&-", "0<&- 1>&- 2>&-"])
def test_a_command_runs_where_its_output_is_closed(tmp_path: Path, closed: str):
    script = f'"$0" -m sweeparea status "$1" {closed}; test $? = 2'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, str(tmp_path / "nothing")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_of_others_is_told_what_to_set():
    code = "from sweeparea.infra import machine; machine.require_fit_python()"
    given = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONOPTIMIZE": "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **given})
    assert "SetupError" in done.stderr
    assert "PYTHONUTF8=1" in done.stderr
    assert "PYTHONOPTIMIZE" in done.stderr


def test_a_user_without_a_name_is_told_before_a_spark_starts(installation: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setenv("SWEEPAREA_SPARK_MASTER", "local[2]")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1_234_567_890)
    with pytest.raises(SetupError, match=r"no name for the user id 1234567890, .*/etc/passwd.*SPARK_REMOTE"):
        spark_connect.service(port=1)
    with pytest.raises(SetupError, match="no name"), spark_session():
        pass


def test_a_spark_that_does_not_start_is_told_with_what_it_was_given(
    installation: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in {"SPARK_HOME": "/nowhere", machine.INHERIT: "SPARK_HOME, NONE"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SWEEPAREA_SPARK_MASTER", "local[2]")
    code = "from sweeparea.spark_jobs.spark.session import spark_session; spark_session().__enter__()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SetupError: Spark does not start: FileNotFoundError" in done.stderr
    assert "given SPARK_HOME, which SWEEPAREA_SPARK_INHERIT names" in done.stderr


def test_paths_without_a_scheme_lie_on_this_machine(installation: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spark_connect.jars, "class_path", lambda: "")
    assert "spark.hadoop.fs.defaultFS=file:///" in spark_connect.service(port=1).command


def test_nothing_of_spark_lies_in_a_home(installation: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spark_connect.jars, "class_path", lambda: "")
    command = spark_connect.service(port=1).command
    assert f"spark.jars.ivy={installation / '.run' / 'spark' / 'ivy'}" in command
