"""The kernel's kills for memory, as either kind of control groups counts them."""

from __future__ import annotations

import pytest

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
