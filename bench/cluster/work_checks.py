"""Checks that timed work was really done: that its results have arrived, and that they are as many as the headline says."""

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

LEAST_SHARE = 0.01  # of an equal share: a node that did less took no part. A busy head may do little
Interval = tuple[str, float, float]
"""An arm, and the begin and end of its timed work."""

# Values that are not computed yet: Ray's references and streams, futures, coroutines, generators.
_UNRESOLVED = (Awaitable, AsyncIterator, Iterator, Future)
_PLAIN = frozenset((int, float, bool, str, bytes, bytearray, complex, type(None)))
_CLOSED = (type, ModuleType, FunctionType, Enum, PurePath, io.IOBase)  # they contain no results


def unresolved(results: Any) -> Counter[str]:
    """Count the values in `results`, at any depth, that are not computed yet, by the name of their type."""
    counts: Counter[str] = Counter()
    seen: dict[int, Any] = {}  # holds the values, so that no id is reused while this runs
    todo: list[Any] = [results]
    closed = set(_PLAIN)  # types whose values have no parts, so that many of them are skipped fast
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind in closed or id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, _UNRESOLVED) and not isinstance(value, _CLOSED):
            counts[kind.__name__] += 1
        elif isinstance(value, _CLOSED) or (_is_numbers(value) and not isinstance(value, Collection)):
            closed.add(kind)
        else:
            todo.extend(_parts(value))
    return counts


def _parts(value: Any) -> Iterable[Any]:
    if _is_numbers(value):
        return ()
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, Collection):
        return list(value)
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    slots = (name for kind in type(value).__mro__ for name in _names(getattr(kind, "__slots__", ())))
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]


def _names(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _is_numbers(value: Any) -> bool:
    """Whether `value` is a number or an array like numpy's or torch's, but not an array of objects."""
    return isinstance(value, (memoryview, range)) or (hasattr(value, "dtype") and str(value.dtype) != "object")


def unresolved_reason(arm: str, counts: Mapping[str, int]) -> str:
    """Return the reason why these counts of unresolved values make a run invalid; empty if there are none."""
    if not counts:
        return ""
    kinds = ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items()))
    return (
        f"{arm}: the measured work returned values that are not computed yet ({kinds}), so that unfinished work was timed:"
        " wait for them inside it, as with ray.get"
    )


def undeclared(names: Iterable[str], metrics: Iterable[Metric]) -> list[str]:
    """Return a reason if there are samples of metrics that the experiment does not declare: no report would show them."""
    unknown = sorted(set(names) - {metric.name for metric in metrics})
    return (
        [f"its experiment does not declare the metrics {', '.join(unknown)}, of which it gave samples"]
        if unknown
        else []
    )


def credited_share(sample: Sample, headline: Metric, credited: Mapping[Interval, float]) -> float | None:
    """Return the work credited to nodes in a sample's interval, divided by the work that the sample's value says was done.

    None if the two cannot be compared: another metric than the headline, not a rate, a warm-up, an interval of other work.
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
    """Return a reason for every arm whose nodes did less work than its headline says. `shares` are by arm.

    Work beyond the headline was done but not counted, like gradients that came too late: reports show that.
    """
    least = {arm: min(arm_shares, default=1.0) for arm, arm_shares in shares.items()}
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
    """Return the reasons why the nodes did not do the work that the headline says.

    `busy`: nodes that must have work; `work_by_node`: of the subject; `total`: of all arms and nodes, None if nothing was
    measured; `shares`: credited work divided by the headline's, by arm.
    """
    reasons = idle_nodes(work_by_node, busy)
    if spec.faults:
        return reasons  # the work of a node that was lost or joined is not known
    if spec.attempt == 1 and total == 0:  # the first attempt may have done all the work of a later one
        reasons.append("no node was credited with any work: credit must return what each node did in one pass")
    empty = {arm.name for arm in experiment.arms if arm.role == "calls"}  # arms of empty calls have no work to credit
    counted = {arm: values for arm, values in shares.items() if arm not in empty}
    return reasons + credit_reasons(counted, experiment.metrics[0])


def idle_nodes(work_by_node: Mapping[str, float], names: Sequence[str]) -> list[str]:
    """Return a reason for every node that did much less than its share, so that the run used fewer nodes than it should."""
    total = sum(work_by_node.values())
    if not total or len(names) < 2:
        return []
    return [
        f"node {name} did {work_by_node.get(name, 0.0) / total:.0%} of the work of {len(names)} nodes"
        for name in names
        if work_by_node.get(name, 0.0) < LEAST_SHARE * total / len(names)
    ]
