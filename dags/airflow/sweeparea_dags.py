"""The DAGs of all applications under ``queries/``. Airflow parses this file; what it shows as DAGs is made in
``factory``.

An application that cannot be loaded is left out here, and is an import error of ``sweeparea_broken.py`` beside this
file: an import error of one file makes Airflow stop every DAG of that file, and a typing slip must not stop other
applications.
"""

from __future__ import annotations

from airflow.sdk import get_parsing_context

from sweeparea.dags.factory import build
from sweeparea.dags.model import load_all

_wanted = get_parsing_context().dag_id
for _application in load_all(_wanted)[0]:
    try:
        globals().update({_dag.dag_id: _dag for _dag in build(_application, _wanted)})
    except Exception:  # whatever it is, it is this application's: sweeparea_broken.py tells it
        continue
