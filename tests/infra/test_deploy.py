"""The templates of ``infra/deploy``: valid by their schemas, and fitting each other and what they run."""

from __future__ import annotations

import ast
import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sweeparea.dags import model
from sweeparea.infra import environments
from sweeparea.spark_jobs.commands.command_line.program import PROGRAM

ROOT = Path(__file__).resolve().parents[2]
FILES, SCHEMAS = ROOT / "infra" / "deploy", Path(__file__).parent / "schemas"
KUBERNETES = json.loads((SCHEMAS / "kubernetes.json").read_text())


def check(content: Any, schema: dict[str, Any]) -> None:
    """Raises jsonschema's error for what is not as a schema says."""
    own = json.loads(json.dumps(schema).replace('"kubernetes.json#', '"#'))
    jsonschema.Draft7Validator(
        {**own, "definitions": {**KUBERNETES["definitions"], **own.get("definitions", {})}}
    ).validate(content)


def chart() -> dict[str, Any]:
    return json.loads((SCHEMAS / "airflow-chart-values.json").read_text())


@pytest.fixture
def compose() -> dict[str, Any]:
    return yaml.safe_load((FILES / "docker-compose.yaml").read_text())


@pytest.fixture
def values() -> dict[str, Any]:
    return yaml.safe_load((FILES / "values.yaml").read_text())


@pytest.fixture
def objects() -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all((FILES / "spark-connect.yaml").read_text())}


def test_compose_is_valid_and_slips_are_noticed(compose: dict[str, Any]):
    schema = json.loads((SCHEMAS / "compose-spec.json").read_text())
    jsonschema.validate(compose, schema)
    for path, wrong in (("services", {"x": {"imagee": "y"}}), ("volumes", []), ("services", {"x": {"ports": "8080"}})):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**compose, path: wrong}, schema)


def test_services_use_what_there_is(compose: dict[str, Any]):
    services = compose["services"]
    for name, service in services.items():
        assert {*service.get("depends_on", {})} <= {*services}, name
        mounted = [
            volume.partition(":")[0] for volume in service.get("volumes", []) if not volume.startswith(("$", "."))
        ]
        assert {*mounted} <= {*compose["volumes"]}, name
        # who may be reached from elsewhere: the API server, from this machine
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        for text in map(str, service.get("environment", {}).values()):
            secret = re.search(r"\$\{(\w+)(.*?)\}", text)
            assert secret is None or secret[2].startswith(":?"), f"{name} would start without {text}"
    environment = services["scheduler"]["environment"]
    assert environment["SPARK_REMOTE"] == "sc://spark-connect:15002"
    assert services["spark-connect"]["entrypoint"][-1] == "15002"


def test_kubernetes_objects_and_values_are_valid_and_slips_are_noticed(values: dict[str, Any], objects):
    check(values, chart())
    for kind, one in objects.items():
        check(one, KUBERNETES["definitions"][kind])
    for wrong in (
        {"executor": "local"},
        {"image": {}},
        {"env": [{"name": "A", "value": 1}]},
        {"volumes": [{"nam": "x"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            check({**values, **wrong}, chart())
    slip = copy.deepcopy(objects["Deployment"])
    slip["spec"]["template"]["spec"]["containers"][0]["images"] = "x"
    with pytest.raises(jsonschema.ValidationError):
        check(slip, KUBERNETES["definitions"]["Deployment"])


def test_the_server_of_the_cluster_is_the_one_that_tasks_ask(values: dict[str, Any], objects):
    environment = {one["name"]: one["value"] for one in values["env"]}
    service, pod = objects["Service"], objects["Deployment"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    port = container["ports"][0]["containerPort"]
    assert environment["SPARK_REMOTE"] == f"sc://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert (str(port), port) == (container["command"][-1], service["spec"]["ports"][0]["port"])
    image = values["images"]["airflow"]
    assert container["image"] == f"{image['repository']}:{image['tag']}"  # one Python, one SweepArea on both sides
    claims = {v["persistentVolumeClaim"]["claimName"] for v in (values["volumes"][0], pod["spec"]["volumes"][0])}
    assert claims == {objects["PersistentVolumeClaim"]["metadata"]["name"]}
    assert container["volumeMounts"][0] == values["volumeMounts"][0]
    assert values["volumes"][1]["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]


def test_commands_of_the_images_are_those_of_the_program(compose: dict[str, Any], objects):
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    for words in (container["command"], compose["services"]["spark-connect"]["entrypoint"]):
        assert words[0] == "/opt/sweeparea/bin/sweeparea"
        PROGRAM.commands[words[1]].make_context(words[1], list(words[2:]))
    dockerfile = (FILES / "Dockerfile").read_text()
    assert "python -m venv /opt/sweeparea " in dockerfile
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"sweeparea-{version[1]}-py3-none-any.whl" in dockerfile


def test_the_application_in_both_templates_is_one_that_can_be_loaded(objects, tmp_path: Path):
    inside = objects["ConfigMap"]["data"]
    for name, text in inside.items():
        folder = FILES / ("dags" if name.endswith(".py") else "shop")
        assert (folder / name).read_text() == text, name
    call = next(
        node
        for node in ast.walk(ast.parse(inside["shop.py"]))
        if getattr(node, "args", None)
        and isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "application_dags"
    )
    assert isinstance(call, ast.Call)
    assert [ast.literal_eval(argument) for argument in call.args] == ["/opt/shop"]
    loaded = model.load(f"{FILES / 'shop'}@prod")
    assert (loaded.data_folder, [*loaded.queries]) == ("/lake/shop", ["sales"])
    assert environments.names(FILES / "shop") == ["prod"]
