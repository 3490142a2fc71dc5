"""``python -m sweeparea`` is the command ``sweeparea``."""

from sweeparea.spark_jobs.commands.cli import main

raise SystemExit(main())
