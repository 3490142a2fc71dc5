"""Airflow's DAGs of applications, and what DAGs of one's own take of SweepArea::

    from sweeparea.dags import application_dags, ResultSensor, SweepAreaProcessOperator

Nothing of Airflow is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sweeparea.dags.own_dags import application_dags
    from sweeparea.dags.processing import SweepAreaProcessOperator
    from sweeparea.dags.sensor import ResultSensor

__all__ = ["ResultSensor", "SweepAreaProcessOperator", "application_dags"]

_FROM = {"application_dags": "own_dags", "SweepAreaProcessOperator": "processing", "ResultSensor": "sensor"}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
