"""``spark-server``: a Spark Connect server with what jobs need, for others than those of ``make up``."""

from __future__ import annotations

import os

import click

from sweeparea.spark_jobs.commands.command_line.command import command
from sweeparea.spark_jobs.commands.command_line.shared import tell


@command("spark-server", "serve Spark Connect in the foreground, for jobs that SPARK_REMOTE sends here")
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen at; it asks for no password")
@click.option("--port", type=click.IntRange(1, 65535), default=15002, show_default=True, help="its port")
def spark_server(host: str, port: int) -> int:
    from sweeparea.infra.services import processes, spark_connect

    processes.require_free_port(port, "--port", "spark-server")
    service = spark_connect.service(port=port, host=host)
    tell(f"Spark Connect at {host}:{port}; it has no password, so let nobody else reach it. Its log follows.")
    command_, *arguments = service.command
    os.chdir(service.folder)
    os.execve(command_, [command_, *arguments], dict(service.environment))
