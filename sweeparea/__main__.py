"""The command ``sweeparea``, also as ``python -m sweeparea``: nothing is imported before Ctrl-C is heeded."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the command of ``sys.argv``; returns its exit code."""
    try:
        from sweeparea.spark_jobs.commands.cli import main as command

        return command()
    except KeyboardInterrupt:
        print("sweeparea: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
