"""The Python code that CREATE FUNCTION, AGGREGATE and WINDOW name: found for planning, registered for a slice.

Modules are looked for beside the ``.cql`` files first, and are the application's own
(``operators/user_code/user_modules.py``). Spark's workers are sent their sources, so a worker need not have them on its
own path; other modules by value.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sweeparea.cql.functions import user_functions
from sweeparea.cql.text.errors import BindError, Place
from sweeparea.heartbeats.user_policy import PolicyVersion
from sweeparea.operators import user
from sweeparea.operators.plan.plan import UserFunction, UserKind
from sweeparea.operators.user_code.user_modules import Modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.cql.syntax.statements import CreateFunction


def registered(declared: Iterable[CreateFunction], modules: Modules | None) -> tuple[UserFunction, ...]:
    """What the declarations name, imported and checked. BindError with the statement's place where one is no good."""
    return tuple(user_functions.register(statement, modules) for statement in declared)


def policy(target: str, modules: Modules | None, place: Place | None) -> Callable[[PolicyVersion], int | None]:
    """The function that ``HEARTBEAT POLICY 'module:object'`` names, imported. BindError with the clause's place where
    there is none.
    """
    what = f"HEARTBEAT POLICY {target!r}"
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", target):
        raise BindError(f"{what} names no Python object", place, "Write HEARTBEAT POLICY 'module:function'")
    try:
        found = user.find(target, modules)
    except user.UserCodeError as error:
        raise BindError(f"{what}: {error}", place) from error
    if not callable(found) or isinstance(found, user.UserCode):
        raise BindError(
            f"{what} names {found!r}, which is no function of a version",
            place,
            "Write def policy(version): and return a tick, or None; docs/streams.md has an example",
        )
    return cast("Callable[[PolicyVersion], int | None]", found)


def source_fingerprint(target: str, modules: Modules | None = None) -> str:
    """The identity of the Python source behind ``module:object``: its module and those that this imports from beside
    it, so that a change of any of them shows. Comments and layout do not count, nor does SweepArea itself where both
    lie in one folder: its changes are none of the user's code. Empty where there is no source.
    It is looked for among the application's ``modules`` first.
    """
    digest = hashlib.sha256()
    module = target.partition(":")[0]
    own = modules is not None and modules.has(module)
    sources = _sources(module, modules if own else None)
    for name in sorted(sources):
        digest.update(f"{name}\0".encode())
        for token in sources[name]:
            digest.update(f"{token}\0".encode())
    return digest.hexdigest()[:12] if sources else ""


def _sources(module: str, modules: Modules | None) -> dict[str, list[str]]:
    """The tokens of a module and of all that it imports from its own folder or package, by module name."""
    found: dict[str, list[str]] = {}
    pending, root = [module], None
    within = "" if modules is None else modules.package
    while pending:
        name = pending.pop()
        path = _source_file(name) if modules is None else _own_file(name, modules)
        if path is None or name in found:
            continue
        # the folder in which Python found the top-level name
        own = path.parents[name.count(".") + (path.name == "__init__.py")]
        root = root or own
        if own != root or name.partition(".")[0] == "sweeparea":
            continue
        text = path.read_bytes() if modules is None else modules.sources[path.as_posix()]
        try:
            found[name] = list(_tokens(text))
            pending += _imported(ast.parse(text), name, path.name == "__init__.py", within)
        except (SyntaxError, tokenize.TokenError, ValueError):
            found[name] = [text.decode("utf-8", "replace")]
    return found


def _own_file(name: str, modules: Modules) -> Path | None:
    path = modules.path(name) if modules.has(name) else None
    return Path(path) if path else None


def _source_file(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    path = Path(spec.origin) if spec is not None and spec.origin else None
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _tokens(text: bytes) -> Iterator[str]:
    left_out = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING)
    marks = {tokenize.NEWLINE: "newline", tokenize.INDENT: "indent", tokenize.DEDENT: "dedent"}
    for token in tokenize.tokenize(io.BytesIO(text).readline):
        if token.type not in left_out:
            yield marks.get(token.type, token.string)


def _imported(tree: ast.Module, module: str, is_package: bool, root: str) -> Iterator[str]:
    """The names that a module imports; ``root`` is the package that holds an application's modules, "" elsewhere."""
    package = ".".join(filter(None, (root, module if is_package else module.rpartition(".")[0])))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            try:
                base = importlib.util.resolve_name(name, package) if node.level else name
            except ImportError:
                continue
            yield from (each.removeprefix(f"{root}.") for each in (base, *(f"{base}.{a.name}" for a in node.names)))


def register(spark: SparkSession, functions: Iterable[UserFunction]) -> None:
    """Makes a plan's scalar functions known to a session under their names. Modules that are not an application's own
    travel by value.
    """
    from pyspark import cloudpickle
    from pyspark.sql.functions import arrow_udf

    for function in functions:
        module = function.target.partition(":")[0]
        if function.modules is None or not function.modules.has(module):
            cloudpickle.register_pickle_by_value(importlib.import_module(module))
        if function.kind == UserKind.FUNCTION:
            call: Any = user.loaded(function).call
            made: Any = arrow_udf(_variadic(call), function.type)  # pyright: ignore
            spark.udf.register(function.name, made)


def _variadic(call: Any) -> Any:
    """``call`` as Spark wants it: annotated as a function from Arrow arrays to an Arrow array."""
    import pyarrow as pa

    def columns(*arguments: pa.Array) -> pa.Array:
        made = call(*arguments)
        return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made

    columns.__annotations__ = {"arguments": pa.Array, "return": pa.Array}
    return columns
