"""An application's own modules: found beside each other, seen by nobody else, the same in another process."""

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from sweeparea.operators import user
from sweeparea.operators.plan.plan import UserKind
from sweeparea.operators.user_code.user_modules import Modules

HEAD = "from __future__ import annotations\nfrom sweeparea.operators.user import function\n"
FACTOR = '@function(returns="double")\ndef f(values):\n    return {0}\n'


def written(folder: Path, **sources: str) -> Modules:
    for name, source in sources.items():
        file = folder / f"{name.replace('__of__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return Modules.of(folder)


def value(modules: Modules, module: str = "measures") -> object:
    return user.load(f"{module}:f", UserKind.FUNCTION, modules)(None)


def test_modules_of_the_same_name_in_two_applications(tmp_path: Path) -> None:
    path, loaded = list(sys.path), set(sys.modules)
    made = [
        written(tmp_path / name, measures=HEAD + "from helper import K\n" + FACTOR.format("K"), helper=f"K = {k}\n")
        for name, k in (("a", 2), ("b", 3))
    ]
    assert [value(m) for m in (*made, *made)] == [2, 3, 2, 3]
    assert sys.path == path
    assert not {"measures", "helper"} & (set(sys.modules) - loaded)


def test_an_edited_module_counts_at_once_and_the_old_code_goes_on(tmp_path: Path) -> None:
    old = written(tmp_path, measures=HEAD + "import helper\n" + FACTOR.format("helper.K"), helper="K = 2\n")
    assert value(old) == 2
    new = written(tmp_path, helper="K = 3\n")  # the same size, in the same second
    assert (value(new), value(old)) == (3, 2)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("import helper", "helper.K"),
        ("from helper import *", "K"),
        ("from . import helper", "helper.K"),
        ("from .helper import K as J", "J"),
        ("", "__import__('helper').K"),
        ("import importlib", "importlib.import_module('helper').K"),
        ("from importlib import import_module", "import_module('.helper', __package__).K"),
        ("import importlib.util", "importlib.import_module('pkg.mod').K - importlib.util.MAGIC_NUMBER[0] * 0"),
        ("import pkg.mod", "pkg.mod.K"),
        ("import pkg.mod as m", "m.K"),
        ("from pkg import mod", "mod.K"),
        ("from spaces.deep.inner import K", "K"),
        ("from spaces.deep import inner", "inner.K"),
        ("import one", "one.two.K"),
    ],
)
def test_ways_to_import(tmp_path: Path, head: str, body: str) -> None:
    modules = written(
        tmp_path,
        measures=f"{HEAD}{head}\n{FACTOR.format(body)}",
        helper="K = 7\n",
        pkg__of____init__="",
        pkg__of__mod="from ..helper import K\n",
        spaces__of__deep__of__inner="import helper\nK = helper.K\n",
        one="import two\nK = 7\n",
        two="import one\nfrom helper import K\n",
    )
    assert value(modules) == 7


@pytest.mark.parametrize("name", ["profile", "arrow", "http", "glob", "attr", "queue", "types", "time", "enum"])
def test_helpers_that_are_named_like_other_modules(tmp_path: Path, name: str) -> None:
    lazily = f"(__import__('{name}').K, K, np.int64(1).item())"
    source = f"{HEAD}import numpy as np, dataclasses\nfrom {name} import K\n{FACTOR.format(lazily)}"
    assert value(written(tmp_path, measures=source, **{name: "K = 7\n"})) == (7, 7, 1)
    if name not in ("arrow", "attr"):  # everybody else has the standard library's
        assert not hasattr(importlib.import_module(name), "K")


def test_folders_of_data_hide_no_modules(tmp_path: Path) -> None:
    for folder in ("pyarrow", "sweeparea", "json"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.py").write_text("")
    body = FACTOR.format("(pa.scalar(1).as_py(), json.dumps(1))")
    assert value(written(tmp_path, measures=HEAD + "import json\nimport pyarrow as pa\n" + body)) == (1, "1")


def test_what_python_looks_up_by_a_modules_name(tmp_path: Path) -> None:
    source = (
        HEAD
        + "import dataclasses, importlib.resources, pathlib, pickle, typing\n"
        + "@dataclasses.dataclass\nclass Point:\n    x: int\n    next: Point | None = None\n"
        + "def told():\n"
        + "    same = pickle.loads(pickle.dumps(Point(1))) == Point(1)\n"
        + "    hints = typing.get_type_hints(Point)['x'] is int\n"
        + "    beside = pathlib.Path(__file__).with_name('rates.txt').read_text()\n"
        + "    return same, hints, beside, importlib.resources.files(__package__).joinpath('rates.txt').read_text()\n"
        + FACTOR.format("told()")
        + "if __name__ == '__main__':\n    raise SystemExit\n"
    )
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "rates.txt").write_text("5")
    modules = written(tmp_path, pkg__of____init__="", pkg__of__measures=source)
    assert value(modules, "pkg.measures") == (True, True, "5", "5")


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("import importlib.resources", "importlib.resources.files('pkg').joinpath('rates.txt').read_text()"),
        ("import importlib.resources as r", "(r.files('pkg.sub') / 'rates.txt').read_text()"),
        ("from importlib import resources", "resources.files('spaces').joinpath('rates.txt').read_text()"),
        ("from importlib.resources import files", "files('data').joinpath('more/rates.txt').read_text()"),
        ("from importlib.resources import files", "files('pkg.data').joinpath('rates.txt').read_text()"),
        ("from importlib.resources import files", "files(package='pkg').joinpath('rates.txt').read_text()"),
        ("from importlib.resources import files", "files(__package__).joinpath('rates.txt').read_text()"),
        ("from importlib.resources import files\nimport spaces", "files(spaces).joinpath('rates.txt').read_text()"),
        ("from importlib.resources import read_text", "read_text('pkg', 'rates.txt')"),
        ("from importlib import resources as r", "open(r.as_file(r.files('pkg') / 'rates.txt').__enter__()).read()"),
        ("import pkgutil", "pkgutil.get_data('pkg', 'rates.txt').decode()"),
        ("from pkgutil import get_data", "get_data(__package__ + '.pkg', 'rates.txt').decode()"),
        (
            "import importlib.util as u",
            "'7' if u.find_spec('pkg.sub').origin.endswith('sub/__init__.py') else ''",
        ),
        ("from importlib.util import find_spec", "'7' if find_spec('.helper', __package__) else ''"),
        ("from importlib.resources import files", "'7' if files('json').joinpath('decoder.py').is_file() else ''"),
        ("import pkg.mod", "pkg.mod.K"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_data_files_beside_modules(tmp_path: Path, head: str, body: str) -> None:
    for folder in (".", "pkg", "pkg/sub", "pkg/data", "spaces", "data/more", "json"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "rates.txt").write_text("7")
    modules = written(
        tmp_path,
        measures=f"{HEAD}{head}\nimport spaces.one\n{FACTOR.format(body)}",
        helper="",
        spaces__of__one="",
        pkg__of____init__="",
        pkg__of__sub__of____init__="",
        pkg__of__mod="from importlib.resources import files\nK = files().joinpath('rates.txt').read_text()\n",
    )
    assert value(modules) == "7"
    if "spaces" in body:  # a worker: one way tells for all
        sent = pickle.dumps(user.load("measures:f", UserKind.FUNCTION, modules))
        assert in_another_process(sent, tmp_path) == "7"


def test_a_worker_without_the_application_gets_what_was_read_at_the_top(tmp_path: Path) -> None:
    read = "files('pkg').joinpath('rates.txt').read_text()"
    source = f"{HEAD}from importlib.resources import files\nK = {read}\n"
    folder = tmp_path / "app"
    modules = written(
        folder, at_top=source + FACTOR.format("K"), late=source + FACTOR.format(read), pkg__of____init__=""
    )
    (folder / "pkg" / "rates.txt").write_text("7")
    sent = [pickle.dumps(user.load(f"{name}:f", UserKind.FUNCTION, modules)) for name in ("at_top", "late")]
    folder.rename(tmp_path / "gone")
    assert in_another_process(sent[0], tmp_path) == "7"
    with pytest.raises(subprocess.CalledProcessError) as failed:
        in_another_process(sent[1], tmp_path)
    assert re.search(r"app is not on this machine .* at the top of the module.*rates.txt", failed.value.stderr)


def test_a_folder_without_init_that_only_a_declaration_names(tmp_path: Path) -> None:
    source = HEAD + "import helper\nfrom sub.inner import more\n" + FACTOR.format("helper.K + more.K")
    written(tmp_path, sub__of__measures=source, sub__of__inner__of__more="K = 2\n", helper="K = 1\n")
    assert not Modules.of(tmp_path).has("sub.measures")
    for target in ("sub.measures:f", "sub.measures", "sub:f"):
        assert value(Modules.of(tmp_path, "", target), "sub.measures") == 3


def test_modules_of_pythonpath_and_those_beside(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "sweeparea_lib.py").write_text("K = 4\n")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    source = HEAD + "import sweeparea_lib\n" + FACTOR.format("sweeparea_lib.K")
    assert value(written(tmp_path / "app", measures=source)) == 4


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ({"helper": "\n1 / 0\n"}, r"Importing module measures failed: ZeroDivisionError: .* \(helper.py, line 2\)"),
        ({"helper": "\nx = = 1\n"}, r"SyntaxError: .*helper.py, line 2"),
        ({"helper": "import not_there\n"}, r"measures imports not_there, which is not installed \(helper.py, line 1\)"),
        ({"helper": "from . import gone\n"}, r"cannot import name 'gone' from '[^']*' .*\(helper.py, line 1\)"),
        ({"helper": "import pkg.gone\n", "pkg__of____init__": ""}, r"imports pkg.gone, .*\(helper.py, line 1\)"),
    ],
)
def test_where_a_module_fails(tmp_path: Path, sources: dict[str, str], told: str) -> None:
    modules = written(tmp_path, measures=HEAD + "import helper\n" + FACTOR.format("1"), **sources)
    with pytest.raises(user.UserCodeError, match=told) as caught:
        value(modules)
    assert "sweeparea_application_" not in str(caught.value)


def test_where_a_call_fails(tmp_path: Path) -> None:
    modules = written(tmp_path, measures=HEAD + "def g():\n    raise ValueError('odd')\n" + FACTOR.format("g()"))
    with pytest.raises(ValueError, match=r"^odd \(measures.py, line 4\)$"):
        value(modules)


def in_another_process(sent: bytes, folder: Path, **environment: str) -> str:
    (folder / "sent").write_bytes(sent)
    code = f"import pickle; print(pickle.load(open({str(folder / 'sent')!r}, 'rb'))(None))"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": root, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_worker_imports_what_it_was_sent(tmp_path: Path) -> None:
    """Lazily too, whatever the folder says meanwhile; and as it was here where the machine makes it another."""
    source = (
        HEAD
        + "import os\nSEEN = os.environ.get('SWEEPAREA_SEEN', 'nobody')\n"
        + FACTOR.format("(SEEN, __import__('queue').K)").replace("__import__('queue').K", "lazily()")
        + "def lazily():\n    import queue\n    from pkg.mod import K\n    return queue.K + K\n"
    )
    modules = written(tmp_path, measures=source, queue="K = 1\n", pkg__of____init__="", pkg__of__mod="K = 1\n")
    sent = pickle.dumps(user.load("measures:f", UserKind.FUNCTION, modules))
    written(tmp_path, queue="K = 5\n")
    assert in_another_process(sent, tmp_path) == "('nobody', 2)"


def test_a_worker_with_another_environment_gets_the_function_as_it_was(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SWEEPAREA_SEEN", "here")
    source = HEAD + "import os\nSEEN = os.environ.get('SWEEPAREA_SEEN', 'nobody')\n" + FACTOR.format("SEEN")
    modules = written(tmp_path, measures=source)
    sent = pickle.dumps(user.load("measures:f", UserKind.FUNCTION, modules))
    assert in_another_process(sent, tmp_path, SWEEPAREA_SEEN="there") == "here"


def test_arrow_columns_go_through(tmp_path: Path) -> None:
    source = HEAD + "import pyarrow.compute as pc\n" + FACTOR.format("pc.multiply(values, 2.0)")
    code = user.load("measures:f", UserKind.FUNCTION, written(tmp_path, measures=source))
    assert code(pa.array([1.5])).to_pylist() == [3.0]
