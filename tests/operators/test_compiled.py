"""Compiled functions have a place wherever they are run."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sweeparea.operators.kernels import compiled

# as for a user without a home, who may not write beside the source
NO_PLACE = {"NUMBA_CACHE_LOCATOR_CLASSES": "numba.core.caching._UserProvidedCacheLocator"}
CODE = """
import os, stat
from sweeparea.operators.kernels import hashing
folder = os.environ["NUMBA_CACHE_DIR"]
print(folder, oct(stat.S_IMODE(os.stat(folder).st_mode)), os.stat(folder).st_uid == os.getuid())
"""


def test_kernels_are_imported_where_neither_source_nor_home_can_be_written(tmp_path):
    shared = tmp_path / f"sweeparea-numba-{os.getuid()}"
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {**NO_PLACE, "TMPDIR": str(tmp_path)}

    def imported() -> list[str]:
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert imported() == [str(shared), "0o700", "True"]
    shared.chmod(0o777)  # somebody else may have put there what would be run
    folder, mode, own = imported()
    assert folder != str(shared)
    assert (mode, own) == ("0o700", "True")


def test_what_was_compiled_is_not_used_after_a_kernel_that_it_calls_has_changed(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    shutil.copy(str(compiled.__file__), folder / "compiled.py")
    (folder / "__init__.py").touch()
    (folder / "caller.py").write_text(
        "from kernels.called import number\nfrom kernels.compiled import njit\n\n\n"
        "@njit(cache=True)\ndef twice():\n    return 2 * number()\n"
    )

    def answer(number: int) -> int:
        text = f"from kernels.compiled import njit\n\n\n@njit(cache=True)\ndef number():\n    return {number}\n"
        (folder / "called.py").write_text(text)
        return int(_run("from kernels.caller import twice; print(twice())", tmp_path))

    assert answer(3) == 6
    assert list(Path(folder).rglob("caller.twice-*.nbc"))  # it was kept
    assert answer(5) == 10


HEAD = "import numpy as np\nfrom kernels.compiled import njit\n"
FUNCTION = "\n\n@njit(cache=True)\ndef {}(x):\n    return {}\n"


def test_of_what_two_processes_have_compiled_each_is_used_where_it_belongs(tmp_path):
    """Sorts have inner functions of one name: with equal numbers too, one would run in place of the other."""
    folder = tmp_path / "kernels"
    _kernels_in(folder)
    (folder / "ordered.py").write_text(HEAD + FUNCTION.format("ordered", "np.sort(x)"))
    (folder / "order.py").write_text(HEAD + FUNCTION.format("order", "np.argsort(x)"))
    (folder / "before.py").write_text(HEAD + "".join(FUNCTION.format(f"before_{i}", "x") for i in range(3)))

    def called(*names: str) -> list[str]:
        code = "import numpy as np\nfrom kernels.before import *\n"
        code += "".join(f"from kernels.{name} import {name}\n" for name in names if "_" not in name)
        return _run(code + "".join(f"print({name}(np.array([30, 10, 20])))\n" for name in names), tmp_path).split("\n")

    # numba numbers the functions that a process compiles: so the sort's have the same numbers
    assert called("before_0", "before_1", "before_2", "order")[3] == "[1 2 0]"
    assert called("ordered")[0] == "[10 20 30]"
    names = [
        set(re.findall(rb"run_quicksort1B\d+v\d+", file.read_bytes())) for file in sorted(folder.rglob("order*.nbc"))
    ]
    assert [len(found) for found in names] == [1, 1]
    assert names[0] != names[1]
    assert called("ordered", "order")[:2] == ["[10 20 30]", "[1 2 0]"]


def test_a_function_is_compiled_once_for_all_constants(tmp_path):
    _kernels_in(tmp_path / "kernels")
    text = (
        HEAD
        + FUNCTION.format("_first", "x[0]")
        + FUNCTION.format("all_of", "_first((x, 1)) + _first((x, 2)) + _first((3, x))")
    )
    (tmp_path / "kernels" / "constant.py").write_text(text)
    assert _run("from kernels.constant import all_of; print(all_of(5))", tmp_path) == "13\n"
    assert len(list(tmp_path.rglob("constant._first-*.nbc"))) == 1


def _run(code: str, folder: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _kernels_in(folder: Path) -> None:
    folder.mkdir()
    shutil.copy(str(compiled.__file__), folder / "compiled.py")
    (folder / "__init__.py").touch()
    (folder / "counted.py").write_text(
        "from kernels.compiled import njit\n\n\n"
        "@njit(cache=True)\ndef inner(x):\n    return x + 1\n\n\n"
        "@njit(cache=True)\ndef outer(x):\n    return inner(x) * 2\n"
    )


TWICE = """
import sys, time
from numba.core import compiler
from kernels import compiled, counted
compiled.PATIENCE = float(sys.argv[1])
made, compile_extra = [], compiler.compile_extra
def slowly(*given, **options):
    made.append(1)
    time.sleep(0.5)
    return compile_extra(*given, **options)
compiler.compile_extra = slowly
print("ready", flush=True)
sys.stdin.readline()
print(counted.outer(3), len(made), flush=True)
"""


def _at_once(folder: Path, *patience: float) -> list[tuple[int, int]]:
    """Answers of processes that call the same function at the same time, and how many functions each compiled."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(folder)}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", TWICE, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for seconds in patience
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("\n")
        run.stdin.flush()
    told = [run.communicate(timeout=120)[0].split() for run in runs]
    return [(int(answer), int(made)) for answer, made in told]


def test_of_two_processes_one_compiles(tmp_path):
    _kernels_in(tmp_path / "kernels")
    found = _at_once(tmp_path, 60, 60)
    assert [answer for answer, _ in found] == [8, 8]
    assert sorted(made for _, made in found) == [0, 2]


def test_who_has_waited_long_enough_for_one_that_is_suspended_compiles_too(tmp_path):
    folder = tmp_path / "kernels" / "__pycache__"
    _kernels_in(folder.parent)
    folder.mkdir()
    with (folder / "compiling.lock").open("wb") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)  # all of it
        assert _at_once(tmp_path, 0.1) == [(8, 2)]
