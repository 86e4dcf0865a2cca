from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import psutil
import pytest

from bench.targets import processes

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
RENAMED = """
import ctypes, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={"A": "1"})
print(child.pid, flush=True)
time.sleep(60)
"""
SHARES = """
from multiprocessing import shared_memory
import time
memory = shared_memory.SharedMemory(create=True, size=4096)
print(memory.name, flush=True)
time.sleep(60)
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    children: list[subprocess.Popen[bytes]] = []
    yield children
    for child in children:
        child.kill()
        child.wait()


def test_only_the_marked_are_found(started, tmp_path: Path):
    ours, others = run("mine", "1", tmp_path), run("mine", "2", tmp_path)
    started += [ours, others, run("theirs", "1", tmp_path)]
    assert [process.pid for process in processes.find("mine", "1")] == [ours.pid]


def test_a_child_that_dropped_the_mark_is_found_by_its_parent(started, tmp_path: Path):
    parent = run("family", "1", tmp_path, RENAMED)
    started.append(parent)
    child = int(first_line(tmp_path / "family-1.log"))
    assert {process.pid for process in processes.find("family", "1")} == {parent.pid, child}
    assert processes.end_all("family", "1") == 2
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_cpu_time_is_that_of_the_marked_processes_and_of_their_children_that_ended(started, tmp_path: Path):
    works = "import time; begin = time.process_time()\nwhile time.process_time() < begin + 0.3: pass\n"
    family = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {works!r}])\nprint('up', flush=True)\ntime.sleep(60)"
    started += [run("family", "1", tmp_path, family), run("family", "2", tmp_path)]
    first_line(tmp_path / "family-1.log")
    assert 0.3 <= processes.cpu_seconds("family", "1") < 30
    assert processes.cpu_seconds("family", "3") == 0.0


def test_who_will_not_end_is_ended_and_nobody_else(started, tmp_path: Path):
    stubborn, other = run("stubborn", "1", tmp_path, STUBBORN), run("stubborn", "2", tmp_path)
    started += [stubborn, other]
    first_line(tmp_path / "stubborn-1.log")
    assert processes.end_all("stubborn", "1", grace_seconds=0.1) == 1
    assert stubborn.wait(timeout=5) == -9
    assert other.poll() is None


def test_the_caller_is_spared_even_when_it_is_marked(tmp_path: Path):
    code = "from bench.targets import processes; print(processes.end_all('inside', '1'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=marked("inside", "1"), capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "0\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin")
def test_a_process_is_pinned_from_its_first_moment_and_its_maker_is_not(started, tmp_path: Path):
    before = os.sched_getaffinity(0)
    last = max(before)
    child = run("pinned", "1", tmp_path, cpus=(last,))
    started.append(child)
    assert os.sched_getaffinity(child.pid) == {last}
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this system has no /dev/shm")
def test_shared_memory_of_the_ended_goes_with_them_and_that_of_others_stays(started, tmp_path: Path):
    mine = shared_memory.SharedMemory(create=True, size=4096)
    try:
        started.append(run("sharing", "1", tmp_path, SHARES))
        theirs = Path("/dev/shm") / first_line(tmp_path / "sharing-1.log")
        assert theirs.exists()
        processes.end_all("sharing", "1", grace_seconds=0.0)
        assert not theirs.exists()
        assert Path("/dev/shm", mine.name.lstrip("/")).exists()
    finally:
        mine.close()
        mine.unlink()
        resource_tracker.ensure_running()


def run(
    deployment: str,
    deployment_id: str,
    folder: Path,
    code: str = "import time; time.sleep(60)",
    cpus: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    return processes.start(
        [sys.executable, "-c", code],
        environment=marked(deployment, deployment_id),
        cpus=cpus,
        log=folder / f"{deployment}-{deployment_id}.log",
        folder=folder,
    )


def marked(deployment: str, deployment_id: str) -> Mapping[str, str]:
    return {**os.environ, processes.DEPLOYMENT: deployment, processes.DEPLOYMENT_ID: deployment_id}


def first_line(log: Path) -> str:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if "\n" in (text := log.read_text()):
            return text.splitlines()[0]
        time.sleep(0.02)
    raise AssertionError(f"{log.name} stayed empty")
