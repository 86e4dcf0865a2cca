from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from builders import a_topology

from bench.errors import BadInput, DoesNotFit, TargetFailed
from bench.machine.effective_cpus import effective_cpus
from bench.model import Topology, to_json
from bench.targets import Cluster, create, processes
from bench.targets.local import namespaces, run_folders
from bench.targets.local import target as local
from bench.targets.local.state import Node, Ports, State, boot_id, folder_of, run_folder

ONE_NODE = replace(a_topology(cpus=1), memory_bytes_per_node=2 * 2**30, object_store_bytes_per_node=100 * 2**20)
TWO_NODES = replace(ONE_NODE, name="multi", nodes=2)
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
def pair(isolated: None) -> Iterator[Cluster]:
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
@pytest.mark.slow
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
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["at once", "while links are made", "while Ray starts", "later"])
def test_a_crash_at_any_moment_leaves_nothing_after_down(moment: str, isolated: None):
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
@pytest.mark.slow
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
@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "not a valid deployment name"),
        ({"name": "a" * 33}, "not a valid deployment name"),
        ({"name": "../up"}, "not a valid deployment name"),
        ({"name": "Über"}, "not a valid deployment name"),
        ({"link_rate": "fast"}, "is no rate"),
        ({"link_rate": "1gbit", "isolation": "loopback"}, "needs network namespaces"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options: dict[str, str], words: str):
    with pytest.raises(BadInput, match=words):
        create("local", options).check(ONE_NODE)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"nodes": 0}, BadInput, "0 nodes"),
        ({"nodes": 200}, BadInput, "200 nodes"),
        ({"object_store_bytes_per_node": 2**20}, BadInput, "1 MiB is less"),
        ({"object_store_bytes_per_node": 2**33}, BadInput, "8192 MiB leaves nothing"),
        ({"cpus_per_node": 10_000}, DoesNotFit, "needs 10000 CPUs"),
        ({"memory_bytes_per_node": 2**50}, DoesNotFit, "1073741824 MiB of memory"),
    ],
)
def test_a_topology_that_does_not_fit_is_refused(change: dict[str, int], error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        create("local", {"name": "refused", "isolation": "loopback"}).check(replace(ONE_NODE, **change))
    assert not folder_of("refused").path.exists()


def test_too_little_shared_memory_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch):
    usage = local.shutil.disk_usage("/")
    monkeypatch.setattr(local.shutil, "disk_usage", lambda _: usage._replace(free=64 * 2**20))
    with pytest.raises(DoesNotFit, match=r"need 200 MiB .* 64 MiB are free"):
        create("local", {"isolation": "loopback"}).check(replace(ONE_NODE, object_store_bytes_per_node=200 * 2**20))


def test_too_little_disk_for_rays_files_is_refused_with_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(run_folders, "choose", lambda: run_folders.Parent(str(tmp_path)))
    usage = local.shutil.disk_usage

    def disk_usage(folder: object):
        return usage(folder)._replace(free=900 * 2**20) if str(folder) == str(tmp_path) else usage(folder)

    monkeypatch.setattr(local.shutil, "disk_usage", disk_usage)
    with pytest.raises(DoesNotFit, match=rf"what it spills in {tmp_path}, and 900 MiB are free there\. Make room"):
        create("local", {"isolation": "loopback"}).check(ONE_NODE)


def test_namespaces_without_the_right_to_make_them_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(namespaces, "why_unavailable", lambda: "no right to make them: Operation not permitted")
    with pytest.raises(BadInput, match="Be root"):
        create("local", {"isolation": "namespace"}).check(ONE_NODE)
    with pytest.raises(BadInput, match="--link-rate needs"):
        create("local", {"link_rate": "1gbit"}).check(ONE_NODE)
    create("local", {}).check(ONE_NODE)


def test_a_head_that_cannot_start_is_told_in_its_own_words_and_cleaned_up(monkeypatch: pytest.MonkeyPatch):
    broken = [sys.executable, "-c", "import sys; print('no such option'); sys.exit(3)"]
    monkeypatch.setattr(local.ray_node, "ray_command", lambda *_: broken)
    monkeypatch.setattr(
        local.ray_node, "exporter_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(60)"]
    )
    monkeypatch.setattr(local, "new_id", lambda: "0badc0de")
    target = create("local", {"name": "broken", "isolation": "loopback"})
    with pytest.raises(TargetFailed, match=r"head ended .* exit code 3: no such option"):
        target.up(ONE_NODE)
    assert_nothing_left("broken", "0badc0de")


def test_a_cluster_that_is_late_is_given_up_with_the_number_of_nodes(monkeypatch: pytest.MonkeyPatch):
    silent = ["sh", "-c", "echo still loading; exec sleep 60"]
    monkeypatch.setattr(local.ray_node, "ray_command", lambda *_: silent)
    monkeypatch.setattr(local.ray_node, "exporter_command", lambda *_: silent)
    monkeypatch.setattr(local, "DEADLINE_SECONDS", 2.0)
    monkeypatch.setattr(local, "new_id", lambda: "0badc0de")
    target = create("local", {"name": "late", "isolation": "loopback"})
    with pytest.raises(TargetFailed, match=r"0 of 1 nodes joined in 2 s\. head: still loading"):
        target.up(ONE_NODE)
    assert_nothing_left("late", "0badc0de")


def test_down_of_what_never_was_does_nothing():
    assert create("local", {"name": "never"}).down() == ()
    assert create("local", {"name": "never"}).status().remains == ()


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
    sessions = {os.getsid(p.pid): p.environ()["RAYMETER_NODE"] for p in everyone if p.environ()}
    for process in everyone:
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


def of_deployment(deployment: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if (process.info["environ"] or {}).get(processes.DEPLOYMENT) == deployment
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def assert_nothing_left(deployment: str, deployment_id: str | None) -> None:
    assert not of_deployment(deployment)
    assert not folder_of(deployment).path.exists()
    if deployment_id is not None:
        assert not namespaces.existing(deployment_id, 2)
        assert not Path(run_folder(deployment_id, run_folders.choose().path)).exists()
        for controller in ("cpu", "cpuacct", "memory", "."):
            assert f"{deployment}-{deployment_id}" not in listing(f"/sys/fs/cgroup/{controller}/raymeter")


def listing(folder: str) -> list[str]:
    return [entry.name for entry in Path(folder).iterdir()] if Path(folder).is_dir() else []


@pytest.mark.parametrize(
    ("boot", "words"), [("another", "started anew"), (boot_id(), "head, worker-1, exporter do not answer")]
)
def test_status_says_why_what_was_stood_up_is_not_up(boot: str, words: str):
    silent = Ports(dashboard=1, exporter=1, agent=1)  # nobody listens there
    names = enumerate(("head", "worker-1"))
    nodes = tuple(Node(name=name, index=i, address="127.0.0.1", cpus=(), ports=silent) for i, name in names)
    gone = State(
        id="gone0000",
        deployment="gone",
        boot_id=boot,
        created=0.0,
        isolation="loopback",
        link="loopback",
        link_rate=None,
        subnet=None,
        run_folder=run_folder("gone0000", run_folders.choose().path),
        topology=TWO_NODES,
        nodes=nodes,
    )
    folder_of("gone").write(gone)
    assert words in create("local", {"name": "gone"}).status().not_ready
    create("local", {"name": "gone"}).down()


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A process of a deployment `elsewhere`, with the state folder and the run folder that it was started with."""
    state, ran_in = tmp_path / "other state" / "raymeter" / "local" / "elsewhere", tmp_path / "rm-0123abcd"
    state.mkdir(parents=True)
    ran_in.mkdir()
    marks = {
        processes.DEPLOYMENT: "elsewhere",
        processes.DEPLOYMENT_ID: "0123abcd",
        "RAYMETER_NODE": "head",
        "RAYMETER_RECORDS": str(state / "records"),
        "RAYMETER_RUN_FOLDER": str(ran_in),
    }
    process = subprocess.Popen(["sleep", "300"], env={**os.environ, **marks}, start_new_session=True)
    try:
        yield state, ran_in
    finally:
        process.kill()
        process.wait()


def test_what_another_state_folder_knows_of_is_told_and_not_ended(sleeper: tuple[Path, Path]):
    state, ran_in = sleeper
    (state / "state.json").write_text("{}")
    target = create("local", {"name": "elsewhere"})
    assert target.status().remains == ()
    assert "started with another state folder" in target.status().not_ready
    with pytest.raises(TargetFailed, match="started with another state folder") as caught:
        target.down()
    assert f"XDG_STATE_HOME='{state.parents[2]}' bench down --name elsewhere" in str(caught.value)
    assert len(of_deployment("elsewhere")) == 1
    assert ran_in.is_dir()


def test_what_no_state_folder_knows_of_is_ended(sleeper: tuple[Path, Path]):
    _, ran_in = sleeper
    target = create("local", {"name": "elsewhere"})
    assert [each.partition(" (")[2] for each in target.status().remains] == ["sleep)"]
    assert len(target.down()) == 1
    assert not of_deployment("elsewhere")
    assert not ran_in.exists()
    assert target.status().remains == target.down() == ()
