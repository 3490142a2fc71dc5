"""Settings of Spark that would change answers: in our sessions they are Spark's own, whatever a server's defaults are.

A server of somebody else, or a process with a Spark of its own, may have any of hundreds: ``caseSensitive``,
``timestampType``, ``ansi.doubleQuotedIdentifiers``, ``files.ignoreMissingFiles``, all ``legacy``. No list of them
is ever complete, so all of ``spark.sql`` is reset in a session but what is known to be about speed, memory or
places. A session is ours alone, so nobody else sees that.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sweeparea.infra.errors import UnfitSetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HARMLESS = re.compile(
    r"spark\.sql\.(?:adaptive|artifact|autoBroadcast|broadcast|cache|catalog|cbo|codegen|connect|debug|event|extensions"
    r"|files\.(?:max|min|open)|hive\.(?:metastore|exec)|inMemory|join\.prefer|maxPlanString|metadataCache|optimizer"
    r"|queryExecution|redaction|repl|shuffle|sources\.(?:bucketing|parallel|v2\.bucketing)|statistics|streaming|thrift"
    r"|ui|warehouse|execution\.(?:arrow\.(?:max|transform)|broadcast|pandas\.udf\.buffer|python|pyspark|range|reuse"
    r"|sort|topK|use|interrupt)|parquet\.(?:block|compress|enableVectorized|filterPushdown|columnarReader"
    r"|aggregatePushdown))[\w.-]*"
)


def foreign(settings: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[str]:
    """Those of a session's settings, as they were set, that may change answers and are not ``ours``.

    >>> list(foreign({"spark.sql.caseSensitive": "true", "spark.sql.shuffle.partitions": "9", "spark.app.id": "x"}, {}))
    ['spark.sql.caseSensitive']
    """
    for key in sorted(settings):
        if key.startswith("spark.sql.") and key not in ours and not _HARMLESS.fullmatch(key):
            yield key


def reset(spark: SparkSession, ours: Mapping[str, str]) -> None:
    """Resets what is foreign in a session of ours. UnfitSetupError for what stays set."""
    odd = [key for key in foreign(spark.conf.getAll, ours) if spark.conf.isModifiable(key)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's, about settings that it deprecates
        for key in odd:
            spark.conf.unset(key)
    kept = spark.conf.getAll if odd else {}
    if stays := [f"{key} = {kept[key]}" for key in odd if key in kept]:
        raise UnfitSetupError(
            f"This Spark has settings that may change answers and cannot be reset: {', '.join(stays)}. Remove them from"
            " the configuration of the server and start it again. Nothing was computed."
        )
