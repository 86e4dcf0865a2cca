"""Checks that what was timed is work that was done: results that are there, and as much as the headline says."""

from __future__ import annotations

import dataclasses
import io
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any

from bench.experiments import Experiment
from bench.model import WORK_TOLERANCE, Metric, Sample, Spec

LEAST_SHARE = 0.01  # of an equal share of the work: a node that did less was no part of it. A busy head may do little
Interval = tuple[str, float, float]
"""An arm, and when its timed work began and ended."""

# What is still to come: Ray's references and streams, futures, coroutines, generators.
_UNRESOLVED = (Awaitable, AsyncIterator, Iterator, Future)
_PLAIN = frozenset((int, float, bool, str, bytes, bytearray, complex, type(None)))
_CLOSED = (type, ModuleType, FunctionType, Enum, PurePath, io.IOBase)  # nothing of a result is in them


def unresolved(results: Any) -> Counter[str]:
    """How many values of which type in `results`, however deep, are not there yet."""
    found: Counter[str] = Counter()
    seen: dict[int, Any] = {}  # kept, so that no other value is given the id of one that was looked at
    todo: list[Any] = [results]
    closed = set(_PLAIN)  # types of which no value has parts: there may be very many of one
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind in closed or id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, _UNRESOLVED) and not isinstance(value, _CLOSED):
            found[kind.__name__] += 1
        elif isinstance(value, _CLOSED) or (_is_numbers(value) and not isinstance(value, Collection)):
            closed.add(kind)
        else:
            todo.extend(_parts(value))
    return found


def _parts(value: Any) -> Iterable[Any]:
    if _is_numbers(value):
        return ()
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, Collection):
        return list(value)
    if dataclasses.is_dataclass(value):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    slots = (name for kind in type(value).__mro__ for name in _names(getattr(kind, "__slots__", ())))
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]


def _names(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _is_numbers(value: Any) -> bool:
    """Whether it is a number or an array of numpy's or torch's, or like them. An array of objects is none."""
    return isinstance(value, (memoryview, range)) or (hasattr(value, "dtype") and str(value.dtype) != "object")


def unresolved_reason(arm: str, found: Mapping[str, int]) -> str:
    """Why results with these values make a run invalid; empty where there are none."""
    if not found:
        return ""
    kinds = ", ".join(f"{count} x {kind}" for kind, count in sorted(found.items()))
    return (
        f"{arm}: the measured work returned values that are not there yet ({kinds}), so that work was timed that was not done:"
        " wait for them inside it, as with ray.get"
    )


def undeclared(names: Iterable[str], metrics: Iterable[Metric]) -> list[str]:
    """A reason where samples are of metrics that the experiment does not declare: no report would show them."""
    unknown = sorted(set(names) - {metric.name for metric in metrics})
    return (
        [f"its experiment does not declare the metrics {', '.join(unknown)}, of which it gave samples"]
        if unknown
        else []
    )


def credited_share(sample: Sample, headline: Metric, credited: Mapping[Interval, float]) -> float | None:
    """The work that nodes were credited with in a sample's interval, by what its headline says was done there.

    None where the two cannot be compared: another metric, one that is no rate, a warm-up, an interval of other work.
    """
    is_rate = headline.kind == "rate" and headline.unit.endswith("/s")
    if (
        sample.metric != headline.name
        or not is_rate
        or sample.warmup
        or sample.node
        or sample.point
        or not sample.value
    ):
        return None
    begin, end = sample.interval.begin, sample.interval.end
    work = credited.get((sample.arm, begin, end))
    return None if work is None else work / (sample.value * (end - begin))


def credit_reasons(shares: Mapping[str, Iterable[float]], headline: Metric) -> list[str]:
    """A reason for every arm whose nodes did less than its headline says. `shares`: by arm.

    Work beyond the headline was done and not counted, as gradients that came too late: reports say that.
    """
    least = {arm: min(those, default=1.0) for arm, those in shares.items()}
    unit = headline.unit.removesuffix("/s")
    return [
        f"{arm}: its nodes were credited with {share:.1%} of the work that {headline.name} says was done:"
        f" credit must return the {unit} of each node in one pass"
        for arm, share in sorted(least.items())
        if share < 1 - WORK_TOLERANCE
    ]


def not_done(
    spec: Spec,
    experiment: Experiment[Any],
    *,
    busy: Sequence[str],
    work_by_node: Mapping[str, float],
    total: float | None,
    shares: Mapping[str, Iterable[float]],
) -> list[str]:
    """The reasons why the headline is not that of work which the nodes did.

    `busy`: nodes that must have work; `work_by_node`: of the subject; `total`: of all arms and nodes, None where nothing was
    measured; `shares`: credited work by the headline's, by arm.
    """
    reasons = idle_nodes(work_by_node, busy)
    if spec.faults:
        return reasons  # the work of a node that was lost or joined is not known
    if spec.attempt == 1 and total == 0:  # a later attempt may find all of it done
        reasons.append("no node was credited with any work: credit must return what each node did in one pass")
    empty = {arm.name for arm in experiment.arms if arm.role == "calls"}  # calls without the work, which have no credit
    counted = {arm: values for arm, values in shares.items() if arm not in empty}
    return reasons + credit_reasons(counted, experiment.metrics[0])


def idle_nodes(work_by_node: Mapping[str, float], names: Sequence[str]) -> list[str]:
    """A reason for every node that did much less than its share: a multi-node run that was not one."""
    total = sum(work_by_node.values())
    if not total or len(names) < 2:
        return []
    return [
        f"node {name} did {work_by_node.get(name, 0.0) / total:.0%} of the work of {len(names)} nodes"
        for name in names
        if work_by_node.get(name, 0.0) < LEAST_SHARE * total / len(names)
    ]
