"""OpenLineage: what a task has read and written as facets of Airflow's provider, where that is there and switched on.

Without the provider nothing of this is imported. What is told is gathered in the task's own process, after the job:
the provider asks for it in a fork, where nothing may be used that has threads of its own, as delta-rs has.

Datasets are named by OpenLineage's rules (https://openlineage.io/docs/spec/naming), column lineage has its words
(https://openlineage.io/docs/spec/facets/dataset-facets/column_lineage_facet).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweeparea.spark_jobs.application import Application
    from sweeparea.spark_jobs.commands.lineage import Fields, Judged, Lineage, Table, WrittenTable

log = logging.getLogger(__name__)

PROVIDER = "airflow.providers.openlineage"
_CANONICAL = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs"}
_OBJECT_STORES = ("s3", "gs", "abfss", "wasbs")


def wanted() -> bool:
    """Whether somebody listens: the provider, which Airflow has loaded then, and whose settings name a transport."""
    conf = sys.modules.get(f"{PROVIDER}.conf")
    return conf is not None and f"{PROVIDER}.plugins.listener" in sys.modules and not conf.is_disabled()


def commits(app: str, names: Iterable[str]) -> dict[str, int]:
    """By name its last commit before a run, for ``gathered``; none where the job is about to tell what is wrong."""
    from sweeparea.spark_jobs.application import Application
    from sweeparea.spark_jobs.commands.lineage import last_commits

    try:
        return last_commits(Application.open(app), names)
    except Exception as error:
        log.debug("The last commits of %s are not known: %s", app, error)
        return {}


def gathered(app: str, since: Mapping[str, int | None]) -> list[Lineage]:
    """The lineage of names, with what was committed behind ``since``. What cannot be had is left out: lineage fails no
    task.
    """
    from sweeparea.spark_jobs.commands.lineage import lineage

    return _each(app, since, lambda opened, name: lineage(opened, name, since[name]))


def declared(app: str, names: Iterable[str]) -> list[Lineage]:
    """The tables of names before a run: asked for in a fork of a process that may have used delta-rs, whose threads
    are not in it, so no table is opened.
    """
    from sweeparea.spark_jobs.commands.lineage import declared

    return _each(app, names, declared)


def _each(app: str, names: Iterable[str], lineage: Callable[[Application, str], Lineage]) -> list[Lineage]:
    from sweeparea.spark_jobs.application import Application

    found: list[Lineage] = []
    opened: Application | None = None
    for name in names:
        try:
            opened = opened or Application.open(app)
            found.append(lineage(opened, name))
        except Exception as error:
            log.warning("The lineage of %s.%s is not told: %s", app, name, error)
    return found


def facets(found: Iterable[Lineage]) -> Any:
    """Lineages as the provider wants them: an OperatorLineage."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.facet_v2 import sql_job

    inputs: dict[tuple[str, str], Any] = {}
    outputs: dict[tuple[str, str], Any] = {}
    texts: list[str] = []
    for lineage in found:
        for table in lineage.inputs:
            inputs.setdefault(dataset_name(table.address), _input(table))
        for written in lineage.outputs:
            outputs[dataset_name(written.table.address)] = _output(written)
        texts.append(lineage.text)
    # of a group one query may read what another has written: it is both
    jobs = {"sql": sql_job.SQLJobFacet(query=";\n\n".join(texts))} if texts else {}
    return OperatorLineage(inputs=list(inputs.values()), outputs=list(outputs.values()), job_facets=jobs)


def dataset_name(address: str) -> tuple[str, str]:
    """Namespace and name of the table at an address.

    >>> dataset_name("/data/shop/results/revenue"), dataset_name("file:///data/x/")
    (('file', '/data/shop/results/revenue'), ('file', '/data/x'))
    >>> dataset_name("s3a://lake/shop/results/revenue")
    ('s3://lake', 'shop/results/revenue')
    >>> dataset_name("abfss://box@account.dfs.core.windows.net/shop"), dataset_name("hdfs://name:8020/shop")
    (('abfss://box@account.dfs.core.windows.net', 'shop'), ('hdfs://name:8020', '/shop'))
    """
    if "://" not in address:
        return "file", address.rstrip("/") or "/"
    scheme, rest = address.split("://", 1)
    scheme = _CANONICAL.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        return "file", "/" + rest.split("/", 1)[-1].strip("/")
    # not urlsplit's path: "#" and "?" are letters of a key
    authority, _, path = rest.partition("/")
    path = path.rstrip("/")
    return f"{scheme}://{authority}", (path or "/") if scheme in _OBJECT_STORES else f"/{path}"


def _input(table: Table) -> Any:
    from openlineage.client.event_v2 import InputDataset

    namespace, name = dataset_name(table.address)
    return InputDataset(namespace=namespace, name=name, facets=_described(table))


def _output(written: WrittenTable) -> Any:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import (
        column_lineage_dataset,
        data_quality_assertions_dataset,
        output_statistics_output_dataset,
    )

    namespace, name = dataset_name(written.table.address)
    told = _described(written.table)
    columns = {
        column: column_lineage_dataset.Fields(inputFields=_fields(given)) for column, given in written.made.items()
    }
    if columns:
        told["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(
            fields=columns, dataset=_fields(written.decided)
        )
    if written.checks:
        told["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            assertions=[_assertion(check) for check in written.checks]
        )
    counted = {}
    if written.rows is not None:
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=written.rows)
        counted["outputStatistics"] = statistics
    return OutputDataset(namespace=namespace, name=name, facets=told, outputFacets=counted)


def _described(table: Table) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset, storage_dataset

    fields = [schema_dataset.SchemaDatasetFacetFields(name=column, type=kind) for column, kind in table.columns]
    found: dict[str, Any] = {"storage": storage_dataset.StorageDatasetFacet(storageLayer="delta", fileFormat="parquet")}
    if fields:
        found["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields)
    return found


def _fields(given: Fields) -> list[Any]:
    from openlineage.client.facet_v2 import column_lineage_dataset

    found = []
    for (address, column), how in sorted(given.items()):
        namespace, name = dataset_name(address)
        transformations = [
            column_lineage_dataset.Transformation(type="DIRECT" if each.direct else "INDIRECT", subtype=each.value)
            for each in sorted(how)
        ]
        found.append(
            column_lineage_dataset.InputField(
                namespace=namespace, name=name, field=column, transformations=transformations
            )
        )
    return found


def _assertion(check: Judged) -> Any:
    from openlineage.client.facet_v2 import data_quality_assertions_dataset

    # rows that break it
    known: dict[str, Any] = {
        "severity": "warn" if check.warns else "error",
        "expected": "0",
        "actual": str(check.broken),
    }
    assertion = data_quality_assertions_dataset.Assertion
    # older clients know none of these
    taken = {key: value for key, value in known.items() if key in {a.name for a in assertion.__attrs_attrs__}}  # type: ignore[attr-defined]
    return assertion(assertion=check.name, success=not check.broken, column=check.column, **taken)
