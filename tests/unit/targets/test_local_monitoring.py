"""Prometheus beside local nodes: what it is started with, and what is said where it cannot be."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import psutil
import pytest
import yaml
from local_nodes import ONE_NODE, TWO_NODES, assert_nothing_left, of_deployment

from bench.errors import ProgramMissing, TargetFailed
from bench.targets import create
from bench.targets.local import Options, monitoring, run_folders
from bench.targets.local import target as local
from bench.targets.local.state import Monitoring, Node, Ports, State, folder_of, run_folder

NAME = f"beside-{os.getpid()}"
BESIDE = Monitoring(id="0123abcd", port=32_100, cgroup=f"raymeter/{NAME}-0123abcd/prometheus")


def a_state() -> State:
    ports = (Ports(), Ports(metrics=20_004))
    nodes = tuple(
        Node(name=name, index=index, address=f"127.0.0.{index + 2}", cpus=(), ports=ports[index])
        for index, name in enumerate(("head", "worker-1"))
    )
    return State(
        id="89abcdef", deployment=NAME, boot_id="", created=0.0, isolation="loopback", link="", link_rate=None, subnet=None,
        run_folder=run_folder("89abcdef", run_folders.choose().path), topology=TWO_NODES, nodes=nodes, monitoring=BESIDE,
    )  # fmt: skip


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make `script` the program prometheus."""
    program = folder / "prometheus"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_without_the_program_it_is_refused_in_one_line_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    target = create("local", {"name": NAME, "isolation": "loopback", "monitoring": True})
    for use in (target.check, target.up):
        with pytest.raises(ProgramMissing, match="needs the program prometheus, which is not on PATH") as refusal:
            use(ONE_NODE)
        assert refusal.value.exit_code == 15
        assert "\n" not in str(refusal.value)
    assert not folder_of(NAME).path.exists()
    create("local", {"name": NAME, "isolation": "loopback"}).check(ONE_NODE)


def test_it_scrapes_each_page_at_the_address_of_its_node() -> None:
    config = yaml.safe_load(monitoring.config(a_state(), BESIDE))
    found = {
        (job["job_name"], each["labels"]["instance"], each["labels"]["endpoint"]): each["targets"]
        for job in config["scrape_configs"]
        for each in job["static_configs"]
    }
    assert found == {
        ("ray", "head", "metrics"): ["127.0.0.2:8080"],
        ("ray", "worker-1", "metrics"): ["127.0.0.3:20004"],
        ("ray", "head", "dash-metrics"): ["127.0.0.2:44227"],
        ("bench", "head", "bench-metrics"): ["127.0.0.2:8090"],
        ("prometheus", "prometheus", "web"): ["127.0.0.1:32100"],
    }


def test_it_listens_on_loopback_alone_and_its_disk_is_bounded() -> None:
    command = monitoring.command("/bin/prometheus", BESIDE, folder_of(NAME))
    assert "--web.listen-address=127.0.0.1:32100" in command
    assert any(word.startswith("--storage.tsdb.retention.size=") for word in command)
    (data,) = [word for word in command if word.startswith("--storage.tsdb.path=")]
    assert data.endswith(f"{folder_of(NAME).path}/prometheus/data")


def test_a_deployment_keeps_whether_it_was_asked_for() -> None:
    assert Options(monitoring=True).given() == {"monitoring": True}
    assert Options().given() == {}


def test_one_that_cannot_start_is_told_in_its_own_words_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path(tmp_path, monkeypatch, "import sys; print('error: the disk is full'); sys.exit(2)")
    sleeping = ["sh", "-c", "exec sleep 60"]
    monkeypatch.setattr(local.ray_node, "ray_command", lambda *_: sleeping)
    monkeypatch.setattr(local.ray_node, "exporter_command", lambda *_: sleeping)
    monkeypatch.setattr(local, "new_id", lambda: "0badc0de")
    target = create("local", {"name": NAME, "isolation": "loopback", "monitoring": True})
    with pytest.raises(TargetFailed, match=r"prometheus ended .* exit code 2: error: the disk is full"):
        target.up(ONE_NODE)
    assert_nothing_left(NAME, "0badc0de")


def test_an_orphan_is_found_and_ended_by_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(tmp_path, monkeypatch, "import time; time.sleep(60)")
    state, folder = a_state(), folder_of(NAME)
    folder.write(state)
    process = monitoring.ensure(state, BESIDE, folder)
    assert process is not None
    assert [each.pid for each in of_deployment(NAME)] == [process.pid]
    assert psutil.Process(process.pid).environ()["GOMEMLIMIT"] == str(monitoring.SOFT_MEMORY_BYTES)
    (folder.path / "state.json").unlink()
    try:
        assert any(f"process {process.pid} " in each for each in create("local", {"name": NAME}).status().remains)
        assert any(f"process {process.pid} " in each for each in create("local", {"name": NAME}).down())
    finally:
        process.kill()
        process.wait()
    assert_nothing_left(NAME, BESIDE.id)
