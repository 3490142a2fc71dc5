"""Whether a Spark would give the answers that ours gives: asked once a session.

Ours is started by ``infra/machine.py``; a server or cluster of somebody else has the language, the encoding and the
time-zone rules (``java_zones.py``) that he gave it. UPPER and LOWER follow the language of the JVM that computes them,
the driver's where an expression is constant, else an executor's, so both are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweeparea.infra.errors import UnfitSetupError
from sweeparea.spark_jobs.spark.probes import Passed, note_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCALE = "locale"
"""How the probe of language is noted."""

_ANSWERS = {
    # Turkish and Azeri i, Lithuanian dots; ASCII alone takes another way inside Spark
    "upper({} || 'i ß é')": "I SS É",
    "lower({} || 'I Ì É')": "i ì é",
    "initcap({} || 'iI é')": "Ii É",
    # digits of Arabic and others, separators
    "format_string('%d', 1204 + length({}))": "1204",
    "{} || CAST(INTERVAL '1 02:03:04' DAY TO SECOND AS STRING)": "INTERVAL '1 02:03:04' DAY TO SECOND",
}


def require_fit(spark: SparkSession, passed: Passed) -> None:
    """UnfitSetupError where the language of Spark's driver or executors would change answers."""
    note_with(spark, passed)
    if LOCALE in passed:
        return
    on = {"driver": "''", "executors": "substr(CAST(id AS STRING), 1, 0)"}
    columns = [expression.format(of) for of in on.values() for expression in _ANSWERS]
    rows = spark.range(0, 8, 1, 4).selectExpr(*(f"{c} AS c{i}" for i, c in enumerate(columns))).collect()
    wanted = list(_ANSWERS.values())
    for i, (where, option) in enumerate((("driver", "driver"), ("executors", "executor"))):
        for row in rows:
            found = list(row)[i * len(wanted) : (i + 1) * len(wanted)]
            for expression, is_, should in zip(_ANSWERS, found, wanted, strict=True):
                if is_ != should:
                    raise UnfitSetupError(
                        f"The {where} of this Spark would change answers by its language:"
                        f" {expression.replace('{} || ', '').replace(' + length({})', '')} is {is_!r} there and not"
                        f" {should!r}. Give it spark.{option}.extraJavaOptions=-Duser.language=en -Duser.country=US and"
                        " start it again. Nothing was computed."
                    )
    passed.add(LOCALE)
