"""The kernel's kills for memory in a real control group."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from bench.targets.local import cgroups
from bench.targets.memory_kills import count


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
