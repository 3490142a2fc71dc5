"""A command of ``sweeparea``: its name, its one line in the list of commands, and how its words are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from sweeparea.spark_jobs.commands.command_line.arguments import asks_for_help, command_first, options_first

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


@dataclass
class Asked:
    """What was asked for, as far as it decides how errors are told."""

    command: str = ""
    debug: bool = False


def asked() -> Asked:
    """What the command that runs was asked for."""
    return click.get_current_context().ensure_object(Asked)


class Command(click.Command):
    """A command whose options may stand anywhere among its names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # completion by the shell: what is there may be incomplete
            return super().parse_args(ctx, args)
        ctx.ensure_object(Asked).command = self.name or ""
        options = {name: p for p in self.get_params(ctx) if isinstance(p, click.Option) for name in p.opts}
        rest = super().parse_args(ctx, options_first(args, options, ctx))
        if rest:
            ctx.fail(f"unrecognized arguments: {' '.join(rest)}")
        return rest


class Program(click.Group):
    """All commands, listed as they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        options = [p for c in self.commands.values() for p in c.params if isinstance(p, click.Option)]
        words = command_first(args, frozenset(name for p in options if not p.is_flag for name in p.opts))
        if not words and not asks_for_help(args, ctx):
            ctx.fail("the following arguments are required: COMMAND")
        return super().parse_args(ctx, words or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            from difflib import get_close_matches

            names = ", ".join(map(repr, self.commands))
            near = get_close_matches(args[0], self.commands, 1)
            meant = f". Did you mean {near[0]}?" if near else ""
            ctx.fail(f"argument COMMAND: invalid choice: {args[0]!r} (choose from {names}){meant}")
        return super().resolve_command(ctx, args)


def _debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.ensure_object(Asked).debug = value


def command(name: str, text: str) -> Callable[[Callable[..., int]], Command]:
    """Makes a function a command. ``text`` is its line in the list, without a full stop; the function returns the
    exit code.
    """
    debug = click.Option(
        ["--debug"], is_flag=True, expose_value=False, callback=_debug, help="show the stack trace of an error"
    )
    settings: dict[str, Any] = {"allow_extra_args": True}  # Command itself refuses what is too much
    return click.command(
        name,
        cls=Command,
        params=[debug],
        help=f"{text[0].upper()}{text[1:]}.",
        short_help=text,
        context_settings=settings,
    )


def complaint(error: click.UsageError) -> str:
    """What is wrong with a command line, and how it is written: one paragraph."""
    text, context = error.format_message(), error.ctx
    parameter = error.param if isinstance(error, click.BadParameter) else None
    if isinstance(error, click.MissingParameter) and isinstance(parameter, click.Argument) and context is not None:
        required = [p for p in context.command.params if isinstance(p, click.Argument) and p.required]
        missing = required[required.index(parameter) :]
        text = f"the following arguments are required: {', '.join(p.metavar or p.name for p in missing)}"
    elif parameter is not None:
        text = f"argument {'/'.join(parameter.opts)}: {error.message}"
    if not text.endswith((".", "?")):
        text += "."
    if context is not None:
        pieces = " ".join(context.command.collect_usage_pieces(context))
        text += f" Usage: {context.command_path} {pieces}; {context.command_path} -h tells more."
    return text
