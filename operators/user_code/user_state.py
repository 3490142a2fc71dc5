"""A class that keeps a user's aggregate up to date; whether it does is tried (``state_trial.py``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

METHODS = ("add", "remove", "merge", "value")


class UserState(Protocol):
    """What an aggregate's value is made of, for rows that come and go."""

    def add(self, *values: Any) -> None: ...

    def remove(self, *values: Any) -> None: ...

    def merge(self, other: Any) -> None: ...

    def value(self) -> Any: ...


@dataclass(frozen=True)
class WithState:
    """An aggregate's function, and the class that keeps its value up to date; calling it calls the function."""

    function: Callable[..., Any]
    state: type[UserState]

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)
