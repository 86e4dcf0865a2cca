"""Sessions on a Docker engine: the image, what comes out, what is refused, and what is left when something breaks."""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import boards
import bulk
import docker
import memory
import pytest
import requests
from docker import DockerClient
from person import SMALL, Bench, ended

from bench.errors import RunFailed, RunInvalid
from bench.experiments import NAMES
from bench.identity import code_hash, version
from bench.model import Run
from bench.prometheus import boards as committed
from bench.prometheus.client import Prometheus
from bench.targets import image
from bench.targets.docker import engine as docker_engine
from bench.targets.docker.engine import DEPLOYMENT
from bench.targets.docker.plan import resource_name

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

# How little of every other experiment will do. What is worked on for less than 5 s may be missed by a scrape every 2 s.
LITTLE: dict[str, dict[str, object]] = {
    "parameter-server": {},
    "network": {"largest": 65536, "growth": 16, "most_streams": 1},
    "core-rates": {"calls": 20, "put_bytes": 1048576, "open_loop_seconds": 0.1},
    "granularity": {"shortest": 0.001, "longest": 1},  # on a busy machine shorter tasks do not count
    "tune-overhead": {"trial_seconds": 1},
    "clustering-kernels": {"jobs": 2, "points": 20000, "iterations": 20},
    "clustering-files": {"kib": 64},
    "tune": {"trials": 2, "max_iterations": 2, "iteration_samples": 1000},
    "clustering": {"jobs": 100, "points": 1000},
}
LONGER = ("--set", "batch=1000", "--set", "inputs=50000", "--set", "data_path=by-value")
ONE_CPU = ("--topology", "single", "--nodes", "1", "--cpus", "1", "--memory-mib", "2048", "--object-store-mib", "200")


@pytest.fixture(scope="module")
def engine() -> DockerClient:
    try:
        client = docker.from_env()
        client.ping()
    except (docker.errors.DockerException, requests.RequestException) as error:
        pytest.skip(f"needs a Docker engine that answers: {error}")
    return client


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("docker")
    return Bench(folder, {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)})


@pytest.fixture(scope="module")
def built(engine: DockerClient, bench: Bench) -> str:
    """The tag of an image with this very code."""
    code, out, err = bench("image")
    assert code == 0, err
    assert "GB" in out
    assert "sha256:" in out
    return image.exact_tag()


@pytest.fixture
def deployment(engine: DockerClient, bench: Bench) -> Iterator[str]:
    """A name of its own, under which nothing is left."""
    name = f"e2e-{secrets.token_hex(3)}"
    yield name
    bench("down", "--target", "docker", "--name", name)
    assert left(engine, name) == []


@dataclass(frozen=True)
class Appliance:
    """One that stays up while sessions are run on it."""

    bench: Bench
    name: str

    @property
    def words(self) -> tuple[str, ...]:
        return ("--target", "docker", "--name", self.name)

    def run(self, *words: str) -> str:
        """Run a session of one block; its id."""
        code, out, err = self.bench("run", *words, "--blocks", "1", *self.words, minutes=12)
        assert code == 0, f"{out}\n{err}"
        return self.bench.session().id

    def urls(self) -> dict[str, str]:
        code, out, err = self.bench("status", *self.words)
        assert code == 0, err
        assert " is up: " in out, out  # else what is left of it, and why
        return {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}


@pytest.fixture(scope="module")
def deployment_up(engine: DockerClient, bench: Bench, built: str) -> Iterator[Appliance]:
    up = Appliance(bench, f"e2e-{secrets.token_hex(3)}")
    try:
        code, out, err = bench("up", *up.words, "--topology", "single")
        assert code == 0, err
        assert "Prometheus http://127.0.0.1:" in out
        yield up
    finally:
        bench("down", *up.words)
    assert left(engine, up.name) == []


@pytest.fixture(scope="module")
def session(engine: DockerClient, deployment_up: Appliance) -> str:
    """The session of inference on both topologies, through which Prometheus stays the same."""
    prometheus = resource_name(deployment_up.name, "prometheus")
    before = engine.containers.get(prometheus).id
    made = deployment_up.run("inference", *SMALL)
    assert engine.containers.get(prometheus).id == before
    return made


@pytest.fixture(scope="module")
def session_of_the_others(bench: Bench, deployment_up: Appliance, session: str) -> str:
    """A session of all other experiments, on several nodes."""
    plan = bench.folder / "others.toml"
    tables = [
        f"[experiments.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        for name, settings in LITTLE.items()
    ]
    plan.write_text('profile = "tiny"\n' + "".join(tables))
    return deployment_up.run("--plan", str(plan), "--topology", "multi")


class TestTheImage:
    def test_it_is_labelled(self, engine: DockerClient, built: str) -> None:
        labels = engine.images.get(built).labels
        assert labels[image.CODE_HASH] == code_hash()
        assert labels["org.opencontainers.image.version"] == version()
        assert labels["org.opencontainers.image.base.name"].startswith("python:3.11-")
        assert engine.images.get(image.default_tag()).id == engine.images.get(built).id

    def test_its_user_is_nobody_special_and_its_code_is_the_callers(self, engine: DockerClient, built: str) -> None:
        assert engine.images.get(built).attrs["Config"]["User"] == "1000:1000"
        script = (
            "id -u && python -c 'from bench.identity import code_hash; print(code_hash())' && ray --version"
            " && ! touch /opt/raymeter/bench/x 2>/dev/null && echo $RAY_AUTH_MODE"
        )
        said = engine.containers.run(built, ["/bin/bash", "-c", script], remove=True, network_mode="none").decode()
        user, code, ray, mode = said.splitlines()[-4:]
        assert (user, code, mode) == ("1000", code_hash(), "token")
        assert "2.60.0" in ray


class TestASession:
    def test_its_runs_are_good_and_say_where_they_were_done(self, bench: Bench, session: str, built: str) -> None:
        runs = bench.runs(session)
        assert {run.spec.topology.name for run in runs} == {"single", "multi"}
        for run in runs:
            assert (run.status, run.reasons, run.reconciled) == ("ok", (), True)
            assert {"bench_sample_value", "ray_node_mem_used", "up"} <= bench.metrics_kept(run)
            assert run.facts is not None
            assert run.facts.link == "docker bridge"
            for node in run.facts.nodes:
                assert node.code_hash == code_hash()
                assert str(node.image_digest).startswith("sha256:")
                assert node.versions["base image"].startswith("python:3.11-")
                assert len(node.versions["lock"]) == 16
                assert node.cpu_quota == node.cpus_allowed == run.spec.topology.cpus_per_node
                assert node.memory_limit_bytes == run.spec.topology.memory_bytes_per_node

    def test_each_container_is_counted_by_itself(self, bench: Bench, session: str) -> None:
        (multi,) = [run for run in bench.runs(session) if run.spec.topology.name == "multi"]
        head, worker = (usage_of(multi, node) for node in ("head", "worker-1"))
        payload_bytes = 5000 * 784 // 2  # half of the inputs go to the other node, by value, at a byte a pixel or more
        assert worker["received_bytes"] > payload_bytes
        assert head["sent_bytes"] > payload_bytes
        for node in (head, worker):
            assert node["cpu_seconds"] > 0
            assert node["peak_memory_bytes"] < multi.spec.topology.memory_bytes_per_node

    def test_prometheus_has_both_topologies(self, deployment_up: Appliance, session: str) -> None:
        prometheus = Prometheus(deployment_up.urls()["Prometheus"])
        mine = f'bench_sample_value{{session="{session}"}}'
        found = prometheus.label_values("topology", mine, begin=time.time() - 600, end=time.time())
        assert set(found) == {"single", "multi"}
        scraped = {(s.labels["instance"], s.labels["endpoint"]) for s in prometheus.query("max_over_time(up[1m]) == 1")}
        assert {(t.labels["instance"], t.labels["endpoint"]) for t in prometheus.targets()} <= scraped

    def test_status_and_the_page_lead_to_its_dashboards(
        self, bench: Bench, deployment_up: Appliance, session: str
    ) -> None:
        board = f"{deployment_up.urls()['Grafana']}/d/{committed.uid(committed.HOME)}?var-session="
        assert f": {board}" in bench("status", *deployment_up.words)[1]
        page = (bench.session_folder(session) / "report.html").read_text()
        assert f'href="{board}{session}&amp;' in page

    # For every experiment here, and for one in Kubernetes: the queries are the same there, and what could be another
    # one there, the counters of nodes, are in every experiment's boards.
    def test_every_panel_shows_something(self, bench: Bench, deployment_up: Appliance, session: str) -> None:
        assert boards.empty(deployment_up.urls()["Grafana"], bench.session(session), "inference") == []

    @pytest.mark.parametrize("experiment", LITTLE)
    def test_every_panel_shows_something_of_every_other_experiment_on_several_nodes(
        self, bench: Bench, deployment_up: Appliance, session_of_the_others: str, experiment: str
    ) -> None:
        others = bench.session(session_of_the_others)
        assert {other for other in NAMES if other != "inference"} == {spec.experiment for spec in others.specs}
        assert boards.empty(deployment_up.urls()["Grafana"], others, experiment) == []

    def test_the_doctor_finds_all_of_it_well(self, bench: Bench, deployment_up: Appliance, session: str) -> None:
        code, out, err = bench("doctor", *deployment_up.words)
        assert code == 0, f"{out}\n{err}"
        good = {line[6:26].strip() for line in out.splitlines() if line.startswith("good")}
        assert {"target docker", "Jobs API", "exporter", "token", "nodes' versions", "pages", "panels"} <= good, out
        nodes = [line for line in out.splitlines() if line[6:].startswith("node ")]
        assert {line[6:26].strip() for line in nodes} >= {"node head"}
        assert not [line for line in out.splitlines() if line.startswith("bad")]

    def test_it_takes_no_job_without_the_token(self, engine: DockerClient, deployment_up: Appliance) -> None:
        head = engine.containers.get(resource_name(deployment_up.name, "head"))
        (port,) = head.ports["8265/tcp"]
        assert port["HostIp"] == "127.0.0.1"
        assert requests.get(f"http://127.0.0.1:{port['HostPort']}/api/jobs/", timeout=10).status_code == 401
        token = docker_engine.read_file(head, "/run/raymeter/token").decode()
        assert len(token) == 64
        assert token not in str(head.attrs)

    def test_a_node_whose_memory_gets_full_makes_its_run_invalid_and_says_so(
        self, engine: DockerClient, bench: Bench, deployment_up: Appliance
    ) -> None:
        before = memory.sessions(bench)
        running = bench.start("run", "inference", "--blocks", "1", "--topology", "multi", *LONGER, *deployment_up.words)
        memory.wait_until_measuring(bench, before)
        worker = engine.containers.get(resource_name(deployment_up.name, "worker-1"))
        worker.exec_run(list(memory.EAT), detach=True)
        code, out, err = ended(running, "bench run", 5)
        assert code == RunInvalid.exit_code, f"{out}\n{err}"
        (run,) = bench.runs()
        assert run.status == "invalid"
        assert "memory" in run.reasons[0]
        assert "worker-1" in run.reasons[0]


def test_two_deployments_do_not_meet(engine: DockerClient, bench: Bench, built: str, deployment: str) -> None:
    other = f"{deployment}-too"
    try:
        for name in (deployment, other):
            code, _, err = bench("up", "--target", "docker", "--name", name, *ONE_CPU)
            assert code == 0, err
        # Also for who has another state folder: what runs is found by the engine's labels.
        elsewhere = Bench(bench.folder, {**bench.environment, "XDG_STATE_HOME": str(bench.folder / "another-state")})
        assert elsewhere("down", "--target", "docker", "--name", other)[0] == 0
        assert left(engine, other) == []
        for there in (bench, elsewhere):
            _, out, _ = there("status", "--target", "docker", "--name", deployment)
            assert "single is up: head" in out
    finally:
        bench("down", "--target", "docker", "--name", other)


@pytest.mark.parametrize("part", ["", "head", "prometheus"])
def test_a_command_line_that_is_killed_leaves_nothing_after_down(
    engine: DockerClient, bench: Bench, built: str, deployment: str, part: str
) -> None:
    starting = bench.start("up", "--target", "docker", "--name", deployment)
    wait_for(lambda: [name for name in left(engine, deployment) if name.endswith(resource_name(deployment, part))])
    os.killpg(starting.pid, signal.SIGKILL)
    starting.wait(10)
    code, out, err = bench("down", "--target", "docker", "--name", deployment)
    assert code == 0, err
    assert resource_name(deployment) in out
    assert left(engine, deployment) == []
    assert bench("down", "--target", "docker", "--name", deployment)[1] == "Nothing was running.\n"


def test_an_image_of_other_code_is_refused_unless_the_local_code_is_sent(
    engine: DockerClient, bench: Bench, built: str, deployment: str
) -> None:
    there = ("--target", "docker", "--name", deployment, *ONE_CPU)
    with derived(engine, built, f"LABEL {image.CODE_HASH}=0123456789abcdef") as other:
        code, _, err = bench("up", *there, "--image", other)
        assert code == 2
        assert err.count("\n") == 1
        for words in (other, "0123456789abcdef", code_hash(), "task image", "--dev"):
            assert words in err
        assert left(engine, deployment) == []
        code, _, err = bench("up", *there, "--image", other, "--dev")
        assert code == 0, err
        head = engine.containers.get(resource_name(deployment, "head"))
        asked = "import os; from bench import identity as i; print(i.code_hash(), i.SOURCE, os.environ['RAYMETER_IMAGE_DIGEST'])"
        hash_there, source, *digest = head.exec_run(["python", "-c", asked]).output.decode().split(" ", 2)
        assert source == "/opt/raymeter-local/bench"
        assert hash_there == subprocess_code_hash(bench)
        assert digest[0].strip() == f"{engine.images.get(other).id} with local code"
        bench("down", "--target", "docker", "--name", deployment)


def test_a_link_rate_is_what_a_bulk_transfer_between_two_nodes_gets(bench: Bench, built: str, deployment: str) -> None:
    bulk.assert_limited(bench, "docker bridge", "--target", "docker", "--name", deployment)


def test_an_image_that_cannot_limit_a_link_is_told_of_with_what_is_missing(
    engine: DockerClient, bench: Bench, built: str, deployment: str
) -> None:
    there = ("--target", "docker", "--name", deployment, *ONE_CPU)
    with derived(engine, built, "USER 0\nRUN rm $(command -v tc)\nUSER 1000:1000") as other:
        code, _, err = bench("up", *there, "--image", other, "--link-rate", "100mbit")
        assert code == 4
        assert err.splitlines()[-1].startswith("bench: ")
        for words in ("The link of head cannot be limited", '"tc"', "Leave --link-rate out"):
            assert words in err
        assert left(engine, deployment) == []


def test_a_driver_whose_image_lies_about_its_code_refuses_to_measure(
    engine: DockerClient, bench: Bench, built: str, deployment: str
) -> None:
    changed = "USER 0\nRUN echo '# changed' >> /opt/raymeter/bench/errors.py\nUSER 1000:1000"
    with derived(engine, built, changed) as other:
        few = ("--blocks", "1", *SMALL)
        there = ("--target", "docker", "--name", deployment, *ONE_CPU, "--image", other)
        code, _, err = bench("run", "inference", *few, *there)
        assert code == RunFailed.exit_code, err
        (run,) = bench.runs()
        assert run.status == "failed"
        assert "this driver has the code" in run.reasons[0]
        assert code_hash() in run.reasons[0]
        assert run.samples == ()


def test_a_node_that_ends_while_it_starts_is_told_of_in_its_own_words(
    engine: DockerClient, bench: Bench, built: str, deployment: str
) -> None:
    broken = """ENTRYPOINT ["python", "-c", "print('no such thing'); raise SystemExit(3)"]"""
    with derived(engine, built, broken) as other:
        code, _, err = bench("up", "--target", "docker", "--name", deployment, *ONE_CPU, "--image", other)
        assert code == 4
        assert "exit code 3: no such thing" in err
        assert left(engine, deployment) == []


def left(engine: DockerClient, deployment: str) -> list[str]:
    return [name for name, _ in docker_engine.remains(engine, {DEPLOYMENT: deployment})]


def usage_of(run: Run, node: str) -> dict[str, float]:
    """What `node` used in the first sample of the subject that counts."""
    usage = next(u for u in run.usage if u.node == node and u.arm == "ray" and not u.warmup)
    return {name: value for name, value in asdict(usage).items() if isinstance(value, int | float)}


def wait_for(what: Callable[[], object], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(0.02)


def subprocess_code_hash(bench: Bench) -> str:
    """The hash of the code as it is now: this process may remember another, where a person is at work on it."""
    code = "from bench.identity import code_hash; print(code_hash())"
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()


@contextmanager
def derived(engine: DockerClient, base: str, line: str) -> Iterator[str]:
    """An image like `base` but for one line."""
    tag = f"raymeter/ray:e2e-{secrets.token_hex(3)}"
    engine.images.build(fileobj=io.BytesIO(f"FROM {base}\n{line}\n".encode()), tag=tag, rm=True)
    try:
        yield tag
    finally:
        engine.images.remove(tag, force=True)
