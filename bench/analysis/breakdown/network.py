"""Builds the network breakdown: why a unit of work takes longer on many nodes than on one.

The gap, multi minus single, is split block by block into measured parts and the remainder `unexplained`, so that the parts always
add up to the gap. A part that could not be measured has a reason, and its time stays in `unexplained`. Parts that overlap in time are
each counted in full; then `unexplained` can be negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bench.analysis.breakdown.amounts import Amounts, amounts, difference
from bench.analysis.breakdown.costs import CallsCost, NetworkCost, calls_cost, network_cost
from bench.analysis.comparison import Outcome
from bench.analysis.rows import Question, Specs
from bench.analysis.stats import estimates
from bench.analysis.stats.estimates import Estimate
from bench.meanings import Meaning
from bench.model import Arm, Metric

PartName = Literal["network", "serialise/copy", "queue and schedule", "compute", "straggler", "unexplained"]
NAMES: tuple[PartName, ...] = get_args(PartName)
MEASURED = NAMES[:-1]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the gap, in seconds per unit of work."""

    name: PartName
    title: str  # its name, with the stamp of nodes that share a machine
    seconds: Estimate | None  # the mean over blocks; None if it was not measured
    values: Mapping[int, float]  # by block
    rests_on: str  # what it was measured with, or the reason why it was not


@dataclass(frozen=True, kw_only=True)
class NetworkBreakdown:
    """The gap between two topologies in seconds per unit of work, and its parts, which add up to it."""

    unit: str  # what a unit of work is called
    baseline: str
    candidate: str
    link: str
    same_host: bool | None  # whether the candidate's nodes share a machine; None if unknown
    blocks: tuple[int, ...]
    missing: Mapping[int, str]  # the reason for each block that is left out
    seconds: Mapping[str, Estimate]  # by topology
    gap: Estimate | None  # None if no block has both topologies
    parts: tuple[Part, ...]


Pair = tuple[Amounts, Amounts]
"""What the subject needed in one block, on single and on multi."""


def network_breakdown(
    question: Question, specs: Specs, metrics: Sequence[Metric], arms: Sequence[Arm], unit: str
) -> NetworkBreakdown | None:
    """Return the breakdown of one cell; None for a session with one topology."""
    if len(question.topologies) < 2 or not metrics or not arms:
        return None
    baseline, candidate = question.topologies[0], question.topologies[-1]
    headline, subject = metrics[0], next((arm.name for arm in arms if arm.role == "subject"), arms[0].name)
    pairs, missing = _pairs(question, specs, headline, subject)
    calls = {
        arm.name: [amounts(question, specs[name], arm.name, headline) for name in (baseline, candidate)]
        for arm in arms
        if arm.role == "calls"
    }
    costs = {
        block: calls_cost({arm: (single[block], multi[block]) for arm, (single, multi) in calls.items()})
        for block in pairs
    }
    split = _split_all(question, pairs, costs)
    blocks, incomplete = _complete(split)
    gaps = {block: pairs[block][1].seconds - pairs[block][0].seconds for block in blocks}
    facts = [run.facts for run in question.usable(specs[candidate]).runs if run.facts]
    same_host = any(known.same_host for known in facts) if facts else None
    return NetworkBreakdown(
        unit=unit,
        baseline=baseline,
        candidate=candidate,
        link=" or ".join(sorted({known.link for known in facts})),
        same_host=same_host,
        blocks=tuple(blocks),
        missing=missing | incomplete,
        seconds={
            baseline: estimates.mean_with_t_interval([pairs[block][0].seconds for block in blocks]),
            candidate: estimates.mean_with_t_interval([pairs[block][1].seconds for block in blocks]),
        }
        if blocks
        else {},
        gap=estimates.mean_with_t_interval(list(gaps.values())) if gaps else None,
        parts=_parts(split, gaps, same_host=same_host) if gaps else (),
    )


def _pairs(question: Question, specs: Specs, headline: Metric, subject: str) -> tuple[dict[int, Pair], dict[int, str]]:
    """Return the blocks in which the subject has seconds on both topologies, and the reasons for the others."""
    baseline, candidate = question.topologies[0], question.topologies[-1]
    singles, multis = (amounts(question, specs[name], subject, headline) for name in (baseline, candidate))
    pairs, missing = {}, {}
    for block in sorted({*singles, *multis}):
        one, many = singles.get(block, "not run"), multis.get(block, "not run")
        if isinstance(one, str) or isinstance(many, str):
            gaps = ((baseline, one), (candidate, many))
            missing[block] = (
                one
                if isinstance(one, str) and one == many
                else ", ".join(f"{name}: {reason}" for name, reason in gaps if isinstance(reason, str))
            )
        else:
            pairs[block] = one, many
    return pairs, missing


@dataclass(frozen=True)
class _Finding:
    """One part in one block: seconds or the reason why there are none, and what it rests on."""

    outcome: Outcome
    rests_on: str = ""


def _split_all(
    question: Question, pairs: Mapping[int, Pair], calls: Mapping[int, CallsCost]
) -> dict[int, dict[PartName, _Finding]]:
    """Split the gap of each block. If calls do not give the cost of a byte in one block, they are used in none."""
    unknown = next((reason for cost in calls.values() if isinstance(reason := cost.byte_seconds, str)), None)
    return {
        block: _split(
            pair,
            calls[block],
            calls[block].byte_seconds if unknown is None else unknown,
            network_cost(question, block),
        )
        for block, pair in pairs.items()
    }


def _split(pair: Pair, calls: CallsCost, with_ray: Outcome, network: NetworkCost) -> dict[PartName, _Finding]:
    """Split the gap of one block. `with_ray` is the cost of a byte from calls: on the wire and in Ray."""
    single, multi = pair
    more_bytes = difference(single.link_bytes, multi.link_bytes)
    raw = network.byte_seconds
    by_calls = raw if isinstance(with_ray, str) else with_ray

    def part(means: Meaning) -> Outcome:
        return difference(single.parts.get(means), multi.parts.get(means))

    return {
        "network": _network(more_bytes, with_ray, raw),
        "serialise/copy": _serialise(part("serialise"), more_bytes, with_ray, raw),
        "queue and schedule": _queue(
            part("queue"), calls.queue(by_calls), multi.parts["round trips in sequence"], network
        ),
        "compute": _Finding(part("compute"), "busy time if all workers were as fast as the median one"),
        "straggler": _Finding(part("straggler"), "busy time of the busiest worker beyond that"),
    }


def _network(more_bytes: Outcome, with_ray: Outcome, raw: Outcome) -> _Finding:
    """Multiply the bytes of the busiest link by the cost of a byte: that of the wire alone if it was measured."""
    if isinstance(more_bytes, str):
        return _Finding(f"bytes: {more_bytes}")
    if not isinstance(raw, str):
        return _Finding(more_bytes * raw, "bytes of the busiest link, at the cost of one by raw TCP")
    if isinstance(with_ray, str):
        return _Finding(f"cost of a byte: {with_ray}; {raw}")
    return _Finding(more_bytes * with_ray, "bytes of the busiest link, at the cost of one by calls alone")


def _serialise(driver: Outcome, more_bytes: Outcome, with_ray: Outcome, raw: Outcome) -> _Finding:
    """Return the driver's own time, plus what Ray adds to the cost of bytes on the wire if the wire was measured separately."""
    if isinstance(driver, str):
        return _Finding(driver)
    if isinstance(more_bytes, str) or isinstance(with_ray, str) or isinstance(raw, str):
        return _Finding(driver, "the driver's time for calls and answers")
    return _Finding(driver + more_bytes * (with_ray - raw), "the driver's time, and what Ray adds to a byte's cost")


def _queue(waited: Outcome, of_calls: tuple[Outcome, str], round_trips: Outcome, network: NetworkCost) -> _Finding:
    """Return the waits that were measured; else the additional time of empty calls; else round trips times their cost."""
    if not isinstance(waited, str):
        return _Finding(waited, "waits that the experiment measured")
    if not isinstance(of_calls[0], str) or isinstance(round_trips, str):
        return _Finding(*of_calls)
    if isinstance(network.round_trip_seconds, str):
        return _Finding(f"cost of a call: {network.round_trip_seconds}")
    return _Finding(
        round_trips * network.round_trip_seconds, f"round trips, at the cost of one by `{network.experiment}`"
    )


def _complete(split: Mapping[int, Mapping[PartName, _Finding]]) -> tuple[list[int], dict[int, str]]:
    """Return the blocks that have every part that any block has, because sums over different blocks would not add up."""
    measured = {
        name
        for findings in split.values()
        for name, finding in findings.items()
        if not isinstance(finding.outcome, str)
    }
    blocks, incomplete = [], {}
    for block, findings in split.items():
        gaps = [f"{name}: {outcome}" for name in measured if isinstance(outcome := findings[name].outcome, str)]
        if gaps:
            incomplete[block] = "; ".join(gaps)
        else:
            blocks.append(block)
    return blocks, incomplete


def _parts(
    split: Mapping[int, Mapping[PartName, _Finding]], gaps: Mapping[int, float], *, same_host: bool | None
) -> tuple[Part, ...]:
    """Return all parts, averaged over blocks, with the unexplained one last."""
    rest = dict(gaps)
    parts = []
    for name in MEASURED:
        findings = {block: split[block][name] for block in gaps}
        values = {block: f.outcome for block, f in findings.items() if not isinstance(f.outcome, str)}
        reasons = dict.fromkeys(f.outcome for f in findings.values() if isinstance(f.outcome, str))
        sources = dict.fromkeys(f.rests_on for f in findings.values() if not isinstance(f.outcome, str))
        for block, value in values.items():
            rest[block] -= value
        parts.append(_part(name, values, "; ".join(map(str, sources or reasons)), same_host=same_host))
    return (*parts, _part("unexplained", rest, "what the parts above leave of the gap", same_host=same_host))


def _part(name: PartName, values: Mapping[int, float], rests_on: str, *, same_host: bool | None) -> Part:
    stamp = {True: ", same host", False: "", None: ", of hosts unknown"}[same_host] if name == "network" else ""
    return Part(
        name=name,
        title=name + stamp,
        seconds=estimates.mean_with_t_interval(list(values.values())) if values else None,
        values=values,
        rests_on=rests_on,
    )
