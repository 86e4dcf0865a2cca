"""A real Prometheus beside real local nodes: it outlives their clusters, scrapes them all, and ends with the deployment."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import requests
import yaml
from local_nodes import ONE_NODE, assert_nothing_left
from person import SMALL, Bench, nothing_is_left

from bench.doctor import monitoring as doctor
from bench.errors import TargetFailed
from bench.package_data import GRAFANA
from bench.prometheus import boards, run_view, scraping
from bench.prometheus.client import Prometheus
from bench.targets import Cluster, Target, create, processes
from bench.targets.local import monitoring
from bench.targets.local.state import State, folder_of

pytestmark = [pytest.mark.prometheus, pytest.mark.ray]
NAME = "beside"
IS_A_CHAIN = True


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    made = create("local", {"name": NAME, "isolation": "loopback", "monitoring": True})
    try:
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def cluster(target: Target) -> Cluster:
    return target.up(ONE_NODE)


def state() -> State:
    found = folder_of(NAME).read()
    assert found is not None
    assert found.monitoring is not None
    return found


def program() -> psutil.Process:
    (process,) = processes.find(NAME, state().process_ids[1])
    return process


def wait_for(is_so: Callable[[], object], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while True:
        with suppress(requests.RequestException, TargetFailed):
            if is_so():
                return
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(0.5)


def all_are_scraped(cluster: Cluster) -> bool:
    found = list(doctor.targets(Prometheus(str(cluster.prometheus_url)), scraping.pages(cluster.nodes)))
    return [each.level for each in found] == ["good"]


def test_every_page_of_the_nodes_is_scraped_and_the_rules_are_those_of_the_other_targets(cluster: Cluster) -> None:
    wait_for(lambda: all_are_scraped(cluster))
    answer = requests.get(f"{cluster.prometheus_url}/api/v1/rules", timeout=10).json()
    names = {rule["name"] for group in answer["data"]["groups"] for rule in group["rules"]}
    assert names == {rule.name for rule in run_view.rules()}


def test_it_listens_on_loopback_alone_with_the_lowest_priority_and_bounded_memory(cluster: Cluster) -> None:
    process = program()
    listening = {each.laddr.ip for each in process.net_connections() if each.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}
    assert process.nice() == 19
    assert process.environ()["GOMEMLIMIT"] == str(monitoring.SOFT_MEMORY_BYTES)
    if group := process.environ()["RAYMETER_NODE_CGROUP"]:
        assert f"raymeter/{NAME}-{state().process_ids[1]}/" in group


def test_its_data_are_in_the_folder_of_the_deployment_for_the_user_alone(cluster: Cluster) -> None:
    folder = folder_of(NAME).path / "prometheus"
    assert (folder / "data" / "wal").is_dir()
    assert folder.stat().st_mode & 0o077 == 0


def test_status_has_it_and_the_option_with_which_it_was_made(target: Target, cluster: Cluster) -> None:
    status = create("local", {"name": NAME}).status()
    assert status.cluster == cluster
    assert status.options is not None
    assert status.options.given()["monitoring"] is True
    assert any(f"process {program().pid} " in each for each in status.remains)


def test_its_cpu_time_is_the_deployments(target: Target, cluster: Cluster) -> None:
    of_nodes = processes.cpu_seconds(NAME, state().id)
    assert (target.cpu_seconds() or 0) > of_nodes


def test_a_grafana_with_the_printed_variables_has_it_as_its_data_source(cluster: Cluster) -> None:
    variables = boards.own_grafana(str(cluster.prometheus_url))
    text = (GRAFANA / "provisioning/datasources/prometheus.yaml").read_text()
    filled = re.sub(r"\$\{(\w+)\}", lambda match: variables[match[1]], text)
    (source,) = yaml.safe_load(filled)["datasources"]
    assert Prometheus(source["url"]).query("up")


def test_it_goes_on_through_a_change_of_the_cluster(target: Target, cluster: Cluster) -> None:
    before, first = program(), state()
    changed = target.up(ONE_NODE)
    assert state().id != first.id
    assert (program().pid, changed.prometheus_url) == (before.pid, cluster.prometheus_url)
    wait_for(lambda: all_are_scraped(changed))
    seconds = time.time() - first.created
    (metrics,) = Prometheus(str(changed.prometheus_url)).query(
        f'count by (endpoint) (count_over_time(up{{job="bench"}}[{seconds:.0f}s]))'
    )
    assert metrics.last == 1, "the head of each cluster has the same labels"


def test_one_that_was_killed_is_started_again_with_the_next_cluster(target: Target, cluster: Cluster) -> None:
    killed = program()
    killed.kill()
    wait_for(lambda: not processes.find(NAME, state().process_ids[1]))
    again = target.up(ONE_NODE)
    assert program().pid != killed.pid
    wait_for(lambda: all_are_scraped(again))


def test_down_ends_it_and_leaves_nothing(target: Target, cluster: Cluster) -> None:
    present = state()
    pid = program().pid
    ended = target.down()
    assert any(f"process {pid} " in each for each in ended)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    for process_id in present.process_ids:
        assert_nothing_left(NAME, process_id)


def test_a_session_keeps_what_prometheus_had_of_its_runs(bench: Bench) -> None:
    small = ("--topology", "single", "--blocks", "1", "--isolation", "loopback", *SMALL)
    code, _, err = bench("run", "inference", "--monitoring", *small)
    assert code == 0, err
    (run,) = bench.runs()
    assert (run.status, run.reconciled) == ("ok", True), run.reasons
    assert {"bench_sample_value", "bench_run_status", "ray_node_mem_used", "up"} <= bench.metrics_kept(run)
    assert nothing_is_left(bench)


def test_without_the_program_the_command_ends_with_a_code_of_its_own(bench: Bench) -> None:
    folders = [folder for folder in os.environ["PATH"].split(":") if not Path(folder, "prometheus").exists()]
    bench.environment["PATH"] = ":".join(folders)
    code, out, err = bench("up", "--target", "local", "--monitoring")
    assert (code, out) == (15, "")
    assert len(err.splitlines()) == 1
    assert nothing_is_left(bench)
