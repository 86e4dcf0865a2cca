"""CPU quotas of real control groups are seen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.targets.local import cgroups


@pytest.mark.root
def test_a_real_quota_of_a_parent_is_seen_by_a_process_below_it() -> None:
    where = cgroups.mounts()
    parent, group = f"raymeter-test-{os.getpid()}", f"raymeter-test-{os.getpid()}/below"
    if not cgroups.create(where, parent, cpus=1, memory_bytes=2**30):
        pytest.skip("control groups cannot be made here")
    try:
        assert cgroups.create(where, group, cpus=1, memory_bytes=2**30)
        for root in where.roots:  # a quota of its own would hide the parent's
            for name, text in (("cpu.cfs_quota_us", "-1"), ("cpu.max", "max 100000")):
                if (root / group / name).exists():
                    (root / group / name).write_text(text)
        code = "import sys; sys.stdin.read(); from bench.machine.effective_cpus import effective_cpus as e; print(e().quota, e().whole)"
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cgroups.enter(where, group, child.pid)
        said, _ = child.communicate("", timeout=60)
    finally:
        cgroups.remove(where, group)
        cgroups.remove(where, parent)
    assert said.split() == ["1.0", "1"]
