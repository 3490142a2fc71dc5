"""Compiled functions have a place wherever they are run."""

from __future__ import annotations

import os
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
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(tmp_path)}

    def answer(number: int) -> int:
        text = f"from kernels.compiled import njit\n\n\n@njit(cache=True)\ndef number():\n    return {number}\n"
        (folder / "called.py").write_text(text)
        code = "from kernels.caller import twice; print(twice())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert answer(3) == 6
    assert list(Path(folder).rglob("caller.twice-*.nbc"))  # it was kept
    assert answer(5) == 10
