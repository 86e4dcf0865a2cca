from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from local_nodes import ONE_NODE, TWO_NODES, assert_nothing_left, of_deployment

from bench.errors import BadInput, DoesNotFit, TargetFailed
from bench.targets import create, processes
from bench.targets.local import namespaces, run_folders
from bench.targets.local import target as local
from bench.targets.local.state import Node, Ports, State, boot_id, folder_of, run_folder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "not a valid deployment name"),
        ({"name": "a" * 33}, "not a valid deployment name"),
        ({"name": "../up"}, "not a valid deployment name"),
        ({"name": "Über"}, "not a valid deployment name"),
        ({"link_rate": "fast"}, "must be a rate"),
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
        ({"object_store_bytes_per_node": 2**20}, BadInput, "1 MiB is too small"),
        ({"object_store_bytes_per_node": 2**33}, BadInput, "8192 MiB must be smaller"),
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
    with pytest.raises(
        DoesNotFit, match=rf"logs and spilled objects to {tmp_path}, and 900 MiB are free there\. Free 1024 MiB"
    ):
        create("local", {"isolation": "loopback"}).check(ONE_NODE)


def test_namespaces_without_the_right_to_make_them_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(namespaces, "why_unavailable", lambda: "no right to make them: Operation not permitted")
    with pytest.raises(BadInput, match="Run as root"):
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
    with pytest.raises(TargetFailed, match=r"Nodes registered in 2 s: 0 of 1\. head: still loading"):
        target.up(ONE_NODE)
    assert_nothing_left("late", "0badc0de")


def test_down_of_what_never_was_does_nothing():
    assert create("local", {"name": "never"}).down() == ()
    assert create("local", {"name": "never"}).status().remains == ()


@pytest.mark.parametrize(
    ("boot", "words"), [("another", "was restarted"), (boot_id(), "head, worker-1, exporter do not answer")]
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
    status = create("local", {"name": "gone"}).status()
    assert words in status.not_ready
    assert status.remains == (str(folder_of("gone").path),)
    create("local", {"name": "gone"}).down()


ELSEWHERE = (
    f"elsewhere-{os.getpid()}"  # the processes of all of this machine are looked through: other tests have their own
)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A process of a deployment of ELSEWHERE, with the state folder and the run folder that it was started with."""
    state, ran_in = tmp_path / "other state" / "raymeter" / "local" / ELSEWHERE, tmp_path / "rm-0123abcd"
    state.mkdir(parents=True)
    ran_in.mkdir()
    marks = {
        processes.DEPLOYMENT: ELSEWHERE,
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
    target = create("local", {"name": ELSEWHERE})
    assert target.status().remains == ()
    assert "started with another state folder" in target.status().not_ready
    with pytest.raises(TargetFailed, match="started with another state folder") as caught:
        target.down()
    assert f"XDG_STATE_HOME='{state.parents[2]}' bench down --name {ELSEWHERE}" in str(caught.value)
    assert len(of_deployment(ELSEWHERE)) == 1
    assert ran_in.is_dir()


def test_what_no_state_folder_knows_of_is_ended(sleeper: tuple[Path, Path]):
    _, ran_in = sleeper
    target = create("local", {"name": ELSEWHERE})
    assert [each.partition(" (")[2] for each in target.status().remains] == ["sleep)"]
    assert len(target.down()) == 1
    assert not of_deployment(ELSEWHERE)
    assert not ran_in.exists()
    assert target.status().remains == target.down() == ()
