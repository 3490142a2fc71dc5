"""Room for deep recursion: the one place that decides how deeply a text or a plan may nest.

Trees of expressions and plans are walked by recursion, here and in the libraries. How deep that goes would otherwise
depend on the thread, on how many calls are below it, and on the machine's ``ulimit -s``; inside ``deep`` it does not.
"""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_N = TypeVar("_N")

FRAMES = 250_000
"""Calls of Python inside one another: some 40 a level of parentheses, some 10 a link of a chain such as a + b + .."""
_STACK = 1 << 30
"""Bytes of address space for the thread's stack; memory is taken as the stack is used. A call from C to Python takes
about 500 bytes, of which 250,000 frames need at most some 300 MB."""

_lock = threading.Lock()
_entered = 0
_before = 0
_here = threading.local()


def deep(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """``function`` with room for ``FRAMES`` calls: it runs in a thread of its own with a large stack, in the caller's
    context, while the caller waits. Within another such function it runs as it is. Errors are the caller's,
    RecursionError among them.
    """

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if getattr(_here, "deep", False):
            return function(*args, **kwargs)
        result: list[Any] = []
        failed: list[BaseException] = []
        context = contextvars.copy_context()

        def inside() -> None:
            _here.deep = True
            try:
                result.append(context.run(function, *args, **kwargs))
            except BaseException as error:
                failed.append(error)

        _enter()
        try:
            thread = _started(inside)
            if thread is not None:
                thread.join()
        finally:
            _leave()
        if thread is None:
            return function(*args, **kwargs)
        if failed:
            raise failed[0]
        return result[0]

    return run


def bottom_up(
    start: _N, below: Callable[[_N], Iterable[_N]], key: Callable[[_N], Hashable] = lambda node: node
) -> Iterator[_N]:
    """``start`` and all that is below it, each once (by ``key``) and after what is below it, left to right: a walk in
    post-order that nests no calls.

    >>> [*bottom_up(6, lambda n: [d for d in (2, 3) if n % d == 0 and n > d])]
    [2, 3, 6]
    """
    seen: set[Hashable] = set()
    open_ = [(start, False)]
    while open_:
        node, entered = open_.pop()
        if entered:
            yield node
        elif key(node) not in seen:
            seen.add(key(node))
            open_.append((node, True))
            open_ += [(each, False) for each in reversed([*below(node)])]


def _started(target: Callable[[], None]) -> threading.Thread | None:
    """The thread, or None where there is no address space for its stack (``ulimit -v``): then the caller's must do."""
    with _lock:
        before = threading.stack_size(_STACK)
        try:
            thread = threading.Thread(target=target, name=f"{threading.current_thread().name}-deep", daemon=True)
            thread.start()
            return thread
        except RuntimeError:
            return None
        finally:
            threading.stack_size(before)


def _enter() -> None:
    # the limit is the interpreter's, not the thread's: it is raised as long as one such call runs
    global _entered, _before
    with _lock:
        if _entered == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(FRAMES, _before))
        _entered += 1


def _leave() -> None:
    global _entered
    with _lock:
        _entered -= 1
        if _entered == 0:
            sys.setrecursionlimit(_before)
