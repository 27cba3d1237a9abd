"""What refdesk is shipped with beside the wheel passes the linters of those whose formats they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from refdesk.queues.bullmq.jobs import QUEUE_NAME
from refdesk.settings import compose, variable
from tests import npm
from tests.conftest import REPOSITORY
from tests.packaging.conftest import find_tool
from tests.packaging.versions import list_versions

DEPLOY = REPOSITORY / "deploy"
CHART = DEPLOY / "helm" / "refdesk"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))

# The part of the registry's published format that is used here, in JSON Schema: limits and names are its own.
ARGUMENT = {
    "oneOf": [
        {
            "properties": {"type": {"const": "positional"}},
            "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
        },
        {"properties": {"type": {"const": "named"}}, "required": ["name"]},
    ],
    "required": ["type"],
}
VARIABLE = {"required": ["name"], "properties": {"isSecret": {"type": "boolean"}, "default": {"type": "string"}}}
PACKAGE = {
    "required": ["registryType", "identifier", "transport"],
    "properties": {
        "version": {"type": "string", "minLength": 1, "not": {"const": "latest"}},
        "transport": {"required": ["type"], "properties": {"type": {"enum": ["stdio", "streamable-http", "sse"]}}},
        "packageArguments": {"type": "array", "items": ARGUMENT},
        "environmentVariables": {"type": "array", "items": VARIABLE},
    },
}
SERVER: dict[str, Any] = {
    "required": ["name", "description", "version"],
    "properties": {
        "name": {"pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": {"minLength": 1, "maxLength": 100},
        "description": {"minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255},
        "packages": {"type": "array", "items": PACKAGE},
    },
}


def check(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def require(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        reason = f"{name} is not installed"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return found


def test_every_file_names_the_same_version() -> None:
    assert len(set(list_versions().values())) == 1, list_versions()


def test_the_image_passes_its_linter_and_a_planted_fault_does_not(tmp_path: Path) -> None:
    linter = find_tool("hadolint")
    if not linter.is_file():
        pytest.skip("hadolint is built for Linux on x86-64")
    check(linter, REPOSITORY / "Dockerfile")
    planted = tmp_path / "Dockerfile"
    planted.write_text("FROM python:latest\nRUN cd /tmp && pip install x\n")
    assert subprocess.run([linter, planted], capture_output=True, check=False).returncode != 0


def test_the_image_is_not_root_and_takes_only_what_it_is_built_from() -> None:
    lines = (REPOSITORY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"]
    bases = {line.split()[1] for line in lines if line.startswith("FROM")}
    assert all(re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", base) for base in bases)
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    copied = {part for line in lines if re.match(r"COPY (?!--from)", line) for part in line.split()[1:-1]}
    assert "*" in ignored
    assert copied == {line[1:] for line in ignored if line.startswith("!")}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_verified_by_systemd_and_gives_little_away(unit: Path, tmp_path: Path) -> None:
    analyze = require("systemd-analyze")
    here = tmp_path / unit.name
    # systemd looks whether the program is there: this repository's stands for the one that is installed.
    here.write_text(unit.read_text().replace("/opt/refdesk/bin/refdesk", str(REPOSITORY / ".venv/bin/refdesk")))
    check(analyze, "verify", "--man=no", here)
    check(analyze, "security", "--offline=true", "--threshold=20", here)  # in tenths: 2.0 of 10


def test_the_registrys_entry_keeps_its_format_and_names_what_the_package_says() -> None:
    entry = json.loads((REPOSITORY / "server.json").read_text())
    jsonschema.validate(entry, SERVER)
    # The registry looks for this in the description of the package, which is the README.
    assert f"mcp-name: {entry['name']}" in (REPOSITORY / "README.md").read_text()
    for planted in ({"name": "refdesk"}, {"description": "x" * 101}, {"packages": [{"registryType": "pypi"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**entry, **planted}, SERVER)


def test_the_bundle_validates_packs_and_starts_the_server(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    find_tool("hatchling")
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir("tools") / "mcpb"
    npm.install(Path(__file__).parent / "node", folder, "the bundles' own tool")
    tool = folder / "node_modules" / ".bin" / "mcpb"
    assert "passes" in check(tool, "validate", DEPLOY / "mcpb" / "manifest.json")
    bundle = tmp_path / "refdesk.mcpb"
    check(tool, "pack", DEPLOY / "mcpb", bundle)
    check(tool, "unpack", bundle, tmp_path / "unpacked")
    program = [REPOSITORY / ".venv/bin/python", tmp_path / "unpacked" / "serve.py", "--isolated", "--help"]
    assert "refdesk serve" in check(*program)


@pytest.mark.parametrize("path", sorted((REPOSITORY / ".github/workflows").glob("*.yml")), ids=lambda path: path.name)
def test_a_workflow_grants_no_more_than_it_needs(path: Path) -> None:
    flow = yaml.safe_load(path.read_text())
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        for step in job["steps"]:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False
            assert "secrets." not in json.dumps(step)


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What renders the chart: Helm is a hundred times as large, and its templates are those of Go's own library."""
    find_tool("kubernetes-validate")
    go, made = shutil.which("go"), tmp_path_factory.mktemp("renderer") / "render"
    if go is None:
        pytest.skip("Go is not installed")
    command = [go, "build", "-mod=readonly", "-o", made, "."]
    done = subprocess.run(
        command, cwd=Path(__file__).parent / "chart", capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return made


EVERYTHING = """
worker: {autoscaling: {enabled: true}}
server: {autoscaling: {enabled: true}}
ingress: {enabled: true, tlsSecret: tls, className: nginx, annotations: {a: b}}
settings: {ALLOWED_HOSTS: desk.example.org, LOG_LEVEL: debug}
"""
ELSEWHERE = """
postgresql: {enabled: false}
redis: {enabled: false}
networkPolicy: {enabled: false}
existingSecret: engines
imagePullSecrets: [{name: pull}]
image: {digest: "sha256:0"}
"""


@pytest.mark.parametrize("values", ["{}", EVERYTHING, ELSEWHERE], ids=["defaults", "everything", "elsewhere"])
def test_the_chart_makes_valid_objects(values: str, renderer: Path, tmp_path: Path) -> None:
    found = [each for each in yaml.safe_load_all(check(renderer, CHART, values)) if each]
    operators = [each for each in found if "keda" in each["apiVersion"] or "cnpg" in each["apiVersion"]]
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all(each for each in found if each not in operators))
    check(find_tool("kubernetes-validate"), "--strict", path)
    kinds = sorted(each["kind"] for each in operators)
    assert kinds == {"{}": ["Cluster"], EVERYTHING: ["Cluster", "ScaledObject"], ELSEWHERE: []}[values]
    for each in (each for each in found if each["kind"] == "Deployment"):
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert all(one["securityContext"]["readOnlyRootFilesystem"] for one in pod["containers"])
        assert each["spec"]["selector"]["matchLabels"].items() <= each["spec"]["template"]["metadata"]["labels"].items()


def test_the_chart_serves_the_names_that_clients_call_and_scales_by_the_queue(renderer: Path) -> None:
    found = [each for each in yaml.safe_load_all(check(renderer, CHART, EVERYTHING)) if each]
    [scaled] = [each for each in found if each["kind"] == "ScaledObject"]
    counted = [each["metadata"]["listName"] for each in scaled["spec"]["triggers"]]
    assert counted == [f"bull:{QUEUE_NAME}:{jobs}" for jobs in ("wait", "prioritized")]
    [server] = [each for each in found if each["kind"] == "Deployment" and each["metadata"]["name"] == "desk-refdesk"]
    env = {each["name"]: each.get("value") for each in server["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env.keys() - {"DATABASE_PASSWORD"} <= {variable(name) for name in compose().model_fields}
    assert env["REFDESK_STORE_READ"] == "postgresql://refdesk:$(DATABASE_PASSWORD)@desk-refdesk-db-ro:5432/refdesk"
    assert {"desk-refdesk.tools.svc", "desk.example.com", "desk.example.org"} <= set(
        env["REFDESK_ALLOWED_HOSTS"].split(",")
    )


SCALED_ELSEWHERE = """
redis: {enabled: false}
worker: {autoscaling: {enabled: true, redis: "redis.example.com:6380", authentication: password}}
"""


def test_the_chart_scales_workers_by_a_redis_of_ones_own(renderer: Path) -> None:
    found = [each for each in yaml.safe_load_all(check(renderer, CHART, SCALED_ELSEWHERE)) if each]
    [scaled] = [each for each in found if each["kind"] == "ScaledObject"]
    for each in scaled["spec"]["triggers"]:
        assert each["metadata"]["address"] == "redis.example.com:6380"
        assert each["authenticationRef"] == {"name": "password"}


def test_the_chart_asks_where_ones_own_redis_is_to_scale_workers(renderer: Path) -> None:
    values = "redis: {enabled: false}\nworker: {autoscaling: {enabled: true}}"
    done = subprocess.run([renderer, CHART, values], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode != 0, "set worker.autoscaling.redis" in done.stderr) == (True, True)


def test_the_chart_names_only_values_it_has() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    used = {
        name
        for path in (CHART / "templates").iterdir()
        for name in re.findall(r"\.Values((?:\.\w+)+)", path.read_text())
    }
    assert used
    for name in used:
        at = values
        for part in name.strip(".").split("."):
            assert part in at, name
            at = at[part]
