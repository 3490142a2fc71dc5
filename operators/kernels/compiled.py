"""numba's ``njit`` with a place for what it has compiled, whoever runs it.

numba keeps compiled functions beside their source, or in the user's home, and refuses to be imported where neither can
be written: a user without a home runs what somebody else has installed. There they are kept in a private folder among
the temporary files, and where there is none either, they are compiled by each process again.

Machine code holds what a function calls. numba looks whether the file of the function itself has changed, not those of
the functions it calls: after an update of one of them the old code would go on giving the old answers. So what is
kept belongs to the text of all kernels.

Machine code brings along what it calls of numba's own, such as the sort behind ``np.unique`` and the other one behind
``np.argsort``. These have one name, but for a number that numba counts up from 1 in each process: of two processes'
sorts with the same number, whichever is loaded first would run in place of the other. So the numbers begin anywhere
for each function that is compiled.

Two workers of one slice need the same functions at the same time: one compiles, the other waits for it and then loads
what is kept, where both would take a core for the same seconds.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import secrets
import stat
import tempfile
import time
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

_THERE = find_spec("numba") is not None
if TYPE_CHECKING or _THERE:
    import numba
    from numba.core import config, types
    from numba.core.bytecode import FunctionIdentity
    from numba.core.compiler_lock import global_compiler_lock

_VARIABLE = "NUMBA_CACHE_DIR"
PATIENCE = 60.0
"""Seconds for which what another process compiles is waited for at most: that process may be suspended."""


def njit(*function: Any, **options: Any) -> Any:
    """As ``numba.njit``; ``cache`` holds where there is a place for it. An environment without numba, which shows and
    schedules only, has the functions, and a call raises ModuleNotFoundError.
    """
    if not _THERE:
        return _absent if function else lambda python: _absent
    if options.get("cache") and not _has_place():
        options["cache"] = False
    compiled = numba.njit(*function, **options)
    if not options.get("cache"):
        return compiled
    if function:
        return _kept(compiled)
    return lambda python: _kept(compiled(python))


def _absent(*_: Any, **__: Any) -> NoReturn:
    raise ModuleNotFoundError("No module named 'numba'", name="numba")


def _kept(dispatcher: Any) -> Any:
    return _for_any_constant(_by_one_process(_of_this_text(dispatcher)))


def _of_this_text(dispatcher: Any) -> Any:
    """With code that was compiled from these kernels, word for word; else it is compiled again."""
    kept = dispatcher._cache._cache_file  # the version is compared before anything of the file is looked at
    kept._version = f"{numba.__version__} {_text_of_kernels()}"
    return dispatcher


def _by_one_process(dispatcher: Any) -> Any:
    """Not compiled while another process does so: what that one keeps is loaded."""
    compile_or_load = dispatcher.compile
    name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"

    def compiled(signature: Any) -> Any:
        # numba's own lock first, as within a function that calls this one: threads that hold one and want the other
        # would wait for ever
        with global_compiler_lock, _alone(name, Path(dispatcher._cache.cache_path)):
            # of this fork and no other
            FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))  # pyright: ignore[reportPrivateUsage]
            return compile_or_load(signature)

    dispatcher.compile = compiled
    return dispatcher


def _for_any_constant(dispatcher: Any) -> Any:
    """Compiled once for numbers, where numba would do so again for each constant with which it is called."""
    template_for = dispatcher.get_call_template

    def template(args: Any, kws: dict[str, Any]) -> Any:
        return template_for([_not_literal(t) for t in args], {name: _not_literal(t) for name, t in kws.items()})

    dispatcher.get_call_template = template
    return dispatcher


def _not_literal(t: types.Type) -> Any:
    if type(t) is types.Tuple:
        return types.Tuple.from_types([_not_literal(part) for part in t.types])
    return types.unliteral(t)


@contextmanager
def _alone(name: str, folder: Path) -> Generator[None]:
    """While inside, no other process is inside for a function of this name, unless it has waited for ``PATIENCE``."""
    try:
        file = _lock_file(folder)
    except OSError:
        yield
        return
    place = zlib.crc32(name.encode())  # one byte of the file for each function
    deadline = time.monotonic() + PATIENCE
    held = False
    while not held and time.monotonic() < deadline:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            held = True
        except (BlockingIOError, PermissionError):  # either is what systems say of a lock that is taken
            time.sleep(0.02)
        except OSError:  # a file system without locks
            break
    try:
        yield
    finally:
        if held:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


@cache
def _lock_file(folder: Path) -> int:
    # never closed: a lock of this kind ends with any descriptor of its file that the process closes
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@cache
def _text_of_kernels() -> str:
    """A hash of all kernels' source."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        source = file.read_bytes()
        digest.update(f"{file.name} {len(source)} ".encode() + source)
    return digest.hexdigest()


@cache
def _has_place() -> bool:
    if _found():
        return True
    try:
        folder = _private_folder()
    except OSError:
        return False
    # both: numba reads the variable again when another one changes, and Spark's workers inherit it
    os.environ[_VARIABLE] = config.CACHE_DIR = str(folder)  # pyright: ignore[reportAttributeAccessIssue]
    return _found()


def _found() -> bool:
    try:
        numba.njit(cache=True)(_nothing)  # looks for a place; compiles nothing before a call
    except RuntimeError:
        return False
    return True


def _nothing() -> int:
    return 0


def _private_folder() -> Path:
    """A folder that nobody else can have put there, since what lies in it is run."""
    folder = Path(tempfile.gettempdir()) / f"sweeparea-numba-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix="sweeparea-numba-"))
