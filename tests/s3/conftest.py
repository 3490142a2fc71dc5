"""An S3 server on this machine: moto, of a Python of its own that SWEEPAREA_MOTO names (``make s3`` makes one).

Nothing here runs unless it is named: the SDK that Spark needs is 690 MB.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeparea.infra import settings, storage
from sweeparea.infra.services import processes

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "a-secret-for-tests", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty bucket; its server listens on 127.0.0.1 only."""
    moto = os.environ.get("SWEEPAREA_MOTO")
    if not moto:
        pytest.skip("SWEEPAREA_MOTO names no Python with moto[server]: run `make s3`")
    port = processes.free_port()
    run = tmp_path_factory.mktemp("moto")
    command = [str(Path(moto).with_name("moto_server")), "-H", settings.HOST, "-p", str(port)]
    service = processes.Service(
        "moto", command, dict(os.environ), run, lambda: processes.port_answers(port), port, timeout=60
    )
    before = dict(os.environ)
    # read by delta-rs, Arrow and, through its JVM's environment, Spark
    os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://{settings.HOST}:{port}", AWS_EC2_METADATA_DISABLED="true")
    processes.start(service, run)
    try:
        processes.wait_ready(service, run)
        subprocess.run([moto, "-c", MAKE], check=True, timeout=60)
        storage.prepare("s3://bucket")
        yield "s3://bucket"
    finally:
        processes.stop("moto", run)
        os.environ.clear()
        os.environ.update(before)


MAKE = """
import boto3, os
boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).create_bucket(Bucket="bucket")
"""
