"""How many CPUs a process can use: the least of affinity, cpuset and the quotas of its control group and all parents."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from machines import put

from bench.machine.effective_cpus import EffectiveCpus, effective_cpus, format_list, is_enough, parse_list
from bench.targets.local import cgroups

V2 = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:27 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:28 {root} /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "33 23 0:29 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def a_system(root: Path, mounts: str, groups: str, files: Mapping[str, str], *, mount_root: str = "/") -> Path:
    put(root / "proc/self/mountinfo", f"22 1 8:1 / / rw - ext4 /dev/vda rw\n{mounts.format(root=mount_root)}")
    put(root / "proc/self/cgroup", groups)
    for name, text in files.items():
        put(root / "sys/fs/cgroup" / name, text)
    return root


def v1_quota(folder: str, microseconds: int) -> dict[str, str]:
    return {
        f"cpu,cpuacct/{folder}cpu.cfs_quota_us": str(microseconds),
        f"cpu,cpuacct/{folder}cpu.cfs_period_us": "100000",
    }


@pytest.mark.parametrize(
    ("mounts", "groups", "files", "expected"),
    [
        pytest.param(V2, "0::/", {"cpu.max": "100000 100000"}, (8, 1.0), id="v2, a container's own namespace"),
        pytest.param(V2, "0::/", {"cpu.max": "max 100000"}, (8, None), id="v2, no limit"),
        pytest.param(V2, "0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, (8, 1.5), id="v2, a parent's"),
        pytest.param(
            V2, "0::/a/b", {"a/b/cpu.max": "200000 100000", "a/cpu.max": "400000 100000"}, (8, 2.0), id="v2, the smallest"
        ),
        pytest.param(V2, "0::/a", {"a/cpuset.cpus.effective": "2-3"}, (2, None), id="v2, a cpuset"),
        pytest.param(V2, "0::/../elsewhere", {"cpu.max": "100000 100000"}, (8, 1.0), id="v2, of another namespace"),
        pytest.param(V1, "4:cpu,cpuacct:/a\n3:cpuset:/", v1_quota("a/", 50_000), (8, 0.5), id="v1"),
        pytest.param(V1, "4:cpu,cpuacct:/a/b\n", v1_quota("a/b/", -1) | v1_quota("a/", 300_000), (8, 3.0), id="v1, a parent's"),
        pytest.param(V1, "4:cpu,cpuacct:/\n", v1_quota("", -1), (8, None), id="v1, no limit"),
        pytest.param(
            V1, "4:cpu,cpuacct:/\n3:cpuset:/x", {"cpuset/x/cpuset.effective_cpus": "0,5"}, (2, None), id="v1, a cpuset"
        ),
        pytest.param(V1 + V2, "4:cpu,cpuacct:/a\n0::/", v1_quota("a/", 100_000), (8, 1.0), id="both are mounted"),
        pytest.param("", "", {}, (8, None), id="no control groups"),
    ],
)  # fmt: skip
def test_the_least_of_all_limits_counts(
    tmp_path: Path, mounts: str, groups: str, files: Mapping[str, str], expected: tuple[int, float | None]
) -> None:
    found = effective_cpus(a_system(tmp_path, mounts, groups, files), affinity=range(8))
    assert (len(found.allowed), found.quota) == expected


def test_a_container_that_sees_the_paths_of_its_host_reads_its_own_quota(tmp_path: Path) -> None:
    groups = "4:cpu,cpuacct:/docker/0a1b\n3:cpuset:/docker/0a1b"
    root = a_system(tmp_path, V1, groups, v1_quota("", 100_000), mount_root="/docker/0a1b")
    assert effective_cpus(root, affinity=range(2)).quota == 1.0


def test_a_cpuset_that_names_other_cpus_than_affinity_does_is_of_another_namespace(tmp_path: Path) -> None:
    root = a_system(tmp_path, V2, "0::/", {"cpuset.cpus.effective": "64-71"})
    assert effective_cpus(root, affinity=(0, 1)).allowed == (0, 1)


@pytest.mark.parametrize(
    ("allowed", "quota", "count", "whole", "words"),
    [
        (2, None, 2.0, 2, "2 (affinity 2)"),
        (2, 1.0, 1.0, 1, "1 (affinity 2, CPU quota 1)"),
        (4, 1.5, 1.5, 1, "1.5 (affinity 4, CPU quota 1.5)"),
        (2, 16.0, 2.0, 2, "2 (affinity 2, CPU quota 16)"),
        (4, 0.5, 0.5, 0, "0.5 (affinity 4, CPU quota 0.5)"),
        (4, 1.999, 1.999, 2, "1.999 (affinity 4, CPU quota 1.999)"),  # a quota is rounded to microseconds
    ],
)
def test_what_can_be_used_is_said_with_what_limits_it(
    allowed: int, quota: float | None, count: float, whole: int, words: str
) -> None:
    found = EffectiveCpus(allowed=tuple(range(allowed)), quota=quota)
    assert (found.count, found.whole, str(found)) == (count, whole, words)
    assert found.has(whole)
    assert not found.has(whole + 1)
    assert is_enough(count, whole)


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ()), ("0-1,4-5", (0, 1, 4, 5))]
)
def test_lists_are_read_and_written_as_the_kernel_does(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_list(f"{text}\n") == cpus
    assert format_list(cpus) == text


@pytest.mark.parametrize(
    ("mounts", "groups", "files", "available"),
    [
        (V2, "0::/", {"memory.max": "1000", "memory.current": "400"}, 600),
        (V2, "0::/", {"memory.max": "max", "memory.current": "400"}, None),
        (V2, "0::/", {}, None),
        (
            V2,
            "0::/",
            {"memory.max": "1000", "memory.current": "900", "memory.stat": "file 500\ninactive_file 300"},
            400,
        ),
        pytest.param(
            V2,
            "0::/job/step",
            {"job/step/memory.max": "max", "job/memory.max": "1000", "job/memory.current": "100"},
            900,
            id="a parent's, as of Slurm and systemd",
        ),
        (V1, "2:memory:/", {"memory/memory.limit_in_bytes": "1000", "memory/memory.usage_in_bytes": "1200"}, 0),
        (
            V1,
            "2:memory:/",
            {"memory/memory.limit_in_bytes": f"{2**63 - 4096}", "memory/memory.usage_in_bytes": "4"},
            None,
        ),
        ("", "", {}, None),
    ],
)
def test_memory_is_limited_by_the_same_groups(
    tmp_path: Path, mounts: str, groups: str, files: Mapping[str, str], available: int | None
) -> None:
    assert cgroups.available_memory_bytes(a_system(tmp_path, mounts, groups, files)) == available


def test_this_process_has_what_the_kernel_says() -> None:
    assert set(effective_cpus().allowed) <= os.sched_getaffinity(0)
    assert effective_cpus().whole >= 0
