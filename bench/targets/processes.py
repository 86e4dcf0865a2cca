"""Finds and ends the processes of one deployment by two variables in their environment.

Each process that Ray starts inherits its environment, so two variables mark them all. A process that renames itself
can overwrite what /proc shows of its environment (Ray's dashboard does): it is known by its parents, or by the
session that its head node's `ray start` opened.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from bench.errors import TargetFailed

DEPLOYMENT = "RAYMETER_DEPLOYMENT"
DEPLOYMENT_ID = "RAYMETER_DEPLOYMENT_ID"

_OURS_IN_SHM = re.compile(r"/dev/shm/(?:plasma|psm_|torch_|sem\.mp-)[^\s]*")


def start(
    command: Sequence[str], *, environment: Mapping[str, str], cpus: Collection[int], log: Path, folder: Path
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, on `cpus` only, its output going to `log`."""
    with log.open("ab") as output, _pinned(cpus):
        return subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def find(deployment: str, deployment_id: str) -> list[psutil.Process]:
    """All living processes of one deployment, without the caller and its parents."""
    processes = {process.pid: process for process in psutil.process_iter(["name", "ppid", "environ", "status"])}
    marked = {pid for pid, process in processes.items() if _is_marked(process, deployment, deployment_id)}
    sessions = set(_sessions(marked))
    ours = marked | {pid for pid, process in processes.items() if _hides(process) and _session(pid) in sessions}
    while children := {pid for pid, process in processes.items() if process.info["ppid"] in ours} - ours:
        ours |= children
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [processes[pid] for pid in sorted(ours - spared) if processes[pid].info["status"] != psutil.STATUS_ZOMBIE]


def cpu_seconds(deployment: str, deployment_id: str) -> float:
    """CPU time of a deployment's living processes, and of their children that have ended."""
    used = 0.0
    for process in find(deployment, deployment_id):
        with suppress(psutil.Error):
            used += sum(
                process.cpu_times()[:4]
            )  # its own, then of children that it has waited for: user and system of each
    return used


def end_all(deployment: str, deployment_id: str, *, grace_seconds: float = 0.5, deadline_seconds: float = 20.0) -> int:
    """End every process of one deployment: SIGTERM, a grace period, SIGKILL. Returns their number."""
    ended: set[int] = set()
    shared_memory: set[str] = set()
    deadline = time.monotonic() + deadline_seconds
    while processes := find(deployment, deployment_id):
        if time.monotonic() > deadline:
            raise TargetFailed(
                f"{len(processes)} processes of {deployment} do not end, among them {processes[0].pid}.",
                "They may wait for a disk: try again.",
            )
        ended |= {process.pid for process in processes}
        shared_memory |= set(_shared_memory(processes))
        _signal(processes, "terminate")
        alive = _wait(processes, grace_seconds)
        _signal(alive, "kill")
        _wait(alive, seconds=5.0)
        grace_seconds = 0.0  # processes found from now on were started by one that has ended: they need no grace period
    for path in shared_memory:
        with suppress(OSError):
            Path(path).unlink()
    return len(ended)


@contextmanager
def _pinned(cpus: Collection[int]) -> Iterator[None]:
    # A child inherits the affinity of the thread that starts it: no code need run between fork and exec.
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _is_marked(process: psutil.Process, deployment: str, deployment_id: str) -> bool:
    environment = process.info["environ"] or {}
    return bool(environment.get(DEPLOYMENT) == deployment and environment.get(DEPLOYMENT_ID) == deployment_id)


def _hides(process: psutil.Process) -> bool:
    return "PATH" not in (process.info["environ"] or {})


def _sessions(pids: Iterable[int]) -> Iterator[int]:
    own = _session(os.getpid())
    for pid in pids:
        session = _session(pid)
        if session not in (None, own):
            yield session


def _session(pid: int) -> int | None:
    with suppress(OSError):
        return os.getsid(pid)
    return None


def _shared_memory(processes: Iterable[psutil.Process]) -> Iterator[str]:
    # Python and torch name their shared memory: a process that is killed leaves it behind.
    for process in processes:
        with suppress(OSError):
            for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
                path = line.split(None, 5)[-1]
                if _OURS_IN_SHM.fullmatch(path):
                    yield path


def _signal(processes: Iterable[psutil.Process], signal: str) -> None:
    for process in processes:
        with suppress(psutil.Error):
            getattr(process, signal)()  # psutil refuses if another process has the pid by now


def _wait(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    deadline = time.monotonic() + seconds
    while (alive := [process for process in processes if _lives(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return alive


def _lives(process: psutil.Process) -> bool:
    # A zombie holds no resources, and only its parent can remove it.
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False
