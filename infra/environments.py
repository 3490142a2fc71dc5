"""Environments: one folder of ``.cql`` files run several times over, each time with other data and other settings.

``sweeparea.toml`` in the application's folder says which there are::

    default = "dev"                 # optional: what is meant where nobody says
    share_subplans = true           # optional: for all environments, or in the table of one
    scheduled = false               # optional: no DAGs, unless SWEEPAREA_APPS names the application

    [dev]
    data = "../../.data/shop-dev"   # the data folder, relative to this file, or an address: s3://bucket/shop

    [dev.sources]
    sales = "/samples/sales"        # instead of the FROM of stream or relation sales

    [dev.settings]
    "slice.max_rows" = 1000         # stands in for SET of the files

    [prod]
    data = "/lake/shop"

An environment is chosen by ``--env``, by ``app@env`` where an application is named, or by ``SWEEPAREA_ENV``.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweeparea.infra import locations, settings, storage
from sweeparea.infra.errors import SweepAreaError

FILE = "sweeparea.toml"
VARIABLE = "SWEEPAREA_ENV"
KEYS = ("data", "sources", "settings", "share_subplans", "storage")
SHARE = "share_subplans"
SCHEDULED = "scheduled"
OUTSIDE = ("default", SHARE, SCHEDULED)
"""What stands before the tables of environments."""


class EnvironmentFault(SweepAreaError):
    """An environment that there is not, or a ``sweeparea.toml`` that cannot be read."""

    type = "BindError"
    exit_code = 2


@dataclass(frozen=True)
class Environment:
    """``data`` is the data folder, None for the application's usual one; ``sources`` the paths of streams and
    relations that are exchanged, by name; ``settings`` as SET gives them; ``share_subplans`` whether queries that are
    registered compute common subplans once; ``storage`` options of object stores (``storage.py``). ``name`` is empty
    where there are none.
    """

    name: str = ""
    data: locations.Folder | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    share_subplans: bool = False
    storage: Mapping[str, str] = field(default_factory=dict)


def split_name(application: str) -> tuple[str, str | None]:
    """``shop@dev`` as (``shop``, ``dev``); any other name has no environment."""
    name, at, env = application.rpartition("@")
    return (name, env) if at and name and env else (application, None)


def located(application: str) -> tuple[Path, str | None]:
    """The folder of an application and the environment that is named with it: the name of one under ``queries/`` or a
    path, each perhaps with ``@env``.
    """
    if "/" in application and Path(application).expanduser().is_dir():
        return Path(application).expanduser(), None
    name, env = split_name(application)
    return Path(name).expanduser() if "/" in name else settings.application(name), env


def default_data(folder: Path) -> Path:
    """The data folder of an application: ``.data/<name>`` for those under ``queries/``, else ``.data`` in its own
    folder.

    Two folders of one name in different places must not share tables.
    """
    installed = folder.parent == settings.applications_folder().resolve()
    return settings.data(folder.name) if installed else folder / ".data"


def chosen(folder: Path, env: str | None = None) -> Environment:
    """The environment of an application's folder: ``env``, else SWEEPAREA_ENV, else the file's default.

    EnvironmentFault for a name that there is not, and where there are several and none is chosen: a run in the wrong
    one would be worse than none.
    """
    wanted, by = (env, "") if env else (os.environ.get(VARIABLE, "").strip() or None, f" ({VARIABLE})")
    path = folder / FILE
    if not path.is_file():
        if wanted is None:
            return Environment()
        raise EnvironmentFault(
            f"The environment {wanted}{by} is asked for, but {folder} has no {FILE}. Write one with a table [{wanted}],"
            f" or run without an environment."
        )
    text = _read(path)
    known = {name: value for name, value in text.items() if name not in OUTSIDE}
    share = _share(text, path)
    scheduled(folder)  # what is wrong with it is told here too
    default = text.get("default")
    if default is not None and default not in known:
        raise EnvironmentFault(f"{path}: default = {default!r} is no environment of this file.{_near(default, known)}")
    wanted = wanted or default
    if wanted is None and not known:
        return Environment(file=path, share_subplans=share)
    if wanted is None:
        names = ", ".join(known)
        raise EnvironmentFault(
            f"{path} has the environments {names or '(none)'}, but none is chosen. Say --env NAME, set {VARIABLE}, or"
            ' write default = "NAME" at the beginning of the file.'
        )
    if wanted not in known:
        raise EnvironmentFault(f"There is no environment {wanted}{by} in {path}.{_near(wanted, known)}")
    environments = {name: _environment(name, value, path, share) for name, value in known.items()}
    _apart(environments, path)
    return environments[wanted]


def names(folder: Path) -> list[str]:
    """The environments of an application's folder, in the order of its file."""
    path = folder / FILE
    return [name for name in _read(path) if name not in OUTSIDE] if path.is_file() else []


def scheduled(folder: Path) -> bool:
    """Whether an application becomes DAGs where nobody names it. EnvironmentFault as of ``chosen``."""
    path = folder / FILE
    value = _read(path).get(SCHEDULED, True) if path.is_file() else True
    if not isinstance(value, bool):
        raise EnvironmentFault(f"{path}: {SCHEDULED} is true or false, not {value!r}.")
    return value


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentFault(f"{path} cannot be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise EnvironmentFault(f"{path} is no TOML: {error}.") from None


def _environment(name: str, value: Any, path: Path, share: bool) -> Environment:
    if not isinstance(value, dict):
        raise EnvironmentFault(f"{path}: {name} is no environment. Write a table: [{name}], with {', '.join(KEYS)}.")
    if not name.replace("-", "_").isidentifier():
        raise EnvironmentFault(f"{path}: the environment {name!r} cannot be named so: letters, digits, _ and - only.")
    for key in value:
        if key not in KEYS:
            raise EnvironmentFault(f"{path}: [{name}] has no key {key}.{_near(key, KEYS)}")
    data = value.get("data")
    if data is not None and not isinstance(data, str):
        raise EnvironmentFault(f"{path}: [{name}] data is a folder, so write it in quotes.")
    tables: dict[str, dict[str, str]] = {}
    for key in ("sources", "settings", "storage"):
        table = value.get(key, {})
        if not isinstance(table, dict):
            raise EnvironmentFault(f'{path}: [{name}] {key} is a table: write [{name}.{key}] and name = "value".')
        for entry, given in table.items():
            if isinstance(given, dict | list) or (key == "sources" and not isinstance(given, str)):
                what = "a path in quotes" if key == "sources" else "one value"
                dotted = f"{entry}.{next(iter(given))}" if isinstance(given, dict) and given else ""
                hint = f' (a name with dots needs quotes: "{dotted}")' if dotted else ""
                raise EnvironmentFault(f"{path}: [{name}.{key}] {entry} must be {what}{hint}.")
            if key == "storage" and entry not in storage.OPTIONS:
                raise EnvironmentFault(
                    f"{path}: [{name}.storage] has no option {entry}.{_near(entry, storage.OPTIONS)} Keys and other"
                    " secrets are taken from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY."
                )
        tables[key] = {entry: _text(given) for entry, given in table.items()}
    where = None if data is None else locations.folder(data, path.parent)
    shares = _share({SHARE: share, **value}, path)
    return Environment(name, where, tables["sources"], tables["settings"], path, shares, tables["storage"])


def _share(table: Mapping[str, Any], path: Path) -> bool:
    """The value of ``share_subplans`` in a table; false where it is not there."""
    value = table.get(SHARE, False)
    if not isinstance(value, bool):
        raise EnvironmentFault(f"{path}: {SHARE} is true or false, not {value!r}.")
    return value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _apart(environments: Mapping[str, Environment], path: Path) -> None:
    """Refuses two environments over one data folder: each would go on where the other stopped."""
    seen: dict[locations.Folder | None, str] = {}
    for name, environment in environments.items():
        before = seen.setdefault(environment.data, name)
        if before != name:
            where = environment.data or "the application's usual one (no data given)"
            raise EnvironmentFault(
                f"{path}: the environments {before} and {name} have the same data folder, {where}. Give each its own."
            )


def _near(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(str(name).lower(), known, 1, 0.6)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{hint} There are: {', '.join(known) or 'none'}."
