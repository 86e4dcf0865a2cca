"""Describes what waits for CPUs in a cluster and what holds them, to explain why a run missed its deadline.

Ray keeps tasks and actors pending for ever if they do not fit, without a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.counts import plural

Rows = Sequence[Mapping[str, Any]]
"""Rows of one of the lists of Ray's state API, with details."""

LISTS = ("nodes", "placement_groups", "actors", "tasks")
WAITING = ("PENDING", "RESCHEDULING", "PENDING_CREATION", "PENDING_NODE_ASSIGNMENT")
HOLDING = ("CREATED", "ALIVE", "RUNNING")


def describe(lists: Mapping[str, Rows]) -> str:
    """Describe what waits for how many CPUs, how many there are, and what holds them; empty if nothing waits."""
    waiting, holding = (_counts(lists, states) for states in (WAITING, HOLDING))
    if not waiting:
        return ""
    alive = [node["resources_total"].get("CPU", 0) for node in lists["nodes"] if node["state"] == "ALIVE"]
    capacity = f"the cluster has {plural(sum(alive), 'CPU')}, at most {max(alive, default=0):g} on a node"
    return f"{_listed(waiting)} waited; {capacity}, held by {_listed(holding) or 'nothing'}"


def describe_exception(tasks: Rows) -> str:
    """Count the tasks that raised an exception, and quote the last line of the first one's message; empty if there are none."""
    if not tasks:
        return ""
    first = min(tasks, key=lambda task: task.get("end_time_ms") or 0)
    lines = [line.strip() for line in (first.get("error_message") or "").splitlines() if line.strip()]
    message = f": {lines[-1][:200]}" if lines else ""
    count = "1 task" if len(tasks) == 1 else f"{len(tasks):,} tasks"
    return f"{count} raised an exception, {first['name']} first{message}"


def _counts(lists: Mapping[str, Rows], states: Sequence[str]) -> Counter[str]:
    """Count what is in one of `states` and needs CPUs, by kind, name and size."""
    return Counter(
        f"{kind} of {plural(cpus, 'CPU')}" for kind, state, cpus in _demands(lists) if state in states and cpus > 0
    )


def _demands(lists: Mapping[str, Rows]) -> Iterator[tuple[str, str, float]]:
    """Yield kind and name, state and CPUs of all that requests CPUs itself. Members of a placement group do not: the group does."""
    for group in lists["placement_groups"]:
        bundles = group["bundles"] or ()
        yield "placement group", group["state"], sum(bundle["unit_resources"].get("CPU", 0) for bundle in bundles)
    for actor in lists["actors"]:
        if not _is_in_group(actor):
            yield f"actor {actor['class_name']}", actor["state"], (actor["required_resources"] or {}).get("CPU", 0)
    for task in lists["tasks"]:
        if task["type"] == "NORMAL_TASK" and not _is_in_group(task):
            yield f"task {task['name']}", task["state"], (task["required_resources"] or {}).get("CPU", 0)


def _is_in_group(task_or_actor: Mapping[str, Any]) -> bool:
    return bool((task_or_actor["placement_group_id"] or "").strip("f"))  # Ray's nil id is all f


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in counts.most_common())
