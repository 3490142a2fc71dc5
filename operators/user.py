"""The Python side of user-defined functions, aggregates and windows.

A decorated object says what it is and which Spark type it gives; ``CREATE FUNCTION | AGGREGATE | WINDOW name AS
'module:object'`` registers it. All three work on Arrow columns, and all must be functions of their arguments alone: no
clock, no random number, no state between calls, for a slice may be computed again.

A *function* gets one array for each argument, of equal lengths, and gives one array as long:

>>> import pyarrow as pa
>>> import pyarrow.compute as pc
>>> @function(returns="double")
... def celsius(fahrenheit):
...     return pc.divide(pc.subtract(fahrenheit, 32.0), 1.8)
>>> celsius(pa.array([212.0, None])).to_pylist()
[100.0, None]

An *aggregate* gets the values of one group at one instant, one array for each argument, and gives a single value. The
rows are in the total order of the arguments, so that the answer is a function of the bag:

>>> @aggregate(returns="double")
... def spread(values):
...     bounds = pc.min_max(values)
...     return pc.subtract(bounds["max"], bounds["min"])
>>> spread(pa.array([3.0, 1.0, None])).as_py()
2.0

With ``state`` it is kept up to date: a class whose objects hold what the value is made of. ``add`` and ``remove`` take
the arguments of one row as Python values, ``merge`` another object of the class, whose rows come to its own, and
``value`` gives the value. It must be that of the function for all rows and in every order, bit for bit, so sums of
doubles must be exact (``fractions.Fraction``); planning a query tries it on random rows:

>>> class Running:
...     def __init__(self):
...         self.total = 0
...     def add(self, value):
...         self.total += value or 0
...     def remove(self, value):
...         self.total -= value or 0
...     def merge(self, other):
...         self.total += other.total
...     def value(self):
...         return self.total
>>> @aggregate(returns="bigint", state=Running)
... def total(values):
...     return pc.fill_null(pc.sum(values), 0)
>>> total(pa.array([3, 4])).as_py(), total.state is Running
(7, True)

A *window* gets the instants of elements in ticks, then its arguments' values, and gives two arrays of ticks, from when
until when each element is valid (``operators/windows/user_window.py``). ``pattern`` is monotonic, WKS, WK or STR
(Golab & Oezsu 2005, section 3.1):

>>> @window(pattern="WK")
... def hold_for(instants, lengths):
...     return instants, pc.add(instants, lengths)
>>> print(hold_for.kind, hold_for.type)
window WK
"""

from __future__ import annotations

import importlib
import re
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators.plan.plan import UserFunction, UserKind
from sweeparea.operators.user_code import user_modules
from sweeparea.operators.user_code.user_modules import Modules
from sweeparea.operators.user_code.user_state import METHODS, UserState, WithState

PATTERNS = ("monotonic", "WKS", "WK", "STR")
"""The update patterns that a window may declare."""

_SIMPLE = frozenset(
    [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    ]
)
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_NAME = re.compile(r"[A-Za-z_]\w*")


class UserCodeError(SweepAreaError):
    """A registered object cannot be had, or is not what its declaration says."""

    type = "BindError"
    exit_code = 2


@dataclass(frozen=True)
class UserCode:
    """A decorated Python function: ``type`` is the Spark type that it gives (of
    a window: its pattern). Calling it calls the function.
    """

    kind: UserKind
    type: str
    call: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    @property
    def state(self) -> type[UserState] | None:
        """The class that keeps an aggregate's value up to date, if there is one."""
        call = self.call.function if isinstance(self.call, user_modules.Call) else self.call
        return call.state if isinstance(call, WithState) else None


def function(*, returns: str) -> Callable[[Callable[..., Any]], UserCode]:
    """Marks a function over columns; ``returns`` is a Spark type such as ``double`` or ``array<int>``."""
    return _decorator(UserKind.FUNCTION, "returns", returns)


def aggregate(*, returns: str, state: type | None = None) -> Callable[[Callable[..., Any]], UserCode]:
    """Marks a function from the columns of a group to one value; ``returns`` is its Spark type, ``state`` a class that
    keeps the value up to date, row by row.
    """
    decorate = _decorator(UserKind.AGGREGATE, "returns", returns)
    if state is None:
        return decorate
    missing = [name for name in METHODS if not callable(getattr(state, name, None))]
    if missing or not isinstance(state, type):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's code
        lacks = (
            f"{getattr(state, '__name__', state)!s} has no {', '.join(missing)}" if missing else f"{state!r} is none"
        )
        raise UserCodeError(f"@aggregate wants state as a class with {', '.join(METHODS)}; {lacks}.")

    def with_state(call: Callable[..., Any]) -> UserCode:
        code = decorate(call)
        return replace(code, call=WithState(code.call, state))

    return with_state


def window(*, pattern: str) -> Callable[[Callable[..., Any]], UserCode]:
    """Marks a function from instants to intervals; ``pattern`` is one of ``PATTERNS``."""
    return _decorator(UserKind.WINDOW, "pattern", pattern)


def _decorator(kind: UserKind, word: str, type_: str) -> Callable[[Callable[..., Any]], UserCode]:
    def decorate(call: Callable[..., Any]) -> UserCode:
        if isinstance(call, UserCode) or not callable(call):
            raise UserCodeError(f"@{kind} marks a function, once; it stands above {call!r}.")
        return UserCode(kind, type_.strip() if kind == UserKind.WINDOW else type_.strip().lower(), call)

    if not isinstance(type_, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's code
        raise UserCodeError(f'@{kind} wants {word} as a text, such as @{kind}({word}="double").')
    return decorate


def load(target: str, kind: UserKind, modules: Modules | None = None) -> UserCode:
    """What ``module:object`` names, among an application's ``modules`` first. UserCodeError says what is missing: the
    module, the object in it, the decorator; or which declaration is wrong.
    """
    code = _checked(find(target, modules), target, kind)
    own = modules is not None and modules.has(target.partition(":")[0])
    return user_modules.sent(code, modules, target) if modules is not None and own else code


def loaded(function: UserFunction) -> UserCode:
    """The code of a registered function, aggregate or window, of the application that registered it."""
    return load(function.target, function.kind, function.modules)


class UnheldValueError(Exception):
    """A value of a type that no table holds."""


def difference(function: UserFunction, types: Sequence[str]) -> str | None:
    """Where an aggregate's state gives another value than its function over arguments of these Spark types, in words;
    None: nowhere. DataError where one of them fails, UnheldValueError for types that no table holds.
    """
    from sweeparea.operators.user_code.state_trial import difference
    from sweeparea.operators.user_code.user_aggregate import UserAggregate
    from sweeparea.tables.log.schema import arrow_type

    try:
        arrow = [arrow_type(t) for t in types]
    except SweepAreaError as error:
        raise UnheldValueError(str(error)) from error
    return difference(UserAggregate(function.name, loaded(function), arrow_type(function.type)), arrow)


def find(target: str, modules: Modules | None = None) -> Any:
    """The Python object that ``module:object`` names, decorated or not. UserCodeError says what is missing."""
    module_name, _, path = target.partition(":")
    own = modules if modules is not None and modules.has(module_name) else None
    try:
        found: Any = importlib.import_module(module_name) if own is None else own.load(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        missing = missing if own is None else own.told(missing)
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise UserCodeError(
                f"There is no Python module {missing}. Put it beside the .cql files, or into another of the folders "
                f"that are searched: {', '.join(_searched(modules))}. PYTHONPATH adds others."
            ) from None
        raise UserCodeError(
            f"Module {module_name} imports {missing}, which is not installed{_place(own, error)}."
        ) from None
    except Exception as error:
        told = str(error) if own is None else own.told(str(error))
        raise UserCodeError(
            f"Importing module {module_name} failed: {type(error).__name__}: {told}{_place(own, error)}."
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            known = sorted(n for n, value in getattr(found, "__dict__", {}).items() if isinstance(value, UserCode))
            hint = f" It has {', '.join(known)}." if known else ""
            raise UserCodeError(f"{target} names nothing: {_named(found, module_name, own)} has no {name}.{hint}")
        found = getattr(found, name)
    return found


def _place(modules: Modules | None, error: Exception) -> str:
    place = "" if modules is None else modules.place(error)
    return f" ({place})" if place else ""


def _searched(modules: Modules | None) -> list[str]:
    """The folders in which modules are looked for, in order, without Python's own library and what Spark unpacks for
    its workers.
    """
    own = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    left_out = ("lib-dynload", "userFiles-")
    found = [str(f) for f in folders if f.is_dir() and str(f) not in own and not f.name.startswith(left_out)]
    return list(dict.fromkeys([*([] if modules is None else [modules.folder]), *found]))


def _named(found: Any, module: str, modules: Modules | None) -> str:
    name = str(getattr(found, "__name__", found))
    name = name if modules is None else modules.told(name)
    return f"module {module}" if name == module else name


def _checked(found: Any, target: str, kind: UserKind) -> UserCode:
    argument = 'pattern="WK"' if kind == UserKind.WINDOW else 'returns="double"'
    if not isinstance(found, UserCode):
        raise UserCodeError(
            f"{target} is not decorated: write @{kind}({argument}) above it (from sweeparea.operators.user import "
            f"{kind})."
        )
    if found.kind != kind:
        raise UserCodeError(
            f"{target} is decorated as {'an' if found.kind == UserKind.AGGREGATE else 'a'} {found.kind}. Write CREATE "
            f"{found.kind.upper()}, or @{kind}({argument}) above it."
        )
    if kind == UserKind.WINDOW and found.type not in PATTERNS:
        raise UserCodeError(f"{target} declares the pattern {found.type!r}; patterns are {', '.join(PATTERNS)}.")
    if kind != UserKind.WINDOW and not is_type(found.type):
        raise UserCodeError(
            f"{target} declares that it returns {found.type!r}, which is no Spark type. Types are such as bigint, "
            "double, string, timestamp, decimal(10,2), array<int>, struct<a:int,b:string>."
        )
    return found


def is_type(text: str) -> bool:
    """Whether a text is a Spark type that results may have.

    >>> is_type("array<struct<a:int,b:decimal(10,2)>>"), is_type("int64"), is_type("decimal(40,2)")
    (True, False, False)
    """
    text = text.strip()
    if text in _SIMPLE:
        return True
    if match := _DECIMAL.fullmatch(text):
        return 0 < int(match[1]) <= 38 and int(match[2]) <= int(match[1])
    head, _, rest = text.partition("<")
    if not rest.endswith(">"):
        return False
    parts = _parts(rest[:-1])
    if head == "array":
        return len(parts) == 1 and is_type(parts[0])
    if head == "map":
        return len(parts) == 2 and all(is_type(p) for p in parts)
    if head == "struct":
        fields = [p.partition(":") for p in parts]
        return all(_NAME.fullmatch(name.strip()) is not None and is_type(type_) for name, _, type_ in fields)
    return False


def _parts(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]
