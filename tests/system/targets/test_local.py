"""Real Ray nodes of the target local: stood up, asked for their status and removed without remains."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from local_nodes import ONE_NODE, TWO_NODES, assert_nothing_left, listing, of_deployment

from bench.machine.effective_cpus import effective_cpus
from bench.model import Topology, to_json
from bench.targets import Cluster, create, processes
from bench.targets.local import namespaces, run_folders
from bench.targets.local.state import State, folder_of, run_folder

UP = """
import sys
import tempfile
from bench.model import Topology, from_json
from bench.targets import create
cluster = create("local", {"name": sys.argv[1], "isolation": sys.argv[2]}).up(from_json(sys.argv[3], Topology))
print(cluster.dashboard_url, cluster.exporter_url, cluster.token, cluster.link, sep="\\n")
"""

DOWN = """
import sys
import tempfile
from bench.targets import create
print(len(create("local", {"name": sys.argv[1]}).down()))
"""

WAITS = """
import sys
import time
import ray
from ray.util.placement_group import placement_group
from bench.runner.jobs_api import JobsApi

@ray.remote(num_cpus=1)
class Holder:
    def is_there(self):
        return True

holder = Holder.remote()
assert ray.get(holder.is_there.remote())
late = placement_group([{"CPU": 1}, {"CPU": 1}])
while not (said := JobsApi(sys.argv[1], sys.argv[2]).waiting()):
    time.sleep(0.2)
print(said)
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[Cluster]:
    """Two nodes of one CPU, each in its namespace."""
    if effective_cpus().whole < 2:
        pytest.skip("two nodes need two CPUs")
    target = create("local", {"name": "pair", "isolation": "namespace"})
    try:
        yield target.up(TWO_NODES)
        deployment_id = state_of("pair").id
    finally:
        target.down()
    assert_nothing_left("pair", deployment_id)


@pytest.mark.root
@pytest.mark.ray
class TestAPair:
    def test_it_answers_with_the_right_token_only(self, pair: Cluster):
        assert status(f"{pair.dashboard_url}/api/jobs/") == 401
        assert status(f"{pair.dashboard_url}/api/jobs/", "0" * 64) == 403
        assert status(f"{pair.dashboard_url}/api/jobs/", pair.token) == 200
        assert status(f"{pair.exporter_url}/healthz") == 200

    def test_the_token_is_for_nobody_else_and_is_not_shown(self, pair: Cluster):
        assert folder_of("pair").token_path.stat().st_mode & 0o777 == 0o600
        assert pair.token not in repr(pair)

    def test_who_waits_for_cpus_and_who_holds_them_is_told(self, pair: Cluster):
        said = run_job(pair, shlex.join([sys.executable, "-c", WAITS, pair.dashboard_url, pair.token]))
        assert (
            "1 x placement group of 2 CPUs waited; the cluster has 2 CPUs, at most 1 on a node, held by"
            " 1 x actor Holder of 1 CPU\n" in said
        )

    def test_each_node_has_a_network_of_its_own(self, pair: Cluster):
        networks = {node: {network(p.pid) for p in found} for node, found in by_node().items()}
        assert networks.keys() == {"head", "worker-1"}
        assert all(len(inodes) == 1 for inodes in networks.values())
        assert len({*networks["head"], *networks["worker-1"], network("self")}) == 3

    def test_each_node_has_a_cpu_of_its_own(self, pair: Cluster):
        pinned = {
            node: {cpu for process in found for cpu in process.cpu_affinity()} for node, found in by_node().items()
        }
        assert len(pinned["head"]) == len(pinned["worker-1"]) == 1
        assert not pinned["head"] & pinned["worker-1"]

    def test_each_node_is_counted_in_a_control_group_of_its_own(self, pair: Cluster):
        groups = {
            node: {p.environ()["RAYMETER_NODE_CGROUP"] for p in found if p.environ()}
            for node, found in by_node().items()
        }
        if groups["head"] == {""}:
            pytest.skip("control groups cannot be made here")
        for node, names in groups.items():
            (name,) = names
            assert name.endswith(f"/{node}")
            for process in by_node()[node]:
                assert name in Path(f"/proc/{process.pid}/cgroup").read_text()

    def test_a_job_runs_on_both_nodes_and_its_bytes_cross_both_links(self, pair: Cluster):
        before = {index: eth0(index) for index in (0, 1)}
        code = (
            "import os, ray; ray.init(log_to_driver=False);"
            "task = ray.remote(num_cpus=1)(lambda size: (os.environ['RAYMETER_NODE'], bytes(size)));"
            "far = [n['NodeID'] for n in ray.nodes() if 'node:__internal_head__' not in n['Resources']][0];"
            "place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(far, soft=False);"
            "print('on', ray.get(task.options(scheduling_strategy=place).remote(20_000_000))[0])"
        )
        log = run_job(pair, f'{pair.python} -c "import ray.util.scheduling_strategies; {code}"')
        assert "on worker-1" in log
        received, sent = eth0(0)[0] - before[0][0], eth0(1)[1] - before[1][1]
        assert received > 20_000_000
        assert sent > 20_000_000

    def test_status_shows_it_and_changes_nothing(self, pair: Cluster):
        target = create("local", {"name": "pair"})
        first, second = target.status(), target.status()
        assert first.cluster == second.cluster == pair
        assert any("namespace" in remainder for remainder in first.remains)

    def test_another_deployment_stands_beside_it_and_goes_without_it(self, pair: Cluster):
        other = create("local", {"name": "other", "isolation": "namespace"})
        try:
            cluster = other.up(ONE_NODE)
            assert cluster.dashboard_url != pair.dashboard_url
            assert status(f"{cluster.dashboard_url}/api/jobs/", cluster.token) == 200
            assert status(f"{cluster.dashboard_url}/api/jobs/", pair.token) == 403
            deployment_id = state_of("other").id
        finally:
            other.down()
        assert_nothing_left("other", deployment_id)
        assert create("local", {"name": "pair"}).status().cluster == pair


@pytest.mark.root
@pytest.mark.ray
@pytest.mark.parametrize("moment", ["at once", "while links are made", "while Ray starts", "later"])
def test_a_crash_at_any_moment_leaves_nothing_after_down(moment: str):
    shm = set(listing("/dev/shm"))
    child = subprocess.Popen([sys.executable, "-c", UP, "crash", "auto", as_json(ONE_NODE)], stdout=subprocess.DEVNULL)
    earliest = {"at once": 0.0, "while links are made": 0.2, "while Ray starts": 0.6, "later": 2.5}[moment]
    time.sleep(earliest + random.uniform(0, 0.4))
    child.kill()
    child.wait()
    state = folder_of("crash").read()
    create("local", {"name": "crash"}).down()
    assert_nothing_left("crash", state and state.id)
    assert set(listing("/dev/shm")) <= shm
    assert create("local", {"name": "crash"}).status().remains == ()


@pytest.mark.ray
def test_an_ordinary_user_gets_loopback(tmp_path: Path):
    command = [sys.executable, "-c"]
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    if os.geteuid() == 0:
        # Python itself may lie where only root can look, so the one right that is left is to look.
        tmp_path.chmod(0o755)
        os.chown(tmp_path, 65534, 65534)
        drop = ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all,+dac_read_search"]
        command = ["setpriv", *drop, "--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search", *command]
    up = [*command, UP, "ordinary", "auto", as_json(ONE_NODE)]
    try:
        done = subprocess.run(
            up, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode == 0, done.stderr
        dashboard, exporter, token, link = done.stdout.splitlines()
        assert link == "loopback, no bytes counted"
        assert status(f"{dashboard}/api/jobs/") == 401
        assert status(f"{dashboard}/api/jobs/", token) == 200
        assert status(f"{exporter}/healthz") == 200
        assert all(set(p.cpu_affinity()) <= {min(effective_cpus().allowed)} for p in of_deployment("ordinary"))
    finally:
        down = [*command, DOWN, "ordinary"]
        done = subprocess.run(
            down, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    assert not of_deployment("ordinary")
    assert not list((tmp_path / "state" / "raymeter" / "local").glob("[!.]*"))


@pytest.mark.ray
def test_on_loopback_two_nodes_take_the_place_of_one():
    if effective_cpus().whole < 2:
        pytest.skip("two nodes need two CPUs")
    target = create("local", {"name": "loop", "isolation": "loopback"})
    try:
        target.up(ONE_NODE)
        replaced = state_of("loop").id
        cluster = target.up(TWO_NODES)
        assert not processes.find("loop", replaced)
        assert not Path(run_folder(replaced, run_folders.choose().path)).exists()
        assert cluster.nodes == ("head", "worker-1")
        assert cluster.link == "loopback, no bytes counted"
        deployment_id = state_of("loop").id
    finally:
        target.down()
    assert_nothing_left("loop", deployment_id)


def as_json(topology: Topology) -> str:
    return to_json(topology).decode()


def status(url: str, token: str = "") -> int:
    request = Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


def run_job(cluster: Cluster, entrypoint: str) -> str:
    """The log of a job that succeeds."""
    headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}

    def call(path: str, body: dict[str, str] | None = None) -> dict[str, str]:
        data = json.dumps(body).encode() if body else None
        with urlopen(Request(f"{cluster.dashboard_url}/api/jobs/{path}", data, headers), timeout=30) as answer:
            return json.loads(answer.read())

    job = call("", {"entrypoint": entrypoint})["submission_id"]
    deadline = time.monotonic() + 60
    while (state := call(job)["status"]) in {"PENDING", "RUNNING"}:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    log = call(f"{job}/logs")["logs"]
    assert state == "SUCCEEDED", log
    return log


def state_of(deployment: str) -> State:
    state = folder_of(deployment).read()
    assert state is not None
    return state


def by_node() -> dict[str, list[psutil.Process]]:
    """The processes of `pair`, by the session of the node that they belong to."""
    found: dict[str, list[psutil.Process]] = {}
    everyone = processes.find("pair", state_of("pair").id)
    sessions: dict[int, str] = {}
    for process in everyone:
        with suppress(psutil.Error):  # it has ended since
            if environment := process.environ():
                sessions[os.getsid(process.pid)] = environment["RAYMETER_NODE"]
    for process in everyone:
        with suppress(psutil.Error, ProcessLookupError):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.setdefault(sessions[os.getsid(process.pid)], []).append(process)
    return found


def network(pid: int | str) -> int:
    """What tells one network namespace from another."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def eth0(index: int) -> tuple[int, int]:
    """Bytes received and sent by a node of `pair`."""
    namespace = namespaces.node_name(state_of("pair").id, index)
    text = subprocess.check_output([*namespaces.inside(namespace), "cat", "/proc/net/dev"], text=True)
    fields = next(line.split(":")[1].split() for line in text.splitlines() if "eth0:" in line)
    return int(fields[0]), int(fields[8])
