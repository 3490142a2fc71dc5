"""``setup``: what Spark needs beside Python packages."""

from __future__ import annotations

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import tell


@command("setup", "fetch the Delta jars that Spark needs, once; what is there stays")
@click.option("--s3", is_flag=True, help="also the jars for object stores on S3 (690 MB)")
def setup(s3: bool) -> int:
    from sweeparea.infra import settings
    from sweeparea.infra.setup import jars

    jars.bring(s3)
    tell(f"The Delta jars are in {settings.jars_folder()}.")
    return 0
