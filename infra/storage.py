"""Object stores: the one place from which delta-rs, Arrow and Spark take their options.

The place is the environment, in the variables that the AWS tools have; so Spark's workers find it too, and nothing is
passed from call to call. An environment of ``sweeparea.toml`` may set what is no secret::

    [prod.storage]
    endpoint = "http://127.0.0.1:9000"    # AWS_ENDPOINT_URL; without it Amazon's own
    region = "eu-central-1"               # AWS_REGION

Keys come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, are never written anywhere and never
printed. delta-rs commits by conditional put (``If-None-Match``), so of two committers of one version one loses.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from sweeparea.infra.errors import SetupError

if TYPE_CHECKING:
    import pyarrow.fs as pafs

OPTIONS = {"endpoint": "AWS_ENDPOINT_URL", "region": "AWS_REGION"}
"""Keys of ``[env.storage]`` and the variables that they stand for; a variable that is set goes before."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_S3 = ("s3://", "s3a://")


def is_remote(path: str) -> bool:
    """Whether a path is the address of an object store or another remote file system."""
    return bool(_URI.match(path)) and not path.startswith("file://")


def is_s3(path: str) -> bool:
    """Whether a path is the address of something on S3."""
    return path.startswith(_S3)


def use(options: Mapping[str, str]) -> None:
    """Takes over the options of an environment, for this process and those that it starts."""
    for key, value in options.items():
        os.environ.setdefault(OPTIONS[key], value)


def prepare(path: str) -> None:
    """Before delta-rs touches ``path``: its commits there must be atomic. SetupError where somebody said they need not
    be.
    """
    if not is_s3(path):
        return
    for variable in ("AWS_S3_ALLOW_UNSAFE_RENAME", "S3_ALLOW_UNSAFE_RENAME"):
        if os.environ.get(variable, "").lower() in ("1", "true"):
            raise SetupError(
                f"{variable} is set, with which two runs can overwrite each other's commits. Unset it: commits to"
                f" {path} are conditional puts, which need no rename."
            )
    os.environ.setdefault("AWS_CONDITIONAL_PUT", "etag")
    if os.environ["AWS_CONDITIONAL_PUT"].lower() == "disabled":
        raise SetupError("AWS_CONDITIONAL_PUT is disabled, so no commit could be atomic. Unset it.")
    if _endpoint().startswith("http://"):
        os.environ.setdefault("AWS_ALLOW_HTTP", "true")


def filesystem(path: str) -> tuple[pafs.FileSystem, str]:
    """Arrow's file system of a remote ``path``, and the path in it."""
    import pyarrow as pa
    import pyarrow.fs as pafs

    if not is_s3(path):
        try:
            return pafs.FileSystem.from_uri(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise SetupError(f"{path} is on a file system that cannot be opened here: {error}.") from error
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    return _s3(_endpoint(), region), path.split("://", 1)[1].rstrip("/")


@functools.lru_cache
def _s3(endpoint: str, region: str) -> pafs.FileSystem:
    """Opening it takes long. Keys are found by Arrow itself: in the environment, a profile, or the machine's role."""
    import pyarrow.fs as pafs

    where = urlparse(endpoint)
    options = {"endpoint_override": where.netloc, "scheme": where.scheme} if where.netloc else {}
    return pafs.S3FileSystem(**options, **({"region": region} if region else {}))


def spark_conf() -> dict[str, str]:
    """What Spark needs for addresses on S3; keys are found by its own provider chain, in its environment."""
    conf = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.aws.credentials.provider": _CHAIN,
    }
    if endpoint := _endpoint():
        conf |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(endpoint.startswith("https")).lower(),
        }
    if region := os.environ.get("AWS_REGION"):
        conf["spark.hadoop.fs.s3a.endpoint.region"] = region
    return conf


def _endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL", "")
