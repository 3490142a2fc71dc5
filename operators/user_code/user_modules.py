"""The Python modules of an application: loaded apart from all others, the same way here and in Spark's workers.

An application's modules are the files of its own folder. ``import helper`` in one of them gives the file beside it:
never another application's, never the standard library's of that name, and nobody else sees it, for ``sys.path`` does
not gain the folder. The folder's sources are read once (``Modules.of``) and live under a package whose name tells the
folder and its contents, so that old and new code of one application go on beside each other in one process. What does
not lie in the folder is imported as everywhere.

Only ``__import__`` as these modules see it is another (it stands in their ``__builtins__``); how modules are made,
cached and guarded against circular imports is Python's own machinery.

A folder without ``__init__.py`` is a package of the application where its modules are imported by their full names and
there is no real module of its name elsewhere, as Python has it: a folder ``pandas`` of data files hides nothing.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import importlib.util
import os
import pickle
import platform
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from sweeparea.operators.user_code.user_resources import Folder, seen_by

_PREFIX = "sweeparea_application_"
_KNOWN: dict[str, Modules] = {}
"""The modules that were loaded in this process, by the name of their package. None is ever forgotten: a run that began
with old code ends with it."""


@dataclass(frozen=True)
class Modules:
    """The Python sources of the application in ``folder``: ``sources`` by their paths in it (``pkg/mod.py``)."""

    folder: str
    sources: Mapping[str, bytes]

    @classmethod
    def of(cls, folder: str | Path, *targets: str) -> Modules:
        """The sources as they are now: the folder's own files, its packages, and what these import, or ``targets``
        (``module:object``) name, in folders that have no ``__init__.py``. Folders of data are not searched.
        """
        root = Path(folder).resolve()
        sources = dict(_read(root, (p for p in _listed(root) if p.is_file())))
        sources.pop("__init__.py", None)
        for package in (p for p in _listed(root) if (p / "__init__.py").is_file()):
            sources |= _read(root, _below(package))
        pending, seen = list(sources), set[str]()
        wanted = {name for t in targets if (name := t.partition(":")[0].partition(".")[0]).isidentifier()}
        while pending or wanted:
            for name in wanted or _heads(sources[pending.pop()]):
                place = root / name
                if name not in seen and place.is_dir() and not (place / "__init__.py").is_file():
                    more = dict(_read(root, _below(place)))
                    pending += more
                    sources |= more
                seen.add(name)
            wanted = set()
        return cls(str(root), dict(sorted(sources.items())))

    @cached_property
    def package(self) -> str:
        """The name of the package that holds these modules."""
        digest = hashlib.sha256(os.fsencode(self.folder))
        for path, source in self.sources.items():
            digest.update(f"\0{path}\0{len(source)}\0".encode() + source)
        return _PREFIX + digest.hexdigest()[:24]

    def path(self, name: str) -> str | None:
        """The source of the module ``name`` (``pkg.mod``); "" for a folder without a source of its own, None where
        there is no such module.
        """
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        parent = name.rpartition(".")[0]
        if parent and not self._holds(parent):
            return None
        stem = name.replace(".", "/")
        found = next((p for p in (f"{stem}/__init__.py", f"{stem}.py") if p in self.sources), None)
        if found is None and any(p.startswith(f"{stem}/") for p in self.sources):
            return ""
        return found

    def _holds(self, name: str) -> bool:
        path = self.path(name)
        return path is not None and (not path or path.endswith("/__init__.py"))

    def has(self, name: str, wanted: Sequence[str] = ()) -> bool:
        """Whether ``import name`` (or ``from name import wanted``) in these modules means one of them."""
        head = name.partition(".")[0]
        path = self.path(head)
        if path:
            return True
        if path is None or self.path(name) is None or _is_module(head):
            return False
        return bool(self.path(name)) or not wanted or any(self.path(f"{name}.{w}") is not None for w in wanted)

    def data_folder(self, name: str) -> Path | None:
        """The folder of data files that ``name`` (``pkg.data``) means to these modules; None where it means none."""
        parts = name.split(".")
        folder = Path(self.folder, *parts)
        if not all(map(str.isidentifier, parts)) or not folder.is_dir():
            return None
        return folder if self.has(parts[0]) or not _is_module(parts[0]) else None

    def load(self, name: str) -> ModuleType:
        """The module ``name`` of these, imported at its first use."""
        self.offer()
        return importlib.import_module(f"{self.package}.{name}")

    def offer(self) -> None:
        """From now on the package can be imported in this process."""
        _KNOWN.setdefault(self.package, self)
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())

    def told(self, text: str) -> str:
        """A text in which these modules have the names that their author gave them."""
        return text.replace(f"{self.package}.", "").replace(self.package, self.folder)

    def place(self, error: BaseException) -> str:
        """Where in these modules an error arose: ``measures.py, line 3``; "" where it arose elsewhere."""
        return next((_place(self, f) for f in reversed(_frames(error)) if _place(self, f)), "")

    def __reduce__(self) -> Any:
        return _same, (self.folder, dict(self.sources))


def _same(folder: str, sources: Mapping[str, bytes]) -> Modules:
    made = Modules(folder, sources)
    made.offer()
    return _KNOWN[made.package]


# -- what lies in the folder -------------------------------------------------------------------------------------------


def _listed(folder: Path) -> list[Path]:
    """What of a folder can be imported."""
    try:
        return sorted(p for p in folder.iterdir() if p.stem.isidentifier() and p.suffix in ("", ".py"))
    except OSError:
        return []


def _below(folder: Path) -> Iterator[Path]:
    for path in _listed(folder):
        if path.is_dir():
            if path.resolve() not in path.parents:
                yield from _below(path)
        elif path.suffix == ".py":
            yield path


def _read(root: Path, files: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for file in files:
        if file.suffix == ".py":
            try:
                yield file.relative_to(root).as_posix(), file.read_bytes()
            except OSError:  # it was not imported before either
                continue


def _heads(source: bytes) -> set[str]:
    """The first parts of all names that a source imports."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names} if node.module is None else {node.module.partition(".")[0]}
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            found |= {text.lstrip(".").partition(".")[0] for text in texts}
    return {name for name in found if name.isidentifier()}


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _is_module(name: str) -> bool:
    """Whether Python finds a module or package with a source of that name elsewhere."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return False
    return spec is not None and spec.origin is not None


# -- importing ---------------------------------------------------------------------------------------------------------


class _Finder(MetaPathFinder):
    """Finds the modules of the applications that this process knows."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        modules = _KNOWN.get(package)
        if modules is None:
            return None
        source = modules.path(name) if name else ""
        if source is None:
            return None
        if not source:
            return Folder(Path(modules.folder, *filter(None, name.split(".")))).spec(fullname)
        file = Path(modules.folder, source)
        within = [str(file.parent)] if file.name == "__init__.py" else None
        loader = _Loader(fullname, str(file), modules, modules.sources[source])
        return importlib.util.spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=within)


class _Loader(SourceFileLoader):
    """Runs a source as it was read. Compiled files are neither read nor written: they are told apart by the second."""

    def __init__(self, fullname: str, path: str, modules: Modules, source: bytes) -> None:
        super().__init__(fullname, path)
        self._modules, self._source = modules, source
        self.constants = ""

    def get_data(self, path: str) -> bytes:
        return self._source if path == self.path else super().get_data(path)

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self._source, self.path)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _importer(self._modules)}
        super().exec_module(module)
        held = {name: value for name, value in vars(module).items() if not name.startswith("__") and _is_plain(value)}
        self.constants = hashlib.sha256(_text(held).encode("utf-8", "surrogatepass")).hexdigest()


def _importer(modules: Modules) -> Callable[..., Any]:
    """``__import__`` as the modules of an application see it."""
    seen = seen_by(modules)

    def __import__(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and modules.has(name, fromlist or ()):
            found = builtins.__import__(f"{modules.package}.{name}", globals, locals, fromlist or (), 0)
            return found if fromlist else sys.modules[f"{modules.package}.{name.partition('.')[0]}"]
        found = builtins.__import__(name, globals, locals, fromlist or (), level)
        return found if level else seen.get(getattr(found, "__name__", ""), found)

    return __import__


# -- calls -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A function of an application's modules, which a worker imports anew: ``target`` is its ``module:object`` and
    ``function`` what that names here.
    """

    modules: Modules
    target: str
    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except FileNotFoundError as error:
            self._tell_missing(error)
            raise
        except Exception as error:
            place = self.modules.place(error)
            if place and len(error.args) == 1 and isinstance(error.args[0], str):
                error.args = (f"{self.modules.told(error.args[0])} ({place})",)
            raise

    def _tell_missing(self, error: FileNotFoundError) -> None:
        """A file of the application that is not on this machine, where the application itself is not either."""
        folder, name = Path(self.modules.folder), error.filename
        if isinstance(name, str | os.PathLike) and Path(name).is_relative_to(folder) and not folder.is_dir():
            error.strerror = (
                f"{error.strerror}, since {folder} is not on this machine ({platform.node()}): only the sources of"
                " modules are sent to Spark's workers. Read the file at the top of the module, into a constant, which"
                " travels with the function"
            )

    def __reduce__(self) -> Any:
        return _received, (self.modules, self.target, _constants(self.modules), self._by_value())

    def _by_value(self) -> bytes | None:
        from pyspark import cloudpickle

        root = sys.modules[self.modules.package]
        cloudpickle.register_pickle_by_value(root)
        try:
            return cloudpickle.dumps(self.function)
        except Exception:  # a lock, an open file: then it is imported or it fails
            return None


def _received(modules: Modules, target: str, constants: Mapping[str, str], by_value: bytes | None) -> Call:
    """A call in a worker. Its modules are imported there; where they cannot be (a data file or a library is only on the
    machine that sent them), or give other constants (an environment variable, a clock), the function comes as it was.
    """
    function: Any = None
    try:
        function = find(modules.load(target.partition(":")[0]), target)
        here = _constants(modules)
        same = all(here.get(name, digest) == digest for name, digest in constants.items())
    except Exception:
        if by_value is None:
            raise
        same = False
    if not same:
        if by_value is None:
            raise ImportError(
                f"{target} is another on this machine than where the query was started: constants of its modules"
                f" differ ({modules.folder}). They must depend on neither machine, environment nor time."
            )
        function = pickle.loads(by_value)
    return Call(modules, target, function)


def find(module: ModuleType, target: str) -> Callable[..., Any]:
    """The function that ``module:object`` names in its module, undecorated."""
    found: Any = module
    for name in target.partition(":")[2].split("."):
        found = getattr(found, name)
    return getattr(found, "call", found)


def sent(code: Any, modules: Modules, target: str) -> Any:
    """A decorated object whose function travels as ``Call``."""
    return replace(code, call=Call(modules, target, code.call))


def _constants(modules: Modules) -> dict[str, str]:
    """What the plain values in the loaded modules were when these had been imported, by module."""
    start = f"{modules.package}."
    loaded = {name: module.__spec__ for name, module in list(sys.modules.items()) if name.startswith(start)}
    loaders = {name: spec.loader for name, spec in loaded.items() if spec is not None}
    return {name: loader.constants for name, loader in loaders.items() if isinstance(loader, _Loader)}


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(_is_plain(k) and _is_plain(v) for k, v in value.items())
    return value is None or type(value) in (bool, int, float, str, bytes)


def _text(value: Any) -> str:
    """A plain value as a text; a set's elements have no order."""
    if type(value) is dict:
        return "{" + ", ".join(f"{_text(k)}: {_text(v)}" for k, v in value.items()) + "}"
    if type(value) in (set, frozenset):
        return f"{type(value).__name__}({sorted(map(_text, value))})"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(map(_text, value))})"
    return repr(value)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def _place(modules: Modules, frame: traceback.FrameSummary) -> str:
    path = Path(frame.filename)
    inside = path.is_relative_to(modules.folder) and path.relative_to(modules.folder).as_posix() in modules.sources
    return f"{path.relative_to(modules.folder).as_posix()}, line {frame.lineno}" if inside else ""
