"""The command ``sweeparea``. Each command is a function over an application; errors are one paragraph and an exit code.

Exit codes: 0 done (also when there was nothing to do), 1 the work failed, 2 wrong use, a mistake in a text, or
something that must run first, 3 the machine lacks something, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from sweeparea.infra import machine
from sweeparea.infra.errors import SweepAreaError, drop_output, missing_extra
from sweeparea.spark_jobs.commands.command_line.command import Asked, complaint
from sweeparea.spark_jobs.commands.command_line.program import PROGRAM

COMPLETE = "_SWEEPAREA_COMPLETE"
"""The variable by which a shell asks how a command line goes on."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. SystemExit after help and after wrong use."""
    if arguments is None:
        machine.fit_command()
        _complete()
    asked = Asked()
    try:
        with PROGRAM.make_context("sweeparea", list(sys.argv[1:] if arguments is None else arguments), obj=asked) as c:
            code = PROGRAM.invoke(c) or 0
            sys.stdout.flush()
            return code
    except click.exceptions.Exit as ended:
        raise SystemExit(ended.exit_code) from None
    except click.UsageError as error:
        print(f"sweeparea: {complaint(error)}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except SweepAreaError as error:
        if asked.debug:
            raise
        print(f"sweeparea: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("sweeparea: interrupted; nothing of the slice at work was published, a rerun continues.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        drop_output()
        return 0
    except Exception as error:
        if asked.debug:
            raise
        if isinstance(error, ImportError) and (missing := missing_extra(error)):
            print(f"sweeparea: {missing}", file=sys.stderr)
            return missing.exit_code
        from sweeparea.spark_jobs.spark.errors import readable

        shown = readable(error, asked.command)
        print(f"sweeparea: {shown} (--debug shows where)", file=sys.stderr)
        return shown.exit_code


def _complete() -> None:
    """Answers a shell that completes a command line, and ends; else returns."""
    if instruction := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(PROGRAM, {}, "sweeparea", COMPLETE, instruction))


if __name__ == "__main__":
    sys.exit(main())
