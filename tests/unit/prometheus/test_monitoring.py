"""Prometheus and Grafana as they are set up: manifests, configuration, rules."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.package_data import GRAFANA
from bench.prometheus import boards as committed
from bench.prometheus.scraping import MONITORING, PORTS, pages, static_config
from bench.targets.docker import monitoring as docker_monitoring

DOCUMENTS = [
    document
    for file in sorted(MONITORING.rglob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
    if document and document["kind"] != "Kustomization"
]
DEPLOYMENTS = [each for each in DOCUMENTS if each["kind"] == "Deployment"]
NODES = ("head", "worker-1")


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each["metadata"]["name"])
def test_a_pod_has_the_least_rights_and_limits(deployment: Mapping[str, Any]) -> None:
    spec = deployment["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["limits"]) == {"cpu", "memory", "ephemeral-storage"}
        assert container["resources"]["requests"]["cpu"] == "50m"
    assert all("sizeLimit" in each["emptyDir"] for each in spec["volumes"] if "emptyDir" in each)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each["metadata"]["name"])
def test_a_pod_keeps_off_the_measured_nodes_where_it_may(deployment: Mapping[str, Any]) -> None:
    spec = deployment["spec"]["template"]["spec"]
    assert spec["tolerations"] == [
        {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    ]
    (shape,) = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert shape["preference"]["matchExpressions"][0]["key"] == "node-role.kubernetes.io/control-plane"


def test_prometheus_may_read_pods_of_its_namespace_and_nothing_else() -> None:
    kinds = {each["kind"] for each in DOCUMENTS}
    assert not {"ClusterRole", "ClusterRoleBinding", "Secret"} & kinds
    (role,) = [each for each in DOCUMENTS if each["kind"] == "Role"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    tokens = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["automountServiceAccountToken"]
        for each in DEPLOYMENTS
    }
    assert tokens == {"prometheus": True, "grafana": False}


def test_grafana_has_no_user_unless_a_secret_says_so() -> None:
    (grafana,) = [each for each in DEPLOYMENTS if each["metadata"]["name"] == "grafana"]
    (container,) = grafana["spec"]["template"]["spec"]["containers"]
    # What comes last counts, and `env` counts more than `envFrom`: none of these may stand there.
    access, secret = container["envFrom"]
    assert access == {"configMapRef": {"name": "grafana-access"}}
    assert secret == {"secretRef": {"name": "grafana-admin", "optional": True}}
    made = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())["configMapGenerator"]
    (literals,) = [each["literals"] for each in made if each["name"] == "grafana-access"]
    closed = dict(literal.split("=") for literal in literals)
    assert closed == {
        "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
        "GF_AUTH_DISABLE_LOGIN_FORM": "true",
        "GF_AUTH_BASIC_ENABLED": "false",
    }
    assert not closed.keys() & {each["name"] for each in container["env"]}
    assert closed.items() <= docker_monitoring._GRAFANA.items(), "beside Docker it is as closed"


def test_grafana_fetches_nothing() -> None:
    (grafana,) = [each for each in DEPLOYMENTS if each["metadata"]["name"] == "grafana"]
    environment = {each["name"]: each for each in grafana["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"]["value"] == "Viewer"
    for name in ("GF_ANALYTICS_CHECK_FOR_UPDATES", "GF_ANALYTICS_REPORTING_ENABLED", "GF_NEWS_NEWS_FEED_ENABLED"):
        assert environment[name]["value"] == "false"
    assert environment["GF_PLUGINS_PREINSTALL_DISABLED"]["value"] == "true"


def test_every_board_has_a_config_map_and_is_mounted() -> None:
    made = yaml.safe_load((GRAFANA / "kustomization.yaml").read_text())["configMapGenerator"]
    files = [file for each in made for file in each["files"]]
    assert sorted(file for file in files if file.startswith("dashboards/")) == sorted(
        f"dashboards/{name}.json" for name in committed.NAMES
    )
    assert all(len(each["files"]) == 1 and (GRAFANA / each["files"][0]).is_file() for each in made)
    (grafana,) = [each for each in DEPLOYMENTS if each["metadata"]["name"] == "grafana"]
    volumes = grafana["spec"]["template"]["spec"]["volumes"]
    mounted = {name for name in _values(volumes, "name") if name.startswith("grafana-")}
    assert mounted == {each["name"] for each in made}


PROVISIONING = GRAFANA / "provisioning"


def provisioned(file: str, environment: Mapping[str, str]) -> Any:
    """A provisioning file as Grafana reads it. It takes ${NAME} in values only, and nothing for a name without a value."""
    text = (PROVISIONING / file).read_text()
    return yaml.safe_load(re.sub(r"\$\{(\w+)\}", lambda match: environment.get(match[1], ""), text))


def of_k8s() -> tuple[dict[str, str], set[str]]:
    """The variables of Grafana's container in Kubernetes, and the boards that it has."""
    (grafana,) = [each for each in DEPLOYMENTS if each["metadata"]["name"] == "grafana"]
    (container,) = grafana["spec"]["template"]["spec"]["containers"]
    mounted = {each["mountPath"] for each in container["volumeMounts"] if each["name"] == "boards"}
    return {each["name"]: each["value"] for each in container["env"]}, mounted


def of_docker() -> tuple[dict[str, str], set[str]]:
    """The variables of Grafana's container in Docker, and the boards that it has."""
    _, grafana = docker_monitoring.services("a", NODES)
    return dict(grafana.environment), {path for path in grafana.files if path.endswith(".json")}


def of_the_user() -> tuple[dict[str, str], set[str]]:
    """The variables that `bench up --monitoring` prints, and the boards of this checkout."""
    return committed.own_grafana("http://127.0.0.1:9091"), set(map(str, committed.FOLDER.glob("*.json")))


GRAFANAS = {
    "k8s": (of_k8s, "http://prometheus:9090"),
    "docker": (of_docker, "http://prometheus:9090"),
    "own": (of_the_user, "http://127.0.0.1:9091"),
}


@pytest.mark.parametrize("name", GRAFANAS)
def test_grafana_has_the_data_source_and_the_boards_where_they_are(name: str) -> None:
    described, prometheus_url = GRAFANAS[name]
    environment, boards = described()
    (source,) = provisioned("datasources/prometheus.yaml", environment)["datasources"]
    assert source["url"] == prometheus_url
    (provider,) = provisioned("dashboards/boards.yaml", environment)["providers"]
    assert boards == {f"{provider['options']['path']}/{name}.json" for name in committed.NAMES}
    assert provider["allowUiUpdates"] is False


@pytest.mark.parametrize("name", GRAFANAS)
def test_grafana_opens_with_a_board_that_it_has(name: str) -> None:
    environment, boards = GRAFANAS[name][0]()
    home = environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home in boards
    assert home.endswith(f"/{committed.HOME}.json")


def test_the_provisioning_of_this_checkout_is_that_of_a_grafana_of_the_user() -> None:
    assert Path(of_the_user()[0]["GF_PATHS_PROVISIONING"]) == PROVISIONING


def test_nothing_but_grafana_comes_to_prometheus() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in DOCUMENTS if each["kind"] == "NetworkPolicy"}
    (way_in,) = policies["prometheus"]["ingress"]
    assert way_in["from"] == [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "grafana"}}}]
    assert policies["grafana"]["ingress"] == []
    let_out = {each["port"] for each in policies["prometheus"]["egress"][0]["ports"]}
    assert let_out == set(PORTS.values())


def test_whoever_scrapes_by_pod_monitors_is_let_in_to_the_same_pages() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in DOCUMENTS if each["kind"] == "NetworkPolicy"}
    (way_in,) = policies["ray-podmonitors"]["ingress"]
    assert {each["port"] for each in way_in["ports"]} == set(PORTS.values())
    assert policies["ray-podmonitors"]["podSelector"] == {"matchLabels": {"ray.io/is-ray-node": "yes"}}


def test_pod_monitors_ask_for_the_same_ports_and_drop_the_same_series() -> None:
    monitors = [each for each in DOCUMENTS if each["kind"] == "PodMonitor"]
    ends = [end for each in monitors for end in each["spec"]["podMetricsEndpoints"]]
    assert {end["port"] for end in ends} == set(PORTS)
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    ours = next(job for job in config["scrape_configs"] if job["job_name"] == "ray")["metric_relabel_configs"]
    theirs = next(end for end in ends if end["port"] == "metrics")["metricRelabelings"]
    assert [
        {"source_labels" if key == "sourceLabels" else key: value for key, value in rule.items()} for rule in theirs
    ] == ours


def test_kustomize_builds_the_manifests_with_names_that_meet() -> None:
    if not shutil.which("kubectl"):
        pytest.skip("needs the command kubectl")
    for folder in (MONITORING, MONITORING / "podmonitors"):
        built = subprocess.run(
            ["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60, check=False
        )
        assert built.returncode == 0, built.stderr
        documents = [each for each in yaml.safe_load_all(built.stdout) if each]
        maps = {each["metadata"]["name"] for each in documents if each["kind"] == "ConfigMap"}
        deployments = [each for each in documents if each["kind"] == "Deployment"]
        mounted_or_read = (*_values(deployments, "configMap"), *_values(deployments, "configMapRef"))
        assert {each["name"] for each in mounted_or_read} == maps
        assert {each["metadata"]["namespace"] for each in documents} == {"raymeter"}


def test_fixed_targets_take_the_place_of_discovered_ones() -> None:
    config = yaml.safe_load(static_config(pages(NODES), cluster="a"))
    found = {
        (job["job_name"], each["labels"]["instance"], each["labels"]["endpoint"]): each["targets"]
        for job in config["scrape_configs"]
        for each in job["static_configs"]
    }
    assert found == {
        ("ray", "head", "metrics"): ["head:8080"],
        ("ray", "worker-1", "metrics"): ["worker-1:8080"],
        ("ray", "head", "dash-metrics"): ["head:44227"],
        ("bench", "head", "bench-metrics"): ["head:8090"],
        ("prometheus", "prometheus", "web"): ["localhost:9090"],
    }
    assert config["global"]["scrape_interval"] == "2s"


def _values(tree: Any, key: str) -> list[Any]:
    if isinstance(tree, Mapping):
        return [each for name, value in tree.items() for each in ([value] if name == key else _values(value, key))]
    return [each for value in tree for each in _values(value, key)] if isinstance(tree, list) else []
