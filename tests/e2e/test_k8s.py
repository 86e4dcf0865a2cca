"""The appliance in Kubernetes: from no cluster at all to one that is gone again. The tests build on each other, in order."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from person import Bench

from bench.image import default_tag

pytestmark = [pytest.mark.k8s, pytest.mark.slow, pytest.mark.timeout(900)]

NAME = "raymeter-e2e"
K8S = Path(__file__).resolve().parents[2] / "k8s"
OPERATOR = os.environ.get("KUBERAY_MANIFESTS")
HERE = ("--target", "k8s", "--name", NAME, *(("--operator-manifests", OPERATOR) if OPERATOR else ()))
SMALL = ("--set", "batch=1000", "--set", "inputs=20000", "--set", "data_path=by-value")
RAY_PODS = ("pods", "--selector", "ray.io/is-ray-node=yes")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A person with no cluster, whose image is that of the code."""
    folder = tmp_path_factory.mktemp("k8s")
    mine = {"XDG_STATE_HOME": str(folder / "state"), "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}
    typed = Bench(folder, {**os.environ, **mine})
    subprocess.run(["kind", "delete", "cluster", "--name", NAME], env=typed.environment, check=True, timeout=60)
    code, _, err = typed("image")
    assert code == 0, err
    yield typed
    typed("down", "--target", "k8s", "--name", NAME)


def kubectl(bench: Bench, *words: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        ["kubectl", "--context", f"kind-{NAME}", *words],
        env=bench.environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def items(bench: Bench, *words: str, namespace: str = NAME) -> list[dict[str, Any]]:
    return list(json.loads(kubectl(bench, "get", *words, "--namespace", namespace, "--output=json"))["items"])


def wait_for(what: Callable[[], object], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(1)


def in_one_line(err: str) -> str:
    lines = [line for line in err.strip().splitlines() if line.startswith("bench: ")]
    assert len(lines) == 1, err
    assert err.strip().splitlines()[-1] == lines[0]
    return lines[0]


def test_up_makes_cluster_operator_and_appliance_where_nothing_is(bench: Bench) -> None:
    # The image is 3.4 GB, and goes into two nodes.
    process = bench.start("up", "--topology", "multi", *HERE)
    out, err = process.communicate(timeout=850)
    assert process.returncode == 0, err
    assert "head, worker-1" in out
    pods = items(bench, *RAY_PODS)
    assert {pod["status"]["qosClass"] for pod in pods} == {"Guaranteed"}
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    measured = {pod["spec"]["nodeName"] for pod in pods}
    others = {pod["spec"]["nodeName"] for pod in items(bench, "pods") if pod not in pods}
    assert not measured & others, "Prometheus and Grafana are on measured nodes"


def test_up_again_changes_nothing(bench: Bench) -> None:
    before = {pod["metadata"]["uid"] for pod in items(bench, "pods")}
    code, out, err = bench("up", "--topology", "multi", *HERE)
    assert code == 0, err
    assert "head, worker-1" in out
    assert {pod["metadata"]["uid"] for pod in items(bench, "pods")} == before


def test_a_run_counts_the_bytes_of_every_pod(bench: Bench) -> None:
    code, _, err = bench("run", "inference", "--blocks", "1", "--topology", "multi", *SMALL, *HERE)
    assert code == 0, err
    (run,) = bench.runs()
    assert run.status == "ok"
    assert run.facts is not None
    assert run.facts.link == "pod network"
    assert [node.cpu_quota for node in run.facts.nodes] == [1.0, 1.0]
    of_ray = [usage for usage in run.usage if usage.arm == "ray" and not usage.warmup]
    assert {usage.node for usage in of_ray} == {"head", "worker-1"}
    assert all(usage.cpu_seconds and usage.peak_memory_bytes for usage in of_ray)
    assert all(usage.sent_bytes for usage in of_ray if usage.node == "head")
    assert all(usage.received_bytes for usage in of_ray if usage.node == "worker-1")


def test_single_finds_a_worker_with_all_its_cpus_free(bench: Bench) -> None:
    code, _, err = bench("up", "--topology", "single", *HERE)
    assert code == 0, err
    (pod,) = items(bench, *RAY_PODS)
    assert pod["status"]["qosClass"] == "Guaranteed"
    assert "control-plane" not in pod["spec"]["nodeName"]


def test_what_does_not_fit_is_refused_with_the_numbers_before_anything_changes(bench: Bench) -> None:
    before = {pod["metadata"]["uid"] for pod in items(bench, "pods")}
    code, _, err = bench("up", "--topology", "single", "--cpus", "640", *HERE)
    assert code == 3
    assert "asks for 640 CPUs" in in_one_line(err)
    code, _, err = bench("up", "--topology", "single", "--memory-mib", "4096000", *HERE)
    assert code == 3
    assert "4000.1 GiB" in in_one_line(err)
    assert f"{NAME}-worker has" in in_one_line(err)
    assert {pod["metadata"]["uid"] for pod in items(bench, "pods")} == before


def test_an_image_that_cannot_be_had_is_named_with_the_node(bench: Bench) -> None:
    code, _, err = bench("up", "--topology", "single", "--image", "registry.invalid/nothing:1.0", *HERE)
    assert code == 4
    line = in_one_line(err)
    assert "registry.invalid/nothing:1.0" in line
    assert f"{NAME}-worker" in line
    assert items(bench, *RAY_PODS) == []


def test_a_printed_rayjob_runs_the_experiment_by_itself(bench: Bench) -> None:
    code, out, err = bench("manifest", "inference", "--topology", "multi", *SMALL, "--name", NAME)
    assert code == 0, err
    kubectl(bench, "apply", "--server-side", "--filename=-", stdin=out)

    def has_ended() -> bool:
        (job,) = items(bench, "rayjobs")
        status = job.get("status", {})
        assert status.get("jobDeploymentStatus") != "Failed", status
        return bool(status.get("jobStatus") == "SUCCEEDED")

    wait_for(has_ended, 240)
    (head,) = [pod for pod in items(bench, *RAY_PODS) if pod["metadata"]["labels"]["ray.io/node-type"] == "head"]
    inside = ("--namespace", NAME, "exec", head["metadata"]["name"], "--container", "ray", "--", "sh", "-c")
    assert '"status":"ok"' in kubectl(bench, *inside, "cat /records/*/runs/*/run.json")
    kubectl(bench, "delete", "rayjobs", "--all", "--namespace", NAME)
    wait_for(lambda: not items(bench, *RAY_PODS), 60)


def test_the_manifests_stand_the_appliance_up_without_the_command_line(bench: Bench) -> None:
    kubectl(bench, "apply", "--server-side", "--kustomize", str(K8S / "multi"))
    wait_for(lambda: len(items(bench, *RAY_PODS, namespace="raymeter")) == 2, 60)
    ready = ("--for=condition=Ready", "--timeout=110s", "--namespace=raymeter")
    kubectl(bench, "wait", *ready, *RAY_PODS)
    images = {c["image"] for pod in items(bench, *RAY_PODS, namespace="raymeter") for c in pod["spec"]["containers"]}
    assert images == {default_tag()}


def test_down_ends_a_namespace_that_was_made_by_hand_where_it_is_asked_to(bench: Bench) -> None:
    code, out, err = bench("down", "--target", "k8s", "--context", f"kind-{NAME}")
    assert code == 0, err
    assert "namespace raymeter" in out
    namespaces = {each["metadata"]["name"] for each in items(bench, "namespaces")}
    assert "raymeter" not in namespaces
    assert NAME in namespaces


def test_down_leaves_nothing(bench: Bench) -> None:
    code, out, err = bench("down", "--target", "k8s", "--name", NAME)
    assert code == 0, err
    assert f"kind cluster {NAME}" in out
    clusters = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=True, timeout=30)
    assert NAME not in clusters.stdout
    marked = [
        p for p in psutil.process_iter(["environ"]) if (p.info["environ"] or {}).get("RAYMETER_APPLIANCE") == NAME
    ]
    assert marked == []
    assert not list((bench.folder / "state/raymeter/k8s").glob("[!.]*"))
    assert bench("down", "--target", "k8s", "--name", NAME)[1].strip() == "Nothing was up."
