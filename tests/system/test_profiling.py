"""`--profile-with`: what an experiment that knows nothing of it did, in the driver and in the workers of both nodes."""

from __future__ import annotations

import pytest
from person import SMALL, Bench

from bench import stacks
from bench.cluster import profiling

pytestmark = pytest.mark.ray


@pytest.mark.timeout(300)
@pytest.mark.parametrize("profiler", stacks.PROFILERS)
def test_driver_and_workers_of_each_node_are_profiled(bench: Bench, profiler: str) -> None:
    if reason := profiling.why_unavailable(profiler):
        pytest.skip(reason)
    small = (*SMALL, "--set", "open_loop=off", "--topology", "multi", "--cpus", "2", "--blocks", "1")
    code, _, talk = bench("run", "inference", *small, "--isolation", "loopback", "--profile-with", profiler)
    assert code == 0, talk
    (run,) = bench.runs()
    assert run.facts is not None
    assert run.facts.profiler == profiler
    names = [stacks.file_name(profiler, where) for where in (stacks.DRIVER, "head", "worker-1")]
    assert sorted(run.profiles) == sorted(names)
    for name, text in run.profiles.items():
        assert len(text.encode()) <= stacks.MOST_BYTES
        seen = {function for function, _, _ in stacks.by_function(stacks.parse(text))}
        wanted = "(bench/experiments/" if profiler != "memray" or "driver" in name else "(ray/"
        assert any(wanted in function for function in seen), name
    page = (bench.session_folder() / "report.html").read_text()
    assert page.count('<p class="title">Flame graph: multi, ') == len(names)
    assert f"profiled by {profiler}" in page
    _, shown, _ = bench("show", "latest", run.spec.folder)
    assert all(f"files/{name}  " in shown for name in names)
