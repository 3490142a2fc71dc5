"""The Python code that CREATE FUNCTION, AGGREGATE and WINDOW name: found for planning, registered for a slice.

Modules are looked for beside the ``.cql`` files first. They are sent to Spark's workers by value, so a worker need not
have them on its own path.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sweeparea.cql import user_functions
from sweeparea.cql.errors import BindError, Place
from sweeparea.heartbeats.user_policy import PolicyVersion
from sweeparea.operators import user
from sweeparea.operators.logical import UserFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sweeparea.cql.statements import CreateFunction


def registered(declared: Iterable[CreateFunction], folder: str | Path | None) -> tuple[UserFunction, ...]:
    """What the declarations name, imported and checked. BindError with the statement's place where one is no good."""
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return tuple(user_functions.register(statement) for statement in declared)


def policy(target: str, folder: str | Path | None, place: Place | None) -> Callable[[PolicyVersion], int | None]:
    """The function that ``HEARTBEAT POLICY 'module:object'`` names, imported. BindError with the clause's place where
    there is none.
    """
    what = f"HEARTBEAT POLICY {target!r}"
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", target):
        raise BindError(f"{what} names no Python object", place, "Write HEARTBEAT POLICY 'module:function'")
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = user.find(target)
    except user.UserCodeError as error:
        raise BindError(f"{what}: {error}", place) from error
    if not callable(found) or isinstance(found, user.UserCode):
        raise BindError(
            f"{what} names {found!r}, which is no function of a version",
            place,
            "Write def policy(version): and return a tick, or None; docs/streams.md has an example",
        )
    return cast("Callable[[PolicyVersion], int | None]", found)


def policy_fingerprint(target: str, folder: str | Path | None) -> str:
    """``source_fingerprint`` of a heartbeat's policy, looked for in the application's ``folder`` first."""
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return source_fingerprint(target)


def source_fingerprint(target: str) -> str:
    """The identity of the Python source behind ``module:object``: its module and those that this imports from beside
    it, so that a change of any of them shows. Comments and layout do not count. Empty where there is no source.
    """
    digest = hashlib.sha256()
    sources = _sources(target.partition(":")[0])
    for name in sorted(sources):
        digest.update(f"{name}\0".encode())
        for token in sources[name]:
            digest.update(f"{token}\0".encode())
    return digest.hexdigest()[:12] if sources else ""


def _sources(module: str) -> dict[str, list[str]]:
    """The tokens of a module and of all that it imports from its own folder or package, by module name."""
    found: dict[str, list[str]] = {}
    pending, root = [module], None
    while pending:
        name = pending.pop()
        path = _source_file(name)
        if path is None or name in found:
            continue
        # the folder in which Python found the top-level name
        own = path.parents[name.count(".") + (path.name == "__init__.py")]
        root = root or own
        if own != root:
            continue
        text = path.read_bytes()
        try:
            found[name] = list(_tokens(text))
            pending += _imported(ast.parse(text), name, path.name == "__init__.py")
        except (SyntaxError, tokenize.TokenError, ValueError):
            found[name] = [text.decode("utf-8", "replace")]
    return found


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


def _imported(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            try:
                base = importlib.util.resolve_name(name, package) if node.level else name
            except ImportError:
                continue
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def register(spark: SparkSession, functions: Iterable[UserFunction]) -> None:
    """Makes a plan's scalar functions known to a session under their names, and all its modules to the workers."""
    from pyspark import cloudpickle
    from pyspark.sql.functions import arrow_udf

    for function in functions:
        module = importlib.import_module(function.target.partition(":")[0])
        cloudpickle.register_pickle_by_value(module)
        if function.kind == "function":
            call: Any = user.load(function.target, "function").call
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
