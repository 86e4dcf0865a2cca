"""Describes what waits for CPUs in a cluster and what holds them: the reason why a run passed its deadline.

Ray keeps tasks and actors for which it has no room pending for ever, without a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
"""Of one of the lists of Ray's state API, with details."""

LISTS = ("nodes", "placement_groups", "actors", "tasks")
WAITING = ("PENDING", "RESCHEDULING", "PENDING_CREATION", "PENDING_NODE_ASSIGNMENT")
HOLDING = ("CREATED", "ALIVE", "RUNNING")


def describe(lists: Mapping[str, Rows]) -> str:
    """What waits for how many CPUs, how many there are, and what holds them; empty where nothing waits. `lists`: by LISTS."""
    waiting, holding = (_named(lists, states) for states in (WAITING, HOLDING))
    if not waiting:
        return ""
    alive = [node["resources_total"].get("CPU", 0) for node in lists["nodes"] if node["state"] == "ALIVE"]
    there = f"the cluster has {sum(alive):g} CPUs, at most {max(alive, default=0):g} on a node"
    return f"{_listed(waiting)} waited; {there}, held by {_listed(holding) or 'nothing'}"


def describe_exception(tasks: Rows) -> str:
    """How many tasks raised an exception, and what the first of them said; empty where there are none."""
    if not tasks:
        return ""
    first = min(tasks, key=lambda task: task.get("end_time_ms") or 0)
    last_words = [line.strip() for line in (first.get("error_message") or "").splitlines() if line.strip()]
    said = f": {last_words[-1][:200]}" if last_words else ""
    count = "1 task" if len(tasks) == 1 else f"{len(tasks):,} tasks"
    return f"{count} raised an exception, {first['name']} first{said}"


def _named(lists: Mapping[str, Rows], states: Sequence[str]) -> Counter[str]:
    """How many there are of each kind, name and size, of what is in one of `states` and takes CPUs."""
    return Counter(
        f"{what} of {cpus:g} CPU{'' if cpus == 1 else 's'}"
        for what, state, cpus in _demands(lists)
        if state in states and cpus > 0
    )


def _demands(lists: Mapping[str, Rows]) -> Iterator[tuple[str, str, float]]:
    """Kind and name, state and CPUs of all that asks for some by itself: what is in a placement group, that has asked for."""
    for group in lists["placement_groups"]:
        bundles = group["bundles"] or ()
        yield "placement group", group["state"], sum(each["unit_resources"].get("CPU", 0) for each in bundles)
    for actor in lists["actors"]:
        if not _is_in_group(actor):
            yield f"actor {actor['class_name']}", actor["state"], (actor["required_resources"] or {}).get("CPU", 0)
    for task in lists["tasks"]:
        if task["type"] == "NORMAL_TASK" and not _is_in_group(task):
            yield f"task {task['name']}", task["state"], (task["required_resources"] or {}).get("CPU", 0)


def _is_in_group(asker: Mapping[str, Any]) -> bool:
    return bool((asker["placement_group_id"] or "").strip("f"))  # all f: Ray's word for none


def _listed(named: Counter[str]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in named.most_common())
