"""FROM FORMAT: what any source of Spark Structured Streaming brings is landed in a Delta table of the data folder.

Each record is landed once. Spark's file sink writes a micro-batch's files and then, in one step, the entry of the
batch in its own log; its checkpoint tells what was read. A run that dies before the entry is written leaves files that
nobody knows, and the batch is done again over the same records; one that dies after it, a batch that is not done again.
Landing then makes one version of the Delta table of each batch, tagged with the batch's number, so that is done once as
well. From there on the landing table is a source like any other, read version by version.

No code runs in Spark but Spark's own, so this works through Spark Connect as it does in process.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from sweeparea.cql.syntax.source_formats import FILES, PARSED, in_folder
from sweeparea.infra import zones
from sweeparea.infra.errors import DataError, SweepAreaError
from sweeparea.spark_jobs.admission.sources.format_files import looked_over, matched_over
from sweeparea.spark_jobs.admission.sources.format_json import REFUSED, by_texts, json_records
from sweeparea.spark_jobs.admission.sources.format_names import require_seen
from sweeparea.spark_jobs.declarations.source_columns import refuse_reserved
from sweeparea.spark_jobs.spark import zone_guards
from sweeparea.spark_jobs.spark.errors import readable
from sweeparea.spark_jobs.spark.frames import quoted
from sweeparea.tables.errors import CommitConflict
from sweeparea.tables.faults import crash_point
from sweeparea.tables.log.delta_log import DeltaLog
from sweeparea.tables.log.files import describe_file
from sweeparea.tables.log.folders import filesystem
from sweeparea.tables.log.schema import arrow_type, ddl_type
from sweeparea.tables.log.write_errors import has_space, write_error
from sweeparea.tables.sources.landing import MALFORMED, declared_columns, note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sweeparea.cql.syntax.statements import SourceSpec
    from sweeparea.spark_jobs.declarations.declarations import Declarations

BATCHES = "data/_spark_metadata"
"""The file sink's log in the landing folder: one file a micro-batch."""
_CONF = {
    # batches are told apart by their entries, so entries are neither merged nor removed
    "spark.sql.streaming.fileSink.log.compactInterval": "1000000000",
    "spark.sql.streaming.fileSink.log.deletion": "false",
    # an empty batch is no version
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
_DEFAULTS = {
    # by default a file that is a week older than the newest one is taken for seen, however it came here
    "maxFileAge": "36500d",
}


def land(
    application: Declarations, name: str, spark: SparkSession, tell: Callable[[str], None] = lambda text: None
) -> int:
    """Lands what is new in the source of a stream or relation FROM FORMAT; returns how many versions that made."""
    source = application.source(name).source
    folder = application.layout.landing(name)
    path = application.located(source.uri) if source.uri else ""
    found = looked_over(name, path, dict(source.options), folder, tell) if in_folder(source) else None
    if found is not None:
        require_seen(name, path, found.files, spark)
    elif source.format.lower() in FILES:
        require_seen(name, *matched_over(name, path, folder), spark)
    named = {v for k, v in source.options if k.lower() == "timezone"}
    zone_guards.require(spark, named & zones.names() - {"UTC"})
    log = DeltaLog(folder)
    try:
        frame = _read(spark, source, path, name, found.keys if found else ())
        fields = [pa.field(f.name, arrow_type(ddl_type(f.dataType))) for f in frame.schema]
        log.create(pa.schema(fields), name=name, description=f"records of {name} as they came, from {source.format}")
        _run(spark, frame, folder)
    except Exception as error:
        raise _explained(error, application, name, folder) from error
    crash_point("format.read", folder)
    landed = _publish(log, name)
    if found is not None:
        note(folder, found.found)
    if landed:
        tell(f"{name}: landed {landed} new batch{'es' if landed > 1 else ''} of {source.format}")
    return landed


def _run(spark: SparkSession, frame: DataFrame, folder: str) -> None:
    """Brings what is there into the sink, and ends."""
    with _configured(spark):
        query = (
            frame.writeStream.format("parquet")
            .option("path", f"{folder}/data")
            .option("checkpointLocation", f"{folder}/_checkpoint")
            .outputMode("append")
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except BaseException:
            query.stop()
            raise


def _explained(error: Exception, application: Declarations, name: str, folder: str) -> SweepAreaError:
    source = application.source(name).source
    # through Spark Connect the text goes on with Java's stack trace, which is full of java.util.concurrent
    text = str(error).split("JVM stacktrace:", 1)[0]
    if re.search("CONCURRENT_|ConcurrentModification|concurrently using", text):
        # on a full disk Spark meets what it has half written itself, and takes it for another run's
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if not has_space(folder) and (explained := write_error(folder, full)):
            return explained
        return SweepAreaError(
            f"{name}: another run is reading its source at the same time. Nothing was lost or read twice; wait for it,"
            " then run again."
        )
    if "DATA_SOURCE_NOT_FOUND" in text:
        return SweepAreaError(
            f"{name}: Spark knows no source named {source.format}. Correct the name after FROM FORMAT, or give Spark"
            " the jar that has it."
        )
    # a stream's failure is told inside another one, which has ids of its own
    inner = text.split("terminated with exception:", 1)[-1]
    where = f"{name}, reading its source FROM FORMAT"
    if found := re.search(rf"{REFUSED}, in .*", inner):
        told: SweepAreaError = DataError(f"{where}: {' '.join(found.group().split('SQLSTATE')[0].split())}")
    else:
        told = readable(error if inner == text else RuntimeError(inner), where)
    ways_out = []
    if stale := re.search(r"Checksum error: (\S+)", f"{inner} {_innermost(error)}"):
        file = stale.group(1).removeprefix("file:")
        folder_of, _, base = file.rpartition("/")
        return type(told)(
            f"{where}: the check sums of {file} in {folder_of}/.{base}.crc are those of other bytes: the file was"
            " changed by something that does not know of them, or is damaged. If the file is right as it is, remove"
            " that .crc file, else put both back as they were; then run again. Nothing of it was admitted."
        )
    if re.search("Expected Spark type timestamp(_ntz)?, actual Parquet type INT64", inner):
        # Spark reads milliseconds and microseconds as timestamps, and does not say what else the numbers are
        ways_out.append(
            "declare the column BIGINT, as whose numbers Spark reads it, a timestamp in nanoseconds too (its"
            f" instant: timestamp_micros((c - pmod(c, 1000)) DIV 1000)): CREATE OR REPLACE of {name} and `apply`"
            " read all files anew"
        )
    elif "DATA_TYPE_MISMATCH" in inner:
        ways_out.append(f"declare the type that it has: CREATE OR REPLACE of {name} and `apply` read all files anew")
    elif source.format.lower() == "csv" and "FAILED_READ_FILE" in inner:
        ways_out.append(
            "if its header names other columns than SCHEMA, or in another order, correct one of them (with OPTIONS"
            " (enforceSchema = true) columns count by their places alone)"
        )
    if "FAILED_READ_FILE" in inner or isinstance(told, DataError):
        # the batch has begun, so the checkpoint asks for this file until it can be read
        ways_out.append("put a whole file in its place under the same name (an empty one if there is nothing to save)")
    elif source.uri and "Job aborted" in inner:
        ways_out.append(f"see what is wrong with the newest files of {application.located(source.uri)}")
    if not ways_out:
        return told
    said = str(told).rstrip(".")
    if "NO_HINT" in inner and (cause := _innermost(error)):
        said += f": {cause}"
    way_out = ", or ".join(ways_out)
    return type(told)(f"{said}. {way_out[0].upper()}{way_out[1:]}; then run again.")


def _innermost(error: BaseException) -> str:
    """What an error of Spark's comes from, in one line; empty where it does not tell, as through Spark Connect."""
    below, text = getattr(error, "_cause", None), ""
    while below is not None:
        below, text = getattr(below, "_cause", None), str(below)
    return " ".join(text.split())[:300].rstrip(".")


def _read(spark: SparkSession, source: SourceSpec, path: str, name: str, keys: Collection[str]) -> DataFrame:
    reader = spark.readStream.format(source.format)
    kind = source.format.lower()
    options = dict(source.options)
    given = {option.lower() for option in options}
    declared = declared_columns(source.schema, name) if source.schema else []
    refuse_reserved(name, [column for column, _ in declared])
    columns = [f"{quoted(column)} {column_type}" for column, column_type in declared]
    if kind in FILES:
        options |= {option: value for option, value in _DEFAULTS.items() if option.lower() not in given}
    if kind == "json" and by_texts(options):
        return json_records(spark, path, declared, options, keys)
    if kind == "csv" and "enforceschema" not in given:
        # else Spark takes a header for granted: values of columns in another order would change places in silence
        options |= {"enforceSchema": "false"}
    if kind in PARSED:
        options |= {"columnNameOfCorruptRecord": MALFORMED}
        options |= {} if "mode" in given else {"mode": "PERMISSIVE"}
        columns.append(f"{quoted(MALFORMED)} string")
    if columns:
        reader = reader.schema(", ".join(columns))
    for option, value in options.items():
        reader = reader.option(option, value)
    return _valid(reader.load(path) if path else reader.load())


def _valid(frame: DataFrame) -> DataFrame:
    """Texts that are no UTF-8, which other readers of our tables cannot read, with U+FFFD for what is wrong in them."""
    from pyspark.sql import functions as F

    texts = {field.name for field in frame.schema if field.dataType.typeName() == "string"}
    if not texts:
        return frame
    columns = ((name, F.col(quoted(name))) for name in frame.columns)
    return frame.select(*((F.make_valid_utf8(c).alias(n) if n in texts else c) for n, c in columns))


@contextmanager
def _configured(spark: SparkSession) -> Iterator[None]:
    """What the landing relies on, for the time of a streaming query: it copies the session's settings as it starts."""
    before = {key: spark.conf.get(key, None) for key in _CONF}
    for key, value in _CONF.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def _publish(log: DeltaLog, name: str) -> int:
    """Makes a version of the landing table of each batch that the sink has completed and that is none yet."""
    app, landed = f"landing:{name}", 0
    while True:
        version = log.version()
        done = log.app_version(app, version)
        waiting = [batch for batch in _batches(log) if done is None or batch > done]
        if not waiting:
            return landed
        try:
            for batch in waiting:
                files = [describe_file(log.uri, f"data/{path}", log.storage_options) for path in _files(log, batch)]
                files = [file for file in files if file.rows]
                if not files and batch != waiting[-1]:
                    continue
                if files:
                    version = log.commit(files, [], app=(app, batch), base_version=version)
                    landed += 1
                    crash_point("format.landed", log.uri)
            return landed
        except CommitConflict:
            continue  # another run lands the same batches: what it has done is seen in its tag


def _batches(log: DeltaLog) -> list[int]:
    """The numbers of the batches that the sink has completed, ascending."""
    fs, base = filesystem(log.uri, log.storage_options)
    folder = f"{base}/{BATCHES}"
    if fs.get_file_info(folder).type != pafs.FileType.Directory:
        return []
    names = [info.base_name for info in fs.get_file_info(pafs.FileSelector(folder))]
    return sorted(int(name) for name in names if name.isdigit())


def _files(log: DeltaLog, batch: int) -> list[str]:
    """The files of a batch: after a line with the log's version, a JSON object a line."""
    fs, base = filesystem(log.uri, log.storage_options)
    with fs.open_input_stream(f"{base}/{BATCHES}/{batch}") as source:
        lines = source.read().decode().splitlines()[1:]
    entries = [json.loads(line) for line in lines if line.strip()]
    return [unquote(entry["path"]).rsplit("/", 1)[-1] for entry in entries if entry.get("action") == "add"]
