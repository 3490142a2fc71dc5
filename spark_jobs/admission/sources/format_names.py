"""Names of files that Java and Python must see alike.

Java takes the encoding of names from the locale that it was started in. Under LC_ALL=C it passes over each file whose
name has other signs than ASCII's, in silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sweeparea.infra.errors import SetupError
from sweeparea.spark_jobs.admission.sources.format_files import shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_seen(name: str, path: str, files: Iterable[str], spark: SparkSession) -> None:
    """SetupError if Spark does not see each of ``files``, which Python sees in the folder ``path``. Names of ASCII
    alone are the same in every locale, so nothing is asked where all are.
    """
    odd = [file for file in files if not f"{path}/{file}".isascii()]
    if not odd:
        return
    try:
        listed = spark.read.format("text").option("recursiveFileLookup", "true").load(path).inputFiles()
    except Exception as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        listed = []
    seen = [unquote(one) for one in listed]
    ends = {one[-len(file) :] for file in odd for one in seen}
    if unseen := [file for file in odd if file not in ends]:
        raise SetupError(
            f"{name}: {shown(unseen)} of {path}: Spark's Java does not see what Python sees, since it takes names of"
            " files for another encoding than UTF-8. Set LC_ALL=C.UTF-8 in the environment of the Spark server (and of"
            " the workers of a cluster) and start it again. Nothing was read."
        )
