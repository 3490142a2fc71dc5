"""Airflow writes a configuration file into its home when it is imported: here that must not be the user's."""

from __future__ import annotations

import os
import tempfile

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="sweeparea-airflow-"))
