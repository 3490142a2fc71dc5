"""User-defined functions in texts: CREATE FUNCTION | AGGREGATE | WINDOW to what the binder knows, and their calls.

The names are the application's own, so none may be one of Spark's: a query would read as something else than it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from sqlglot import exp

from sweeparea.cql.functions import functions
from sweeparea.cql.syntax.dialect.streams import TO_STREAM
from sweeparea.cql.syntax.statements import CreateFunction
from sweeparea.cql.text.errors import BindError, Place
from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import user
from sweeparea.operators.plan.plan import UserFunction, UserKind
from sweeparea.operators.user_code.user_modules import Modules

_WINDOWS = frozenset(
    [
        "NOW",
        "RANGE",
        "ROWS",
        "TUMBLING",
        "HOPPING",
        "FIXED",
        "SESSION",
        "FROM",
        "UNTIL",
        "PARTITION",
        "SLIDE",
        "UNBOUNDED",
    ]
)
"""Words that begin a window of the language."""


def register(statement: CreateFunction, modules: Modules | None = None) -> UserFunction:
    """What a CREATE statement registers; the Python object is loaded, from the application's ``modules`` or from where
    Python finds it, so that it is known to be there.

    BindError: the name is taken, or the object is missing, undecorated or wrongly declared.
    """
    check_name(statement.name, statement.kind, statement.place)
    try:
        code = user.load(statement.target, statement.kind, modules)
    except user.UserCodeError as error:
        raise BindError(f"{statement.kind} {statement.name}: {error}", statement.place) from error
    return UserFunction(statement.name, statement.kind, statement.target, code.type, modules, code.state is not None)


def check_name(name: str, kind: UserKind, place: Place) -> None:
    """BindError if a user's function cannot have a name."""
    word = name.upper()
    if kind == UserKind.WINDOW:
        if word in _WINDOWS:
            raise BindError(f"window {name} has the name of a window of the language", place, "Name it otherwise")
        return
    taken = word.lower() in functions.spark_functions() or word in functions.WINDOW_BOUNDS or word in TO_STREAM
    if taken or word == "CURRENT_INSTANT":
        owner = "the language" if word in (*functions.WINDOW_BOUNDS, *TO_STREAM, "CURRENT_INSTANT") else "Spark"
        raise BindError(f"{kind} {name} has the name of a function of {owner}", place, "Name it otherwise")


def is_running(function: UserFunction, types: Sequence[str | None], place: Place | None) -> bool:
    """Whether an aggregate's state keeps it up to date over arguments of these types: it has one, and the types are
    known. BindError where a trial on random rows finds that it gives other values than the function.
    """
    if not function.running or None in types:
        return False
    package = "" if function.modules is None else function.modules.package
    try:
        told = _difference(function, package, tuple(t for t in types if t is not None))
    except user.UnheldValueError:
        return False
    except SweepAreaError as error:
        raise BindError(f"aggregate {function.name}: {error}", place, _REMEDY) from error
    if told is not None:
        raise BindError(f"aggregate {function.name} is not what its state keeps: {told}", place, _REMEDY)
    return True


_REMEDY = "Mend add, remove, merge and value, which must give the function's value bit for bit, or leave state out"


@lru_cache(maxsize=256)
def _difference(function: UserFunction, package: str, types: tuple[str, ...]) -> str | None:
    """``package``: what tells the versions of an application's modules apart."""
    return user.difference(function, types)


def mark(tree: exp.Expr, known: Mapping[str, UserFunction]) -> None:
    """Note at each call in a tree which user's function it means (``meta["user"]``); ``known`` by lower-case names."""
    if not known:
        return
    for node in tree.find_all(exp.Anonymous):
        found = known.get(node.name.lower())
        if found is not None and found.kind != UserKind.WINDOW:
            node.meta["user"] = found


def used(tree: exp.Expr) -> dict[str, UserFunction]:
    """The functions and aggregates among ``mark``'s that have been bound."""
    bound = [n.meta["user"] for n in tree.find_all(exp.Anonymous) if n.meta.get("user") and n.meta.get("bound")]
    return {f.name.lower(): f for f in bound}
