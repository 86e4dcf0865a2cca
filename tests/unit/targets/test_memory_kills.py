"""The kernel's kills for memory, as either kind of control groups counts them."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from bench.targets.local import cgroups
from bench.targets.memory_kills import count, describe

V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"
V2 = "low 0\nhigh 0\nmax 31\noom 3\noom_kill 1\noom_group_kill 0\n"


@pytest.mark.parametrize(("text", "kills"), [(V1, 2), (V2, 1), ("", 0), ("oom_kill 0\n", 0)])
def test_kills_are_counted_in_both_kinds_of_control_groups(text: str, kills: int) -> None:
    assert count(text) == kills


def test_only_the_nodes_that_lost_something_are_named() -> None:
    assert describe({"head": "oom_kill 0\n", "worker-1": V1}) == (
        "the memory of worker-1 was full, and the kernel killed 2 of its processes"
    )
    assert describe({"head": "", "worker-1": "oom_kill 0"}) == ""


@pytest.mark.root
def test_a_process_that_wants_more_than_its_group_has_is_counted() -> None:
    mounts, group = cgroups.mounts(), "raymeter-test-of-kills"
    if not cgroups.create(mounts, group, cpus=1, memory_bytes=64 * 2**20):
        pytest.skip("control groups cannot be made here")
    eat = "import sys; sys.stdin.read(); eaten = b'x' * (256 << 20)"
    eater = subprocess.Popen([sys.executable, "-c", eat], stdin=subprocess.PIPE)
    try:
        assert count(cgroups.memory_events(mounts, group)) == 0
        cgroups.enter(mounts, group, eater.pid)
        eater.communicate(timeout=60)
        until = time.monotonic() + 10
        while count(cgroups.memory_events(mounts, group)) == 0:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        eater.kill()
        eater.wait()
        cgroups.remove(mounts, group)
    assert eater.returncode == -9
