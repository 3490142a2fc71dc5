"""Modules that are imported when they are first used.

A node stands in one file with its sweep, but a plan is made, explained and compared in processes that run nothing:
there NumPy, Arrow and the compiled kernels, which take a second to load, are not wanted.
"""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """The module ``name``, imported with its first attribute.

    >>> later("math")[0].isqrt(17)
    4
    """

    def __init__(self, name: str) -> None:
        self.__dict__["__name__"] = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self.__dict__["__name__"]), attribute)
        self.__dict__[attribute] = value
        return value


def later(*names: str) -> tuple[Any, ...]:
    """These modules; those of type checkers stand beside, under ``TYPE_CHECKING``."""
    return tuple(LazyModule(name) for name in names)
