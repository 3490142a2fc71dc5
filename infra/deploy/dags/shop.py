"""Airflow: the DAGs of the application in /opt/shop."""

from sweeparea.dags import application_dags

globals().update(application_dags("/opt/shop", env="prod"))
