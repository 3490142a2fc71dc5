"""No DAGs: fails to import while some application cannot be loaded, so that Airflow shows where it is wrong."""

from __future__ import annotations

from sweeparea.dags.factory import build
from sweeparea.dags.model import ApplicationError, as_fault, load_all

_loaded, _broken = load_all()
for _application in _loaded:
    try:
        build(_application)
    except Exception as _error:
        _broken[_application.name] = as_fault(_error)
if _broken:
    raise ApplicationError("\n\n".join(f"Application {name}: {error}" for name, error in sorted(_broken.items())))
