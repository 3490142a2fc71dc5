"""What Airflow is told of this package: its operators, and the connection types that its forms offer."""

from __future__ import annotations

from typing import Any

from sweeparea.dags.connections import SPARK_TYPE, STORAGE_TYPE

INTEGRATION = "SweepArea"


def _field(label: str, description: str, secret: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "null"], **({"format": "password"} if secret else {})}
    return {"label": label, "description": description, "schema": schema}


def get_provider_info() -> dict[str, Any]:
    """The provider's metadata (entry point ``apache_airflow_provider``). Imports nothing of Airflow or Spark."""

    def modules(*names: str) -> list[dict[str, Any]]:
        return [{"integration-name": INTEGRATION, "python-modules": list(names)}]

    return {
        "package-name": "sweeparea",
        "name": INTEGRATION,
        "description": "Continuous queries over Delta tables, exact at every instant.",
        "integrations": [{"integration-name": INTEGRATION, "external-doc-url": "", "tags": ["service"]}],
        "operators": modules("sweeparea.dags.operator", "sweeparea.dags.processing"),
        "sensors": modules("sweeparea.dags.sensor"),
        "triggers": modules("sweeparea.heartbeats.trigger", "sweeparea.heartbeats.result_trigger"),
        "hooks": modules("sweeparea.dags.hooks"),
        "connection-types": [_spark(), _storage()],
    }


def _spark() -> dict[str, Any]:
    return {
        "connection-type": SPARK_TYPE,
        "hook-class-name": "sweeparea.dags.hooks.SparkHook",
        "hook-name": "SweepArea: Spark",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "extra"],
            "relabeling": {"host": "Server or master", "login": "User", "password": "Token"},
            "placeholders": {"host": "spark.example (Spark Connect), spark://master or local[2]", "port": "15002"},
        },
        "conn-fields": {
            "use_ssl": _field("TLS", "true: Spark Connect is reached by TLS"),
            "python": _field("Python", "interpreter under which tasks run, such as /opt/sweeparea/bin/python"),
            "spark_submit": _field("spark-submit", "path of spark-submit, which then starts the task's driver"),
            "driver_host": _field("Driver's address", "with a cluster: where its workers reach the task"),
            "executor_memory": _field("Executor memory", "with a cluster: heap of each executor, such as 2g"),
            "worker_python": _field("Workers' Python", "with a cluster: interpreter of Spark's Python workers"),
        },
    }


def _storage() -> dict[str, Any]:
    return {
        "connection-type": STORAGE_TYPE,
        "hook-class-name": "sweeparea.dags.hooks.StorageHook",
        "hook-name": "SweepArea: object store",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "extra", "host", "port"],
            "relabeling": {"login": "Access key id", "password": "Secret access key"},
            "placeholders": {},
        },
        "conn-fields": {
            "endpoint_url": _field("Endpoint", "address of an S3 server; empty: Amazon's own"),
            "region_name": _field("Region", "such as eu-central-1"),
            "aws_session_token": _field("Session token", "of temporary keys", secret=True),
        },
    }
