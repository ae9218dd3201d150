"""The manifests follow Kubernetes' schemas, name only what the code has, and give no pod more than it needs."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from app.jobs import QUEUES
from app.main import create_app
from app.metrics import declared
from app.settings import Settings
from tests.architecture.sources import ROOT
from workers.schedule import SWEEP_QUEUE

FOLDER = ROOT / "deploy" / "kubernetes"
# What Kubernetes itself has no schema for.
OTHERS = {"Kustomization", "Component"}
# Read by libraries, not by Trellis: the store of originals, and Redis' own.
FOREIGN = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "REDIS_PASSWORD", "REDISCLI_AUTH"}
VERSION = "1.34"
# Each is applied by itself: a release, its migration before it, and the operator's commands.
APPLIED = [FOLDER, FOLDER / "migrate", FOLDER / "operator"]


def documents() -> Iterator[dict[str, Any]]:
    for file in sorted(FOLDER.rglob("*.yaml")):
        yield from (document for document in yaml.safe_load_all(file.read_text()) if document)


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [document for document in documents() if document["kind"] in kinds]


def pods() -> dict[str, dict[str, Any]]:
    """The pod of each deployment and job, by its name."""
    return {item["metadata"]["name"]: item["spec"]["template"] for item in of_kind("Deployment", "Job")}


def containers() -> dict[str, dict[str, Any]]:
    return {name: pod["spec"]["containers"][0] for name, pod in pods().items()}


def ours() -> dict[str, dict[str, Any]]:
    """Containers of the application's image."""
    return {name: item for name, item in containers().items() if item["image"].startswith("trellis:")}


@pytest.mark.parametrize("file", sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.yaml")))
def test_manifests_follow_the_schema(file: str) -> None:
    for document in yaml.safe_load_all((FOLDER / file).read_text()):
        if document["kind"] not in OTHERS:
            kubernetes_validate.validate(document, VERSION, strict=True)


def applied_by(folder: Path) -> list[Path]:
    """What `kubectl apply -k` of a folder applies."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert [(folder / name).resolve() for name in kustomization["components"]] == [FOLDER / "images"], folder
    return [folder / name for name in kustomization["resources"]]


def test_every_manifest_is_applied_in_one_way_that_knows_the_images() -> None:
    applied = [path for folder in APPLIED for path in applied_by(folder)]
    assert sorted(applied) == sorted(path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("part", [folder.relative_to(FOLDER) for folder in APPLIED], ids=str)
def test_an_image_that_is_named_in_the_one_place_is_run_everywhere(part: Path, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "copy")
    images = tmp_path / "copy" / "images" / "kustomization.yaml"
    images.write_text(
        images.read_text().replace("newName: ", "newName: registry.example.com/").replace("0.1.0", "0.2.0")
    )
    answer = subprocess.run(["kubectl", "kustomize", tmp_path / "copy" / part], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    made = [item for item in yaml.safe_load_all(answer.stdout) if item["kind"] in ("Deployment", "Job")]
    run = {container["image"] for item in made for container in item["spec"]["template"]["spec"]["containers"]}
    assert "registry.example.com/trellis:0.2.0" in run
    assert run <= {"registry.example.com/trellis:0.2.0", "registry.example.com/trellis-redis:8"}


def test_every_variable_is_a_setting_and_every_secret_a_reference() -> None:
    known = {f"TRELLIS_{name.upper()}" for name in Settings.model_fields} | FOREIGN
    secret = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    for container in containers().values():
        for entry in container.get("env", ()):
            assert entry["name"] in known
            assert (entry["name"].removeprefix("TRELLIS_").lower() in secret) <= ("valueFrom" in entry), entry["name"]
    (config,) = of_kind("ConfigMap")
    assert config["data"].keys() <= known - {f"TRELLIS_{name.upper()}" for name in secret}


def test_every_process_that_serves_is_kept_from_the_owner() -> None:
    with_owner = [name for name, item in ours().items() if "OWNER" in str(item.get("env"))]
    assert sorted(with_owner) == ["migrate", "operator"]


def test_every_queue_has_one_pool() -> None:
    served = [
        queue for item in ours().values() if "-Q" in item.get("args", ()) for queue in item["args"][-1].split(",")
    ]
    assert sorted(served) == sorted((*QUEUES, SWEEP_QUEUE))


def test_pods_may_do_as_little_as_they_can() -> None:
    for name, pod in pods().items():
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip
        assert container["resources"]["limits"]["memory"], name
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}


def test_pods_are_given_longer_to_stop_than_work_is_given_to_finish() -> None:
    grace = Settings.model_fields["shutdown_grace_seconds"].default
    for name, pod in pods().items():
        if name.startswith("worker"):
            assert pod["spec"]["terminationGracePeriodSeconds"] > grace + 30, name


def test_probes_ask_for_what_there_is() -> None:
    paths = create_app().openapi()["paths"].keys()
    probed = set()
    for container in ours().values():
        names = {port["name"] for port in container.get("ports", ())}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            for way in ("httpGet", "tcpSocket"):
                asked = container.get(probe, {}).get(way)
                if asked is not None:
                    assert asked["port"] in names
                    probed.add(asked.get("path", "/metrics"))
    assert probed == {"/healthz", "/readyz", "/metrics"}
    assert probed <= paths


def test_what_is_scaled_is_there_and_follows_a_metric_that_is_told() -> None:
    deployments = {item["metadata"]["name"] for item in of_kind("Deployment")}
    labels = {name: set(names) for name, _, names in declared()}
    for scaler in of_kind("HorizontalPodAutoscaler"):
        assert scaler["spec"]["scaleTargetRef"]["name"] in deployments
        for metric in scaler["spec"]["metrics"]:
            if metric["type"] == "External":
                told = metric["external"]["metric"]
                assert set(told["selector"]["matchLabels"]) <= labels[told["name"]]


def test_selectors_select_pods() -> None:
    labels = [pod["metadata"]["labels"] for pod in pods().values()]
    for document in of_kind("PodDisruptionBudget", "Service", "NetworkPolicy", "Deployment"):
        spec = document["spec"]
        selector = spec.get("selector") or spec.get("podSelector") or {}
        wanted = selector if document["kind"] == "Service" else selector.get("matchLabels", {})
        for expression in selector.get("matchExpressions", ()):
            for value in expression["values"]:
                assert any(item.get(expression["key"]) == value for item in labels), document["metadata"]
        assert any(wanted.items() <= item.items() for item in labels), document["metadata"]


def test_images_are_those_of_the_compose_file() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert {item["image"] for item in containers().values()} <= {service["image"] for service in compose.values()}
