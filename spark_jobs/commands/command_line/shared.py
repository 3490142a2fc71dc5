"""What commands share: the application and where its data is, choices, a work for each of several names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sweeparea.infra.errors import SweepAreaError, drop_output
from sweeparea.spark_jobs.commands.command_line.command import asked

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application
    from sweeparea.spark_jobs.declarations.analysis import Checking


@dataclass(frozen=True)
class NamedApplication:
    """An application as the command line names it, with its data folder and environment."""

    application: str
    data: str | None
    env: str | None

    def open(self, lenient: bool = False) -> Application:
        """The application; Spark is asked for the types of expressions only once it is needed."""
        from sweeparea.spark_jobs.application import Application
        from sweeparea.spark_jobs.declarations.analysis import AskedOnce

        application = Application.open(self.application, self.data, self.env, lenient)
        application.analyze = AskedOnce()
        return application


def where(work: Callable[..., int]) -> Callable[..., int]:
    """The options ``--data`` and ``--env``."""
    data = click.option(
        "--data",
        metavar="FOLDER",
        help="the data folder (default: .data/<name> for an application under queries/, else .data in its own folder)",
    )
    env = click.option(
        "--env", metavar="NAME", help="an environment of the application's sweeparea.toml (else SWEEPAREA_ENV)"
    )
    return data(env(work))


def placed(work: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the application that it names, as a ``NamedApplication``, its first parameter."""

    @where
    @click.argument("application", help="a folder of .cql files, or the name of one under queries/")
    @functools.wraps(work)
    def with_place(application: str, data: str | None, env: str | None, **others: Any) -> int:
        return work(NamedApplication(application, data, env), **others)

    return with_place


class OneOf(click.Choice[str]):
    """One of several words; which, tells the error."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"invalid choice: {value!r} (choose from {', '.join(map(repr, self.choices))})"


def checking(application: Application, start: bool = False) -> Checking:
    """Has Spark check types where a session is at hand, or ``start`` asks for one."""
    from sweeparea.spark_jobs.declarations.analysis import AskedOnce, Checking

    once = application.analyze
    assert isinstance(once, AskedOnce)
    return Checking(once, once.session if start else once.at_hand)


def tell(text: str) -> None:
    """Prints a line at once, so that progress is seen through a pipe too; without a reader the work goes on."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        drop_output()


def each(names: Sequence[str], work: Callable[[str], None]) -> int:
    """``work`` for every name; one that fails is told of and does not stop the others. Returns the exit code."""

    def found() -> Iterator[tuple[str, SweepAreaError | None]]:
        for name in names:
            try:
                yield name, work(name)
            except SweepAreaError as error:
                yield name, error

    return told(names, found())


def told(names: Sequence[str], found: Iterable[tuple[str, str | SweepAreaError | None]]) -> int:
    """Tells what came of every name, in words if there are any; an error does not stop the others, unless it is that of
    the only name or is to be debugged. Returns the exit code.
    """
    code = 0
    for _, what in found:
        if isinstance(what, SweepAreaError):
            if asked().debug or len(names) == 1:
                raise what
            print(f"sweeparea: {what}", file=sys.stderr, flush=True)
            code = what.exit_code
        elif what is not None:
            tell(what)
    return code
