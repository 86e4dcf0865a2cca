"""What the target docker would make, as plain values."""

from __future__ import annotations

import io
import json
import os
import socket
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_topology

from bench.errors import BadInput, TargetFailed
from bench.machine.cores import Cpu
from bench.model import Topology, from_json
from bench.targets import create
from bench.targets.docker import Options, plan
from bench.targets.docker import engine as docker_engine
from bench.targets.docker import monitoring as docker_monitoring
from bench.targets.docker import target as docker
from bench.targets.docker.engine import File
from bench.targets.local import ray_node
from bench.targets.local.state import Node, Ports, State, folder_of

TOKEN = "a-token-of-the-tests"


def a_plan(topology: Topology | None = None, *, cpus: int = 4, is_dev: bool = False) -> plan.Plan:
    return plan.Plan(
        options=Options(name="a", dev=is_dev),
        topology=topology or a_topology("multi", nodes=2),
        image="sha256:1",
        digest="sha256:1",
        user=1000,
        cpus=tuple(Cpu(number=number, siblings=(number,)) for number in range(cpus)),
    )


def test_both_topologies_get_the_same_in_total() -> None:
    single = plan.node_settings(a_plan(a_topology()), 0)
    pair = [plan.node_settings(a_plan(), index) for index in (0, 1)]
    for limit in ("nano_cpus", "mem_limit", "shm_size"):
        assert single[limit] == pytest.approx(sum(node[limit] for node in pair), rel=0.01)
    assert single["cpuset_cpus"] == ",".join(node["cpuset_cpus"] for node in pair) == "0,1"


def test_shared_memory_holds_the_store_and_lies_inside_the_limit_and_there_is_no_swap() -> None:
    topology = a_topology("multi", nodes=2)
    settings = plan.node_settings(a_plan(topology), 0)
    assert topology.object_store_bytes_per_node * 1.1 <= settings["shm_size"] < settings["mem_limit"]
    assert settings["memswap_limit"] == settings["mem_limit"] == topology.memory_bytes_per_node


def test_what_watches_stays_off_the_measured_cpus_where_there_are_others() -> None:
    assert plan.exporter_settings(a_plan(cpus=4), "1")["cpuset_cpus"] == "2,3"
    assert plan.exporter_settings(a_plan(cpus=2), "1")["cpuset_cpus"] == "0,1"


def test_the_token_is_a_private_file_and_stands_nowhere_else() -> None:
    planned = a_plan()
    file = plan.files(planned, TOKEN)[plan.TOKEN_PATH]
    assert (file.content, file.mode, file.owner) == (TOKEN.encode(), 0o400, 1000)
    shown = [plan.node_settings(planned, 0), plan.node_settings(planned, 1), plan.exporter_settings(planned, "1")]
    assert TOKEN not in json.dumps(shown)
    assert all(each["environment"]["RAY_AUTH_TOKEN_PATH"] == plan.TOKEN_PATH for each in shown)


def test_ports_are_open_to_this_machine_only_and_on_the_head_only() -> None:
    head, worker = (plan.node_settings(a_plan(), index) for index in (0, 1))
    assert head["ports"] == {"8265/tcp": ("127.0.0.1", None), "8090/tcp": ("127.0.0.1", None)}
    assert "ports" not in worker
    for service in docker_monitoring.services("a", ("head",)):
        assert {address for address, _ in service.settings("a")["ports"].values()} == {"127.0.0.1"}


def test_a_published_port_is_read_off_what_the_engine_says() -> None:
    said = {"NetworkSettings": {"Ports": {"8265/tcp": [{"HostIp": "127.0.0.1", "HostPort": "49153"}], "1/tcp": None}}}
    assert plan.published_url(said, 8265) == "http://127.0.0.1:49153"
    assert plan.published_url(said, 1) == plan.published_url({"NetworkSettings": {"Ports": None}}, 1) == ""


def test_everything_carries_the_deployments_label_and_the_nodes_their_topology() -> None:
    planned = a_plan()
    nodes = [plan.node_settings(planned, index) for index in (0, 1)]
    services = [service.settings("a") for service in docker_monitoring.services("a", planned.nodes)]
    for settings in (*nodes, plan.exporter_settings(planned, "1"), *services):
        assert settings["labels"][docker_engine.DEPLOYMENT] == "a"
        assert settings["name"].startswith("raymeter-a-")
        assert settings["cap_drop"] == ["ALL"]
    assert [node["labels"][plan.NODE] for node in nodes] == ["head", "worker-1"]
    assert from_json(nodes[0]["labels"][plan.TOPOLOGY], Topology) == planned.topology
    assert from_json(nodes[0]["labels"][plan.OPTIONS], Options) == planned.options


def test_ray_has_the_same_settings_as_on_the_target_local() -> None:
    topology = a_topology()
    node = Node(name="head", index=0, address="127.0.0.2", cpus=(0,), ports=Ports())
    state = State(
        id="1", deployment="a", boot_id="", created=0.0, isolation="loopback", link="", link_rate=None, subnet=None,
        run_folder="/tmp", topology=topology, nodes=(node,), ray_settings={"max_direct_call_object_size": "1"},
    )  # fmt: skip
    local = ray_node.environment(state, node, folder_of("a"), {})
    here = plan.environment(replace(a_plan(topology), ray_settings=state.ray_settings), "head")
    assert here["RAY_max_direct_call_object_size"] == "1"
    places = {"HOME", "RAY_AUTH_TOKEN_PATH", "RAYMETER_RECORDS", "RAYMETER_LINK", "RAYMETER_DEPLOYMENT_ID",
              "RAYMETER_RUN_FOLDER", "TMPDIR",
              "RAYMETER_NODE_CGROUP", "RAYMETER_IMAGE_DIGEST", "DASHBOARD_METRIC_PORT"}  # fmt: skip
    assert {k: v for k, v in local.items() if k not in places} == {k: v for k, v in here.items() if k not in places}
    # Without it the probe takes the root of what it sees, which is the container.
    assert "RAYMETER_NODE_CGROUP" not in here


def test_a_node_names_the_rate_of_its_link_and_keeps_no_right_to_change_it() -> None:
    planned = a_plan()
    limited = replace(planned, options=Options(name="a", link_rate="100mbit"))
    for known, link in ((planned, "docker bridge"), (limited, "docker bridge at 100mbit")):
        settings = plan.node_settings(known, 0)
        assert settings["environment"]["RAYMETER_LINK"] == link
        assert (settings["cap_drop"], settings.get("cap_add")) == (["ALL"], None)


def test_local_code_goes_before_the_images_and_only_where_it_was_asked_for() -> None:
    for is_dev in (False, True):
        planned = a_plan(is_dev=is_dev)
        sent = plan.files(planned, TOKEN)
        assert (f"{plan.LOCAL_CODE}/bench/model.py" in sent) == is_dev
        for settings in (plan.node_settings(planned, 1), plan.exporter_settings(planned, "1")):
            assert settings["environment"].get("PYTHONPATH") == (plan.LOCAL_CODE if is_dev else None)


def test_an_archive_has_the_files_and_leaves_folders_as_they_are() -> None:
    packed = docker_engine.archive({"/run/x/token": File(content=b"t", mode=0o400, owner=7)})
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        (entry,) = tar.getmembers()
        assert (entry.name, entry.mode, entry.uid, entry.size) == ("run/x/token", 0o400, 7, 1)
    assert packed == docker_engine.archive({"/run/x/token": File(content=b"t", mode=0o400, owner=7)})


def test_prometheus_watches_the_nodes_that_there_are() -> None:
    one, two = (docker_monitoring.prometheus_files("a", nodes) for nodes in (("head",), ("head", "worker-1")))
    config = "/etc/prometheus/prometheus.yml"
    assert b"worker-1:8080" not in one[config].content
    for address in (b"head:8080", b"worker-1:8080", b"head:8090", b"scrape_interval: 2s"):
        assert address in two[config].content
    prometheus = [
        docker_monitoring.services("a", nodes)[0].settings("a") for nodes in (("head",), ("head", "worker-1"))
    ]
    assert prometheus[0] == prometheus[1]  # so that it goes on, and is told of the new nodes


def test_grafana_needs_no_login_to_look() -> None:
    grafana = docker_monitoring.services("a", ("head",))[1]
    assert grafana.environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert "/etc/grafana/provisioning/datasources/prometheus.yaml" in grafana.files


def test_sizes_that_cannot_be_meant_are_refused_before_the_engine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker.engine, "connect", lambda: pytest.fail("it was asked"))
    with pytest.raises(BadInput, match="75 MiB"):
        create("docker", {}).check(replace(a_topology(), object_store_bytes_per_node=1))


def test_no_engine_is_one_line_with_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(TargetFailed, match=r"The Docker engine does not answer\. Start it, or use another target"):
        create("docker", {}).check(a_topology())


def test_a_socket_that_refuses_this_user_is_told_apart_from_an_engine_that_is_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0)
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(0o755)
        said = as_ordinary_user(docker_engine.connect)
    assert said == (
        f"PermissionDenied: Permission denied on the Docker socket {path}. Add your user to the socket's group"
        " (`sudo usermod -aG docker $USER`) and log in again, or use another target: --target local."
    )


def as_ordinary_user(work: Callable[[], object]) -> str:
    """What `work` raises in a process of a user who is not root."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            work()
        except BaseException as error:  # noqa: BLE001, it is what the test looks at
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_an_engine_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@far")
    with pytest.raises(BadInput, match="another machine"):
        create("docker", {}).check(a_topology())


def test_where_nothing_was_ever_started_an_engine_is_not_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    target = create("docker", {"name": "never"})
    assert target.down() == ()
    assert target.status().remains == ()


def test_where_something_was_started_a_silent_engine_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    target = docker.create(Options(name="once"))
    target._state_folder.write(docker.State(created=1.0))
    assert "does not answer" in target.status().remains[0]
    with pytest.raises(TargetFailed, match="does not answer"):
        target.down()
    target._state_folder.remove()
