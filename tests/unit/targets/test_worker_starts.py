"""What is read from a raylet's logs about workers that did not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.targets.worker_starts import describe, failed

# As Ray 2.60 writes them.
STARTED = "[2026-01-01 10:00:00,000 I 7 7] (raylet) worker_pool.cc:564: Started worker process with pid {pid} worker_id={id}\n"
LATE = (
    "[2026-01-01 10:01:00,000 E 7 7] (raylet) worker_pool.cc:586: Some workers of the worker process(12) have not"
    " registered within the timeout. The process is dead, probably it crashed during start.\n"
)
SHELL = "bash: line 1: /home/user/ray: No such file or directory\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "raylet.out").write_text(STARTED.format(pid=11, id="aa11") + STARTED.format(pid=12, id="bb22"))
    (tmp_path / "raylet.err").touch()
    return tmp_path


def test_workers_that_live_or_have_logs_of_their_own_have_started(logs: Path) -> None:
    (logs / "worker-aa11-ffffffff-11.err").touch()
    assert failed(logs, lambda pid: pid == 12) == ""


def test_one_that_ended_without_a_log_is_told_in_the_last_words_of_its_raylet(logs: Path) -> None:
    (logs / "raylet.err").write_text(f"a warning\n{SHELL}\n")
    (logs / "python-core-worker-aa11_11.log").touch()
    assert failed(logs, lambda _: False) == f"worker process 12 ended before it had registered: {SHELL.strip()}"


def test_one_that_ended_without_a_word_is_told_too(logs: Path) -> None:
    assert failed(logs, lambda _: False).endswith("its raylet logged no reason")


def test_one_that_lives_and_does_not_register_is_told_when_ray_says_so(logs: Path) -> None:
    with (logs / "raylet.out").open("a") as file:
        file.write(LATE)
    (logs / "raylet.err").write_text("waiting for the network\n")
    assert (
        failed(logs, lambda _: True)
        == "worker process(12) have not registered within the timeout: waiting for the network"
    )


def test_words_without_a_failure_are_no_failure(logs: Path) -> None:
    (logs / "raylet.err").write_text(SHELL)
    assert failed(logs, lambda _: True) == ""


def test_a_node_without_logs_has_nothing_to_say(tmp_path: Path) -> None:
    assert failed(tmp_path / "none", lambda _: False) == ""


def test_a_long_line_is_cut_and_the_nodes_are_in_one_line(logs: Path) -> None:
    (logs / "raylet.err").write_text(f"{'x' * 10_000} the end")
    reason = failed(logs, lambda _: False)
    assert len(reason) < 1000
    assert reason.endswith("the end")
    assert describe({"head": "", "worker-1": "gone\n"}) == "worker-1: gone"
    assert describe({"head": "\n"}) == ""
