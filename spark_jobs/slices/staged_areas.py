"""The SweepAreas that a slice has written: all of them there, and staged in place of what they replace."""

from __future__ import annotations

from sweeparea.infra.errors import SweepAreaError
from sweeparea.operators import bridge
from sweeparea.operators.state.area_files import growth
from sweeparea.spark_jobs.evaluation.areas import SweepAreas
from sweeparea.tables.log.files import DataFile, describe_file
from sweeparea.tables.log.folders import files_in
from sweeparea.tables.publication.info import AreasInfo
from sweeparea.tables.publication.publish import Publication


def stage_areas(publication: Publication, attempt: str, areas: SweepAreas) -> AreasInfo:
    """Stages the SweepAreas; returns what the ledger says of them."""
    previous = publication.previous
    told = previous.of_query.state if previous is not None else AreasInfo()
    told.touched.clear()
    for op, removes in areas.staged.items():
        adds = _carried(publication.name, op, attempt, areas)
        publication.stage(areas.log(op).uri, adds=adds, removes=removes, base_version=areas.versions.get(op))
        replaced = {file.path for file in removes}
        left = [*(file for file in areas.files(op) if file.path not in replaced), *adds]
        told.holds(op, sum(file.rows for file in left), sum(file.size for file in left))
        own = [file for file in adds if f"{op}.m-" not in file.path]  # the others are merged ones
        told.touched[op] = sum(file.rows for file in own)
        if op in areas.workers and (op in areas.counts or not areas.files(op)):
            areas.counts[op] = areas.counts.get(op, 0) + sum(growth(file) for file in own)
    told.live, told.keys = areas.counts, {**told.keys, **areas.keys}
    return told


def _carried(name: str, op: str, attempt: str, areas: SweepAreas) -> list[DataFile]:
    """The files that the sweep of ``op`` has staged: of a keyed one each worker has left one at least."""
    root = areas.log(op).uri
    names = [f.base_name for f in files_in(f"{root}/data/{attempt}") if f.extension == "parquet"]
    complete, jobs = bool(names) or op in areas.may_be_silent or not areas.files(op), 2 if op in areas.twice else 1
    if op in areas.workers:
        complete = len({n.split("-")[1] for n in names if n.startswith(f"{op}.c-")}) == jobs * areas.workers[op]
    elif op not in areas.may_be_silent:  # a partition more is one whose sweep has run twice
        complete = complete and len({n.split("-")[1] for n in names}) <= jobs * areas.partitions
    if not complete:
        raise SweepAreaError(
            f"{name}: the sweep of {op} did not run, or not for every key. Nothing was"
            " published. This is a defect of the engine: please report the query."
        )
    files = (describe_file(root, f"data/{attempt}/{name}") for name in bridge.staged_carry(names))
    return [file for file in files if file.rows]
