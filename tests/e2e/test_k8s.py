"""The deployment in Kubernetes: from no cluster at all to one that is gone again. The tests build on each other, in order."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import boards
import bulk
import memory
import psutil
import pytest
from person import Bench, ended
from repository import ROOT

from bench import analysis
from bench.errors import RunInvalid
from bench.identity import code_hash
from bench.package_data import K8S
from bench.prometheus.client import Prometheus
from bench.targets.image import default_tag

pytestmark = [pytest.mark.k8s, pytest.mark.timeout(900)]

IS_A_CHAIN = True
NAME = "raymeter-e2e"
HERE = ("--target", "k8s", "--name", NAME)
SMALL = (
    *("--set", "batch=1000", "--set", "inputs=20000", "--set", "data_path=by-value"),
    *("--set", "open_loop_seconds=0.1"),
)
LONGER = ("--set", "batch=1000", "--set", "inputs=50000", "--set", "data_path=by-value")
RAY_PODS = ("pods", "--selector", "ray.io/is-ray-node=yes")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A person with no cluster, whose image is that of the code."""
    folder = tmp_path_factory.mktemp("k8s")
    mine = {"XDG_STATE_HOME": str(folder / "state"), "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}
    # Where KubeRay's repository is not to be reached, a folder has its manifests.
    if "KUBERAY_MANIFESTS" in os.environ:
        mine["RAYMETER_OPERATOR_MANIFESTS"] = os.environ["KUBERAY_MANIFESTS"]
    typed = Bench(folder, {**os.environ, **mine})
    subprocess.run(["kind", "delete", "cluster", "--name", NAME], env=typed.environment, check=True, timeout=180)
    code, _, err = typed("image")
    assert code == 0, err
    yield typed
    typed("down", "--target", "k8s", "--name", NAME)


def task(bench: Bench, *words: str, minutes: float) -> str:
    """What a task of the README prints, typed in the project's folder for the deployment of these tests."""
    process = subprocess.Popen(
        ["task", *words, "--", "--name", NAME],
        cwd=ROOT,
        env=bench.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    code, out, err = ended(process, f"task {' '.join(words)}", minutes)
    assert code == 0, err[-3000:]
    return out


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


def urls(bench: Bench) -> dict[str, str]:
    code, out, _ = bench("status", *HERE)
    assert code == 0
    return {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}


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


def test_up_makes_cluster_operator_and_deployment_where_nothing_is(bench: Bench) -> None:
    # As the README has it, multi being what is stood up where nothing is said. The image is 3.4 GB, and goes into two nodes.
    out = task(bench, "up", "TARGET=k8s", minutes=14)
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


def test_a_run_counts_the_bytes_of_every_pod_and_the_window_agrees(bench: Bench) -> None:
    code, _, err = bench("run", "inference", "--blocks", "1", *SMALL, *HERE)
    assert code == 0, err
    single, multi = sorted(bench.runs(), key=lambda run: run.spec.topology.nodes)
    for run in (single, multi):
        assert (run.status, run.reasons, run.reconciled) == ("ok", (), True)
        assert {"bench_sample_value", "ray_node_mem_used", "up"} <= bench.metrics_kept(run)
        assert run.facts is not None
        assert run.facts.link == "pod network"
        assert run.idle_load is not None, "its nodes are containers of this machine"
        assert 0.0 < run.idle_load.cpus < (os.cpu_count() or 1)
        assert 0.0 < run.idle_load.ray_cpus < (os.cpu_count() or 1)
        assert run.quiet_check is not None
        assert run.quiet_check.deployment_cpus == pytest.approx(run.idle_load.cpus + run.idle_load.ray_cpus)
        assert {node.cpu_quota for node in run.facts.nodes} == {run.spec.topology.cpus_per_node}
        assert {node.code_hash for node in run.facts.nodes} == {code_hash()}
        assert all(str(node.image_digest).startswith("sha256:") for node in run.facts.nodes)
    of_ray = [usage for usage in multi.usage if usage.arm == "ray" and not usage.warmup]
    assert {usage.node for usage in of_ray} == {"head", "worker-1"}
    assert all(usage.cpu_seconds and usage.peak_memory_bytes for usage in of_ray)
    assert all(usage.sent_bytes for usage in of_ray if usage.node == "head")
    assert all(usage.received_bytes for usage in of_ray if usage.node == "worker-1")


def test_every_panel_shows_something(bench: Bench) -> None:
    # Of one experiment here, and of all of them on Docker, where a cluster takes a third of the time.
    assert boards.empty(urls(bench)["Grafana"], bench.session(), "inference") == []


def test_the_overview_has_the_numbers_of_the_record(bench: Bench) -> None:
    session, runs = bench.session(), bench.runs()
    expected = boards.side_by_side(analysis.build(session, runs), session, runs)
    assert expected[boards.BY_BLOCK, 0], "both topologies have a good run"
    shown = boards.shown_on_overview(urls(bench)["Grafana"], session, "inference")
    for panel, values in expected.items():
        assert shown[panel] == {key: pytest.approx(value) for key, value in values.items()}, panel


def test_prometheus_scrapes_every_pod_and_the_doctor_finds_all_of_it_well(bench: Bench) -> None:
    code, out, err = bench("doctor", *HERE)
    assert code == 0, f"{out}\n{err}"
    found = {line[6:26].strip(): line for line in out.splitlines()}
    for about in ("target k8s", "Jobs API", "exporter", "token", "nodes' versions", "pages", "panels"):
        assert found[about].startswith("good"), found[about]
    assert "node head" in found
    prometheus = Prometheus(urls(bench)["Prometheus"])
    scraped = {(s.labels["instance"], s.labels["endpoint"]) for s in prometheus.query("max_over_time(up[1m]) == 1")}
    there = {(target.labels["instance"], target.labels["endpoint"]) for target in prometheus.targets()}
    assert there <= scraped
    assert [instance for instance, endpoint in there if endpoint == "bench-metrics"] == ["head"]


def test_a_pod_whose_memory_gets_full_makes_its_run_invalid_and_says_so(bench: Bench) -> None:
    before = memory.sessions(bench)
    running = bench.start("run", "inference", "--blocks", "1", "--topology", "multi", *LONGER, *HERE)
    memory.wait_until_measuring(bench, before, seconds=240)
    (worker,) = [pod for pod in items(bench, *RAY_PODS) if pod["metadata"]["labels"]["raymeter.io/node"] == "worker-1"]
    inside = ("exec", "--namespace", NAME, worker["metadata"]["name"], "--container", "ray", "--", *memory.EAT)
    eating = subprocess.Popen(["kubectl", "--context", f"kind-{NAME}", *inside], env=bench.environment)
    code, out, err = ended(running, "bench run", 5)
    eating.kill()
    eating.wait()
    assert code == RunInvalid.exit_code, f"{out}\n{err}"
    (run,) = bench.runs()
    assert run.status == "invalid"
    assert "memory" in run.reasons[0]
    assert "worker-1" in run.reasons[0]


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
    assert "needs 640 CPUs" in in_one_line(err)
    code, _, err = bench("up", "--topology", "single", "--memory-mib", "4096000", *HERE)
    assert code == 3
    assert "needs 4000.1 GiB of memory, and the 2 Kubernetes nodes share 1 machine with" in in_one_line(err)
    assert {pod["metadata"]["uid"] for pod in items(bench, "pods")} == before


def test_a_link_rate_is_what_a_bulk_transfer_between_two_pods_gets(bench: Bench) -> None:
    bulk.assert_limited(bench, "pod network", *HERE)
    pods = items(bench, *RAY_PODS)
    assert {pod["status"]["qosClass"] for pod in pods} == {"Guaranteed"}
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2


def test_a_cluster_that_does_not_allow_net_admin_is_told_of_with_the_option_that_needs_it(bench: Bench) -> None:
    # As a policy of the cluster would: the namespace of a deployment with a link rate allows NET_ADMIN.
    kubectl(bench, "label", "namespace", NAME, "--overwrite", "pod-security.kubernetes.io/enforce=restricted")
    code, _, err = bench("up", "--topology", "single", "--link-rate", "10mbit", *HERE)
    assert code == 4
    line = in_one_line(err)
    assert "NET_ADMIN" in line
    assert "Leave --link-rate out" in line


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


def test_the_manifests_stand_the_deployment_up_without_the_command_line(bench: Bench) -> None:
    kubectl(bench, "apply", "--server-side", "--kustomize", str(K8S / "multi"))
    wait_for(lambda: len(items(bench, *RAY_PODS, namespace="raymeter")) == 2, 60)
    # Grafana and Prometheus with them: nothing has to be done by hand.
    kubectl(bench, "wait", "--for=condition=Ready", "--timeout=110s", "--namespace=raymeter", "pods", "--all")
    names = {pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in items(bench, "pods", namespace="raymeter")}
    assert names >= {"ray", "prometheus", "grafana"}
    images = {c["image"] for pod in items(bench, *RAY_PODS, namespace="raymeter") for c in pod["spec"]["containers"]}
    assert images == {default_tag()}


def test_down_ends_a_namespace_that_was_made_by_hand_where_it_is_asked_to(bench: Bench) -> None:
    code, out, err = bench("down", "--target", "k8s", "--context", f"kind-{NAME}")
    assert code == 0, err
    assert "namespace raymeter" in out
    assert "operator" not in out, "another deployment needs it"
    namespaces = {each["metadata"]["name"] for each in items(bench, "namespaces")}
    assert "raymeter" not in namespaces
    assert {NAME, "kuberay-system"} <= namespaces


def test_down_leaves_nothing(bench: Bench) -> None:
    out = task(bench, "down", "TARGET=k8s", minutes=4)
    assert f"kind cluster {NAME}" in out
    clusters = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=True, timeout=30)
    assert NAME not in clusters.stdout
    marked = [
        p for p in psutil.process_iter(["environ"]) if (p.info["environ"] or {}).get("RAYMETER_DEPLOYMENT") == NAME
    ]
    assert marked == []
    assert not list((bench.folder / "state/raymeter/k8s").glob("[!.]*"))
    assert bench("down", "--target", "k8s", "--name", NAME)[1].strip() == "Nothing was running."
