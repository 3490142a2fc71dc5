"""The steps of a deployment plan, a class for each kind: what it does to one name, in words and carried out.

A plan makes each step once. ``explained`` tells it before, and the same object is run by ``apply``: all steps ``clear``
first, readers before what they read; then they ``make``, in order of dependency; in the end they ``drop``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Protocol

from sweeparea.cql.declarations.differences import DefinitionDifference
from sweeparea.tables.publication.name_kinds import NameKind


class Action(Enum):
    """What ``apply`` does with a name."""

    REGISTER = "register"
    UPDATE = "update"
    REBUILD = "rebuild"
    REFUSE = "refuse"
    DROP = "drop"
    KEEP = "keep"
    NOTHING = "nothing"


class Deployer(Protocol):
    """What steps ask of who carries them out. Each tells its user what it has done."""

    def register(self, name: str) -> None:
        """Registers a name."""
        ...

    def take_over(self, name: str) -> None:
        """Stores the files' definition under the registration that stands: results are the same."""
        ...

    def renew(self, name: str) -> None:
        """Stores the files' definition under a new registration: nothing was computed by the old one."""
        ...

    def take_away(self, name: str, kind: NameKind, lost: int) -> None:
        """Takes the tables of a name away and registers it anew."""
        ...

    def announce(self, name: str, kind: NameKind) -> None:
        """Tells which job computes a name's new results."""
        ...

    def build_beside(self, name: str) -> None:
        """Computes a query under its new definition beside the old results, and exchanges them."""
        ...

    def follow(self, name: str) -> None:
        """Lets a query take over what differs in what it reads; builds it beside where that was replaced."""
        ...

    def drop(self, name: str, kind: NameKind) -> None:
        """Forgets a name with its tables."""
        ...


@dataclass(frozen=True)
class Step:
    """One name's part of a plan, of which nothing is done. ``why`` says in words what is done; ``rows`` is at most how
    many rows will be read by the next run, ``lost`` how many result rows are dropped, None where unknown.
    """

    action: ClassVar[Action]
    changes: ClassVar[bool] = False
    """Whether ``apply`` does anything."""
    needs_spark: ClassVar[bool] = False

    name: str
    kind: NameKind
    why: str = ""
    difference: DefinitionDifference = field(default_factory=lambda: DefinitionDifference(()))
    rows: int | None = None
    lost: int | None = None

    @property
    def called(self) -> str:
        """The name with its kind, for people."""
        return self.name if self.kind == NameKind.SHARED else f"{self.kind} {self.name}"

    def explained(self) -> str:
        """What is done, in words."""
        parts = [self.why, *self._fate()]
        if self.rows is not None:
            parts.append(f"up to {self.rows:,} rows to read")
        return "; ".join(part for part in parts if part)

    def _fate(self) -> Iterator[str]:
        """What becomes of rows that were computed."""
        yield from ()

    def clear(self, deployer: Deployer) -> None:
        """What goes before anything new is made."""

    def make(self, deployer: Deployer) -> None:
        """What is made, in order of dependency."""

    def drop(self, deployer: Deployer) -> None:
        """What goes for good, in the end."""


@dataclass(frozen=True)
class Unchanged(Step):
    """The files say what is deployed."""

    action = Action.NOTHING


@dataclass(frozen=True)
class Refuse(Step):
    """What cannot be applied; a problem of the plan says why."""

    action = Action.REFUSE


@dataclass(frozen=True)
class Keep(Step):
    """A name that the files no longer declare stays, and is not run."""

    action = Action.KEEP

    def _fate(self) -> Iterator[str]:
        if self.lost:
            yield f"{self.lost:,} rows"


@dataclass(frozen=True)
class Register(Step):
    """A name is registered that is not deployed."""

    action, changes = Action.REGISTER, True

    def make(self, deployer: Deployer) -> None:
        deployer.register(self.name)


@dataclass(frozen=True)
class TakeOver(Step):
    """The files say otherwise what gives the same results."""

    action, changes = Action.UPDATE, True

    def make(self, deployer: Deployer) -> None:
        deployer.take_over(self.name)


@dataclass(frozen=True)
class Renew(Step):
    """Another definition of a name by which nothing was computed yet."""

    action, changes = Action.UPDATE, True

    def make(self, deployer: Deployer) -> None:
        deployer.renew(self.name)


@dataclass(frozen=True)
class Rebuild(Step):
    """The old results go, and the next runs compute new ones from START."""

    action, changes = Action.REBUILD, True

    def _fate(self) -> Iterator[str]:
        if self.lost:
            yield f"{self.lost:,} rows that were computed are dropped"

    def clear(self, deployer: Deployer) -> None:
        deployer.take_away(self.name, self.kind, self.lost or 0)

    def make(self, deployer: Deployer) -> None:
        deployer.announce(self.name, self.kind)


@dataclass(frozen=True)
class RebuildBeside(Rebuild):
    """The new results are computed beside the old ones and exchanged then: nothing goes before."""

    needs_spark = True

    def _fate(self) -> Iterator[str]:
        yield f"{self.lost or 0:,} rows stay readable while the new ones are computed beside them"

    def clear(self, deployer: Deployer) -> None:
        """Nothing goes before there is something in its place."""

    def make(self, deployer: Deployer) -> None:
        deployer.build_beside(self.name)


@dataclass(frozen=True)
class Follow(RebuildBeside):
    """The query's own results stand, but what it reads is replaced: it can take over what differs."""

    def _fate(self) -> Iterator[str]:
        yield f"{self.lost or 0:,} rows stay readable while it takes over what differs"

    def make(self, deployer: Deployer) -> None:
        deployer.follow(self.name)


@dataclass(frozen=True)
class Forget(Step):
    """A name that the files no longer declare, or a hidden query that no query reads any more, goes."""

    action, changes = Action.DROP, True

    def _fate(self) -> Iterator[str]:
        if self.lost:
            yield f"{self.lost:,} rows that were computed are dropped"

    def drop(self, deployer: Deployer) -> None:
        deployer.drop(self.name, self.kind)
