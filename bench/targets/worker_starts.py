"""Finds in a raylet's logs the worker processes that ended before they registered, which Ray reports after a minute.

Run on a node as `python -m bench.targets.worker_starts` it prints the reason, or nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from bench.errors import BenchError, error_in_output

LOGS = Path("/tmp/ray/session_latest/logs")
COMMAND = ("python", "-m", "bench.targets.worker_starts")
TAIL_LINES = 20

_STARTED = re.compile(r"Started worker process with pid (\d+) worker_id=([0-9a-f]+)")
_LATE = re.compile(r"worker process\(\d+\) have not registered within the timeout")


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def failed(logs: Path, is_alive: Callable[[int], bool] = _is_alive) -> str:
    """Why workers of the node with these logs did not start, from its raylet's log; empty if all did."""
    text = _read(logs / "raylet.out")
    ended = [
        pid for pid, worker in _STARTED.findall(text) if not is_alive(int(pid)) and not any(logs.glob(f"*{worker}*"))
    ]
    late = _LATE.findall(text)
    if not ended and not late:
        return ""
    cause = f"worker process {ended[-1]} ended before it had registered" if ended else late[-1].strip()
    return f"{cause}: {error_in_output(_tail(logs / 'raylet.err')) or 'its raylet logged no reason'}"


def describe(by_node: Mapping[str, str]) -> str:
    """The reasons of all nodes in one line; empty if there are none."""
    return "; ".join(f"{node}: {reason.strip()}" for node, reason in by_node.items() if reason.strip())


def ask(ask_nodes: Callable[[Sequence[str]], Mapping[str, str]]) -> str:
    """The reasons of nodes that are asked by a command; empty too if they cannot be asked."""
    with suppress(BenchError):
        return describe(ask_nodes(COMMAND))
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _tail(path: Path) -> str:
    return "\n".join(_read(path).splitlines()[-TAIL_LINES:])


if __name__ == "__main__":
    sys.stdout.write(failed(LOGS))
