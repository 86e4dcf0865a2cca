from __future__ import annotations

from pathlib import Path

import pytest

from bench.targets.local import cgroups

SEPARATE = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""
TOGETHER = """\
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
"""
UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0\n"
GROUP = "raymeter/pair-0a1b2c3d/head"


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        (SEPARATE, ["cpu", "cpuacct", "memory"]),
        (TOGETHER, ["cpu,cpuacct", "memory"]),
        (UNIFIED, ["."]),
        ("proc /proc proc rw 0 0\n", []),
        ("", []),
    ],
)
def test_a_group_is_made_once_in_each_hierarchy(text: str, folders: list[str], tmp_path: Path):
    where = fake_mounts(text, tmp_path)
    assert [str(root.relative_to(tmp_path / "sys/fs/cgroup")) for root in where.roots] == folders


def test_an_empty_version_2_beside_version_1_is_not_taken_for_the_real_one(tmp_path: Path):
    assert fake_mounts(SEPARATE, tmp_path).unified is None


def test_version_1_gets_quota_and_limit(tmp_path: Path):
    where = fake_mounts(SEPARATE, tmp_path)
    assert cgroups.create(where, GROUP, cpus=2, memory_bytes=2**30)
    root = tmp_path / "sys/fs/cgroup"
    assert (root / "cpu" / GROUP / "cpu.cfs_quota_us").read_text() == "200000"
    assert (root / "memory" / GROUP / "memory.limit_in_bytes").read_text() == str(2**30)
    assert (root / "cpuacct" / GROUP).is_dir()


def test_version_2_gets_quota_and_limit_and_passes_the_controllers_down(tmp_path: Path):
    where = fake_mounts(UNIFIED, tmp_path)
    assert cgroups.create(where, GROUP, cpus=1, memory_bytes=2**30)
    root = tmp_path / "sys/fs/cgroup"
    assert (root / GROUP / "cpu.max").read_text() == "100000 100000"
    assert (root / GROUP / "memory.max").read_text() == str(2**30)
    for parent in (".", "raymeter", "raymeter/pair-0a1b2c3d"):
        assert (root / parent / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_where_nothing_may_be_written_there_is_no_group(tmp_path: Path):
    where = fake_mounts(SEPARATE, tmp_path)
    (tmp_path / "sys/fs/cgroup/cpu/raymeter").write_text("a file where a folder is wanted")
    assert not cgroups.create(where, GROUP, cpus=1, memory_bytes=2**30)
    assert not cgroups.exists(where, GROUP)


def test_a_system_without_groups_is_no_error(tmp_path: Path):
    where = fake_mounts("", tmp_path)
    assert not cgroups.create(where, GROUP, cpus=1, memory_bytes=2**30)
    cgroups.remove(where, GROUP)
    assert cgroups.available_memory_bytes(tmp_path) is None


def fake_mounts(text: str, root: Path) -> cgroups.Mounts:
    for line in text.splitlines():
        (root / line.split()[1].lstrip("/")).mkdir(parents=True, exist_ok=True)
    if text == UNIFIED:
        (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    return cgroups.mounts(text, root)
