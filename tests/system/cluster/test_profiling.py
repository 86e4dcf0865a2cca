"""Each profiler on a real process: it sees the function that does the work, and what it left outlives the process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench import stacks
from bench.cluster import profiling
from bench.errors import BadInput
from bench.planning.needs import check_profiler

WATCHED = """
import os, signal, sys, time
from pathlib import Path
from bench.cluster import profiling

held = []
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # as the driver of a job has it

def works_hard():
    held.append(bytearray(50_000_000))
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        sum(range(1000))

end = profiling.start(sys.argv[1], Path(sys.argv[2]))
works_hard()
if sys.argv[3] == "killed":  # as Ray ends a worker
    os.kill(os.getpid(), signal.SIGKILL)
end()
assert [path for path in Path(sys.argv[2]).iterdir() if path.suffix in (".folded", ".bin")]
"""


def watched(profiler: str, folder: Path, end: str) -> dict[str, int]:
    """What each function had, with all that it called, in a process that ended so."""
    if reason := profiling.why_unavailable(profiler):
        pytest.skip(reason)
    words = [sys.executable, "-c", WATCHED, profiler, str(folder), end]
    done = subprocess.run(words, timeout=60, check=False)
    assert done.returncode == (0 if end == "ended" else -signal.SIGKILL)
    found = stacks.parse(profiling.read(profiler, folder))
    return {name: total for name, _, total in stacks.by_function(found)}


@pytest.mark.parametrize("end", ["ended", "killed"])
@pytest.mark.parametrize("profiler", ["py-spy", "pyinstrument"])
def test_the_time_of_a_process_is_where_it_worked(profiler: str, end: str, tmp_path: Path) -> None:
    found = watched(profiler, tmp_path, end)
    (seconds,) = [each / 1e6 for name, each in found.items() if name.startswith("works_hard (")]
    assert 0.5 < seconds < 4  # of 2.5; what was seen in the last second of a process that is killed may be lost
    assert not any(str(Path(sys.prefix)) in name for name in found)


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_the_memory_of_a_process_is_where_it_was_taken(end: str, tmp_path: Path) -> None:
    found = watched("memray", tmp_path, end)
    (held,) = [each for name, each in found.items() if name.startswith("works_hard (")]
    assert 50_000_000 <= held < 52_000_000


def test_a_node_on_which_nothing_ran_has_no_profile(tmp_path: Path) -> None:
    for profiler in stacks.PROFILERS:
        assert profiling.read(profiler, tmp_path / "none") == ""


def test_a_frame_does_not_say_where_things_are_installed() -> None:
    assert profiling._name_of(f"dumps\0{subprocess.__file__}\x0012") == "dumps (subprocess.py)"
    assert profiling._name_of(f"start\0{profiling.__file__}\x0012") == "start (bench/cluster/profiling.py)"
    assert profiling._name_of("f;g\0/elsewhere/of/mine.py\x001\x01l12") == "f,g (mine.py)"


def test_a_py_spy_that_may_not_read_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = tmp_path / "py-spy"
    refused.write_text("#!/bin/sh\necho 'Error: Permission Denied' >&2\nexit 1\n")
    refused.chmod(0o755)
    monkeypatch.setattr(profiling, "_py_spy", lambda: str(refused))
    assert "Permission Denied" in profiling.why_unavailable("py-spy")
    assert "SYS_PTRACE" in profiling.why_unavailable("py-spy")
    with pytest.raises(BadInput, match="SYS_PTRACE"):
        check_profiler("py-spy", "local")
    check_profiler("py-spy", "k8s")  # its nodes are asked when they are there


def test_a_profiler_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "find_spec", lambda _: None)
    with pytest.raises(BadInput, match="pip install memray"):
        check_profiler("memray", "local")


def test_another_profiler_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="Did you mean py-spy") as told:
        check_profiler("pyspy", "k8s")
    assert "memray" in str(told.value)
