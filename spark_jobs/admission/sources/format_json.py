"""Records of JSON files, none of which is passed over.

Spark's own reader of JSON takes the first value of a line (of a file, with ``multiLine``) and says nothing of what
follows it: a second record on the same line, or all lines but the first of a file that should not have been read as one
text, would be lost. So files are read as text, and each text is parsed between brackets with a mark behind it: what is
no list of records up to the mark is malformed as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sweeparea.spark_jobs.spark.frames import quoted
from sweeparea.tables.sources.landing import MALFORMED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RECORDS, END = "__records", "__end"
REFUSED = "a record that is malformed under mode = FAILFAST"
"""How the error of FAILFAST begins."""
# those of the reader of files, not of the parser
_READING = ("multiline", "linesep", "encoding", "charset", "compression", "mode")


def by_texts(options: Mapping[str, str]) -> bool:
    """Whether files can be read as texts: other encodings than UTF-8 are left to Spark's own reader."""
    named = {option.lower(): value for option, value in options.items()}
    return named.get("encoding", named.get("charset", "UTF-8")).upper().replace("_", "-") in ("UTF-8", "UTF8")


def json_records(
    spark: SparkSession,
    path: str,
    columns: Sequence[tuple[str, str]],
    options: Mapping[str, str],
    keys: Collection[str] = (),
) -> DataFrame:
    """The records under ``path`` as they come, in ``columns`` (names and Spark types), and the whole text of those that
    are malformed in ``MALFORMED``. Values of ``keys`` are those of the folders' names.
    Under FAILFAST a malformed one fails the run, with ``REFUSED``.
    """
    from pyspark.sql import functions as F

    named = {option.lower(): value for option, value in options.items()}
    kinds = {column.lower(): (column, kind) for column, kind in columns}
    placed = [kinds[key.lower()] for key in keys if key.lower() in kinds]
    reader = spark.readStream.format("text").option("wholetext", named.get("multiline", "false"))
    reader = reader.schema(", ".join(["value STRING", *(f"{quoted(column)} {kind}" for column, kind in placed)]))
    for option, value in options.items():
        if option.lower() not in ("multiline", "mode"):
            reader = reader.option(option, value)
    beside = F.struct(F.lit(None).alias("_"), *(F.col(quoted(column)) for column, _ in placed)).alias("beside")
    file = F.col("_metadata.file_path").alias("file")
    texts = reader.load(path).select(_decoded(F.col("value")).alias("text"), file, beside)
    texts = texts.where(F.col("text").rlike(r"\S"))
    listed = F.col("text").rlike(r"^\s*\[")
    # a comma at a line's end is what is left of a list that is written one record a line
    single = F.concat(F.lit("["), F.regexp_replace("text", r",\s*$", ""), F.lit("\n]"))
    shaped = F.concat(
        F.lit(f'{{"{RECORDS}":'), F.when(listed, F.col("text")).otherwise(single), F.lit(f'\n,"{END}":true}}')
    )
    record = ", ".join(f"{quoted(column)}: {kind}" for column, kind in columns)
    form = f"{RECORDS} ARRAY<STRUCT<{record}>>, {END} BOOLEAN, {MALFORMED} STRING"
    parsing = {option: value for option, value in options.items() if option.lower() not in _READING}
    parsed = F.from_json(shaped, form, {**parsing, "columnNameOfCorruptRecord": MALFORMED, "mode": "PERMISSIVE"})
    parts = texts.select("text", "file", "beside", listed.alias("listed"), parsed.alias("parsed"))
    records = F.col(f"parsed.{RECORDS}")
    sound = (
        F.col(f"parsed.{MALFORMED}").isNull()
        & F.col(f"parsed.{END}")
        & ~F.exists(records, lambda one: one.isNull())
        & (F.col("listed") | (F.size(records) > 0))
    )
    parts = parts.select(
        "text", "file", "beside", records.alias("records"), F.coalesce(sound, F.lit(False)).alias("sound")
    )
    # of a single record that which could be read goes along, so that its instant can be shown
    shown = F.col("sound") | F.coalesce(F.size("records") == 1, F.lit(False))
    nothing = F.array(F.lit(None).cast(f"STRUCT<{record}>"))
    each = F.explode(F.when(shown, F.col("records")).otherwise(nothing)).alias("record")
    rows = parts.select("text", "file", "beside", "sound", each)
    text = F.col("text")
    if named.get("mode", "").upper() == "FAILFAST":
        told = F.concat(F.lit(f"{REFUSED}, in "), F.col("file"), F.lit(": "), F.substring("text", 1, 200))
        text = F.raise_error(told).cast("string")
    of = {column: "record" for column, _ in columns} | {column: "beside" for column, _ in placed}
    return rows.select(
        *(F.col(f"{part}.{quoted(column)}").alias(column) for column, part in of.items()),
        F.when(~F.col("sound"), text).alias(MALFORMED),
    )


def _decoded(value: Column) -> Column:
    """A text without its byte order mark, which tells UTF-16; bytes that are no UTF-8 are replaced by U+FFFD."""
    from pyspark.sql import functions as F

    start = F.hex(F.substring(value.cast("binary"), 1, 2))
    wide = F.decode(value.cast("binary"), "UTF-16")
    text = F.when(start.isin("FFFE", "FEFF"), wide).otherwise(F.make_valid_utf8(value))
    return F.regexp_replace(text, "^\ufeff", "")
