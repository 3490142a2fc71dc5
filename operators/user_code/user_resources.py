"""Data files beside an application's modules, and the modules of Python's own that find modules by their names, as the
application sees them: ``importlib``, ``importlib.resources``, ``importlib.util`` and ``pkgutil`` know its packages.

An application's modules have other names in this process (``operators/user_code/user_modules.py``), so ``files("pkg")``
would find nothing, or a package of somebody else. Files are read where the application lies when they are asked for;
they do not travel to Spark's workers.
"""

from __future__ import annotations

import functools
import importlib
import importlib.resources
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.resources.abc import TraversableResources
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

_RESOURCES = (
    "contents",
    "files",
    "is_resource",
    "open_binary",
    "open_text",
    "path",
    "read_binary",
    "read_text",
)


class Packages(Protocol):
    """What is asked of an application's modules (``user_modules.Modules``)."""

    @property
    def folder(self) -> str: ...

    package: Any  # a cached property, the text

    def has(self, name: str) -> bool: ...

    def load(self, name: str) -> ModuleType: ...

    def offer(self) -> None: ...

    def data_folder(self, name: str) -> Path | None: ...


class Folder(Loader):
    """Loads a folder without a source of its own as a package that is empty but for the files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        pass

    def is_package(self, fullname: str) -> bool:
        return True

    def get_resource_reader(self, fullname: str) -> _Files:
        return _Files(self.path)

    def spec(self, fullname: str) -> ModuleSpec:
        """What the folder is found as."""
        spec = ModuleSpec(fullname, self, is_package=True)
        spec.submodule_search_locations = [str(self.path)]
        return spec


class _Files(TraversableResources):
    def __init__(self, path: Path) -> None:
        self._path = path

    def files(self) -> Path:
        return self._path


class _Seen(ModuleType):
    """A module of Python's own with some of its names exchanged for others."""

    def __init__(self, modules: Packages, of: ModuleType, exchanged: Mapping[str, Any]) -> None:
        super().__init__(of.__name__, of.__doc__)
        self.__dict__.update(exchanged)
        self._modules, self._of = modules, of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def __reduce__(self) -> Any:
        return _again, (self._modules, self._of.__name__)


def _again(modules: Packages, name: str) -> ModuleType:
    return seen_by(modules)[name]


def seen_by(modules: Packages) -> Mapping[str, ModuleType]:
    """Python's own modules as the modules of an application see them, by name."""
    resources = _Seen(
        modules,
        importlib.resources,
        {
            name: functools.partial(_with_package, modules, getattr(importlib.resources, name))
            for name in _RESOURCES
            if hasattr(importlib.resources, name)
        },
    )
    util = _Seen(modules, importlib.util, {"find_spec": functools.partial(_find_spec, modules)})
    top = {"import_module": functools.partial(_import_module, modules), "resources": resources, "util": util}
    get_data = functools.partial(_get_data, modules)
    found = (_Seen(modules, importlib, top), resources, util, _Seen(modules, pkgutil, {"get_data": get_data}))
    return {module.__name__: module for module in found}


def _import_module(modules: Packages, name: str, package: str | None = None) -> ModuleType:
    if not name.startswith("."):
        return modules.load(name) if modules.has(name) else importlib.import_module(name)
    return importlib.import_module(name, _named(modules, package))


def _find_spec(modules: Packages, name: str, package: str | None = None) -> ModuleSpec | None:
    if not name.startswith("."):
        return importlib.util.find_spec(_named(modules, name))
    return importlib.util.find_spec(name, _named(modules, package))


def _get_data(modules: Packages, package: str, resource: str) -> bytes | None:
    return pkgutil.get_data(_named(modules, package), resource)


def _named(modules: Packages, name: Any) -> Any:
    """The name in this process of a module of the application; others as they are."""
    if isinstance(name, str) and name and modules.has(name):
        modules.offer()
        return f"{modules.package}.{name}"
    return name


def _with_package(modules: Packages, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Calls a function of ``importlib.resources`` with the application's package instead of its name."""
    key = next((key for key in ("anchor", "package") if key in named), None)
    if key is not None:
        named = {**named, key: _package(modules, named[key])}
    elif arguments:
        arguments = (_package(modules, arguments[0]), *arguments[1:])
    else:  # files() of the caller's own package
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - Python has no other name for it
        arguments = (_package(modules, caller.f_globals.get("__package__")),)
    return function(*arguments, **named)


def _package(modules: Packages, package: Any) -> Any:
    if not isinstance(package, str):
        return package
    name = package.removeprefix(f"{modules.package}.")
    if modules.has(name):
        return modules.load(name)
    folder = Path(modules.folder) if package == modules.package else modules.data_folder(name)
    if folder is None:
        return package
    return importlib.util.module_from_spec(Folder(folder).spec(f"{modules.package}.{name}"))
