"""Each rule: what brings the caveat, how much it weighs, and that a sound session does not bring it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from made_up import ARMS, METRICS, MULTI, RATE, SINGLE, a_facts, made_up

from bench import analysis
from bench.analysis.caveats.rules import RULES
from bench.metrics import seconds
from bench.model import Interval, QuietCheck, Run, Sample, Session

Change = Callable[[Session, list[Run]], list[Run]]
IN_ANY_ORDER = (replace(ARMS[0], repeatable=False), *ARMS[1:])


def caveats_of(change: Change | None = None, **shape):
    session, runs = made_up(**({"cells": 1, "blocks": 6} | shape))
    return analysis.build(session, change(session, runs) if change else runs).caveats


def usage(**changes) -> Change:
    """The same of every node in every interval."""

    def change(_session, runs):
        return [replace(run, usage=tuple(replace(row, **changes) for row in run.usage)) for run in runs]

    return change


def under_a_quota(change: Change) -> Change:
    """`change`, on nodes that have a CPU quota of their own."""

    def change_all(session, runs):
        return [
            replace(run, facts=a_facts(run.spec.topology, cpu_quota=float(run.spec.topology.cpus_per_node)))
            for run in change(session, runs)
        ]

    return change_all


def samples(change_one) -> Change:
    def change(_session, runs):
        return [replace(run, samples=tuple(change_one(run, s) for s in run.samples)) for run in runs]

    return change


def gated(boot_id: str) -> Change:
    """Six quiet_checks, and the machine was quiet before five of them."""
    quiet = QuietCheck(is_quiet=True, waited_seconds=0.0, busy=0.02, pressure=0.0, boot_id=boot_id)
    busy = replace(quiet, is_quiet=False, waited_seconds=60.0, busy=0.43)
    return lambda _session, runs: [replace(run, quiet_check=busy if run.spec.block == 3 else quiet) for run in runs]


began_busy, began_busy_elsewhere = gated("boot-1"), gated("of a laptop")


def of_multi(**changes) -> Change:
    """What is changed in the facts of the nodes of `multi`."""

    def change(_session, runs):
        return [replace(r, facts=a_facts(MULTI, **changes)) if r.spec.topology.name == "multi" else r for r in runs]

    return change


def first(**changes) -> Change:
    return lambda _session, runs: [replace(runs[0], **changes), *runs[1:]]


def shorter(run, sample):
    begin = sample.interval.begin
    return (
        replace(sample, interval=replace(sample.interval, end=begin + 0.05)) if sample.metric == RATE.name else sample
    )


def without_one(run, sample):
    if sample.metric == RATE.name and sample.arm == "ray" and sample.turn == 2:
        return replace(sample, value=None, reason="a result was lost")
    return sample


def diverged(run, sample):
    """One peer, in every run on multi, in a turn that counts; and the subject in a warm-up."""
    is_peer = sample.arm == "pool" and sample.turn == 2 and run.spec.topology == MULTI
    is_warmup = sample.arm == "ray" and sample.warmup
    return replace(sample, value=math.nan) if sample.metric == RATE.name and (is_peer or is_warmup) else sample


def drifting(run, sample):
    return replace(sample, value=sample.value * 1.1**run.spec.block) if sample.metric == RATE.name else sample


def one_stall(run, sample):
    slow = run.spec.block == 2 and run.spec.topology.name == "multi" and sample.metric == RATE.name
    return replace(sample, value=sample.value * 0.3) if slow else sample


def fast_once_started(run, sample):
    """On multi, twice the rate; and all in all twice the time."""
    if run.spec.topology.name == "single" or sample.metric not in (RATE.name, "end_to_end_seconds"):
        return sample
    return replace(sample, value=sample.value * 2)


def slow_calls(run, sample):
    return replace(sample, value=0.05) if sample.metric == "latency_p50_seconds" else sample


def does(share: float) -> Change:
    """worker-1 does so much of the work."""

    def change(_session, runs):
        return [replace(run, usage=tuple(one(row, run.usage) for row in run.usage)) for run in runs]

    def one(row, rows):
        if row.node != "worker-1" or not row.work:
            return row
        heads = next(
            each for each in rows if each.node == "head" and (each.arm, each.interval) == (row.arm, row.interval)
        )
        return replace(row, work=heads.work * share / (1 - share))

    return change


def with_one_worker(change: Change) -> Change:
    """`change`, where the experiment says beforehand that one worker is busy at once."""

    def change_all(session, runs):
        return [replace(run, spec=replace(run.spec, busy_workers=1)) for run in change(session, runs)]

    return change_all


WAIT = seconds("lost_seconds", means="wait for the last worker")


def waiting(**by_node: float) -> Change:
    """On multi, in every run a sample of 10 s in which workers waited, as they are told by node."""

    def change(session, runs):
        values = {None: sum(by_node.values()), **{name.replace("_", "-"): value for name, value in by_node.items()}}
        waits = tuple(
            Sample(metric=WAIT.name, arm="ray", value=value, node=node, interval=Interval(0.0, 10.0), turn=1)
            for node, value in values.items()
        )
        return [replace(run, samples=(*run.samples, *waits)) if run.spec.topology == MULTI else run for run in runs]

    return change


WAITS = {"metrics": (*METRICS, WAIT)}
CASES = [
    (
        waiting(head=3.9, worker_1=0.1),
        WAITS,
        "note",
        "workers on multi waited 20% of the CPUs' time for the last of them: worker-1 delayed them, with 2% of the waiting.",
    ),
    (
        waiting(head=2.1, worker_1=1.9),
        WAITS,
        "note",
        "waited 20% of the CPUs' time for the last of them: no node more than",
    ),
    (of_multi(kernel="6.19"), {}, "refuses", "kernel differs between the topologies"),
    (of_multi(cpus_granted=2), {}, "refuses", "unequal totals of granted CPUs: single has 2, multi has 4"),
    (first(digests={"predictions": "other"}), {}, "refuses", "do not agree on predictions"),
    (usage(spilled_bytes=2**20), {}, "refuses", "spilled from the object store to disk"),
    (None, {"blocks": 3}, "weakens", "3 pairs of invocations, and a verdict needs 6"),
    (first(status="invalid", reasons=("worker-1 was idle",)), {}, "weakens", "(invalid: worker-1 was idle)"),
    (lambda _, runs: runs[:-2], {}, "weakens", "2 runs of 12 not done yet"),
    (None, {}, "weakens", "overhead-dominated: the median call takes"),
    (
        samples(fast_once_started),
        {},
        "weakens",
        "multi is faster than single once it runs, and slower end to end, its start counted",
    ),
    (samples(shorter), {}, "weakens", "shorter than 100 ms (the shortest 50 ms)"),
    (does(0.001), {}, "refuses", "worker-1 of multi did 0% of the work: other nodes did its part"),
    (does(0.02), {}, "refuses", "worker-1 of multi did 2% of the work: other nodes did its part"),
    (does(0.2), {}, "weakens", "worker-1 of multi did 20% of the work: other nodes did its part"),
    (with_one_worker(does(0.001)), {}, "weakens", "worker-1 of multi did 0% of the work: it has 1 worker for 2 nodes"),
    (samples(without_one), {}, "weakens", "12 samples of 36 without a value: a result was lost"),
    (
        samples(diverged),
        {},
        "weakens",
        "diverged: throughput_inputs_per_second on multi was not finite in 6 of pool of 6 runs.",
    ),
    (
        under_a_quota(usage(periods=100, throttled_periods=40)),
        {},
        "weakens",
        "was throttled in up to 40 % of the periods of its CPU quota",
    ),
    (
        usage(steal_seconds=1.0),
        {},
        "weakens",
        "noisy host: 6 of 6 blocks excluded for interference, so all is undecided",
    ),
    (usage(host_busy_seconds=None), {}, "note", "not counted here: CPU pressure beyond own demand."),
    (began_busy, {}, "note", "1 block of 6 began on a busy machine, up to 43 % of its CPUs."),
    (None, {}, "note", "whether a CPU quota throttled the nodes is unknown"),
    (of_multi(cpus_allowed=0), {}, "weakens", "multi was granted 2 CPUs where it may run on 0"),
    (of_multi(threads={"OMP_NUM_THREADS": "4"}), {}, "weakens", "may start 4 native threads"),
    (of_multi(settings={"bytecode": "not kept"}), {}, "weakens", "every worker compiled what it imports"),
    (of_multi(boot_id="another"), {}, "weakens", "different machines"),
    (usage(arm="ray"), {}, "weakens", "no idle baseline in 12 runs"),
    (first(reconciled=False), {}, "weakens", "did not agree with the record in 1 run"),
    (samples(drifting), {}, "weakens", "the headline rose in the course of the session"),
    (None, {"cells": 3}, "weakens", "one of several comparisons"),
    (None, {}, "weakens", "peer numpy-one-by-one does better than ray"),
    (None, {}, "note", "This measures protocol and copying, not a physical network"),
    (None, {}, "note", "the driver runs on the head and shares its CPUs"),
    (None, {"arms": IN_ANY_ORDER}, "note", "results of ray in inference are not deterministic"),
    (None, {"link": "loopback, no bytes counted"}, "note", "bytes on the network are not counted here"),
    (samples(one_stall), {}, "note", "outliers of the headline, marked and kept"),
]


@pytest.mark.parametrize(("change", "shape", "severity", "words"), CASES, ids=[case[3][:40] for case in CASES])
def test_a_caveat_is_found_and_weighed(change, shape, severity, words):
    found = [caveat for caveat in caveats_of(change, **shape) if words in caveat.text]
    assert {caveat.severity for caveat in found} == {severity}


def test_what_one_topology_is_refused_for_is_refused_to_it_and_to_what_compares_it_alone():
    session, runs = made_up(cells=2, blocks=6)
    whole, report = analysis.build(session, runs), analysis.build(session, does(0.001)(session, runs))
    (effect,) = (each for contrast in report.contrasts[:1] for each in contrast.effects[:1])
    assert effect.rows["multi"].comparison.refused
    assert effect.interaction.refused
    assert all(cell.headline.comparison.refused for cell in report.cells)
    assert effect.rows["single"] == whole.contrasts[0].effects[0].rows["single"]
    verdicts = {row.topology: row.verdict for row in report.cells[0].arms if row.share}
    assert verdicts["multi"] is None
    assert verdicts["single"]


QUIET = [
    (waiting(head=0.4, worker_1=0.1), "delayed them"),
    (under_a_quota(usage(periods=3076, throttled_periods=34)), "throttled"),  # 1.1 %
    (samples(slow_calls), "overhead-dominated"),
    (None, "outliers"),
    (None, "not deterministic"),
    (None, "excluded"),
    (began_busy_elsewhere, "busy machine"),
    (None, "end to end"),
    (None, "diverged"),
    (None, "differs"),
    (None, "spilled"),
    (None, "pairs of invocations"),
    (None, "in the course of the session"),
    (None, "one of several comparisons"),
]


@pytest.mark.parametrize(("change", "words"), QUIET, ids=[case[1] for case in QUIET])
def test_a_sound_session_brings_no_such_caveat(change, words):
    assert not [caveat for caveat in caveats_of(change, noise=0.005, **WAITS) if words in caveat.text]


def test_every_rule_stays_silent_where_nothing_was_run():
    assert all("not done yet" in caveat.text for caveat in caveats_of(lambda _session, _runs: []))


def test_what_refuses_comes_first():
    order = [caveat.severity for caveat in caveats_of(of_multi(kernel="6.19"))]
    assert order == sorted(order, key=["refuses", "weakens", "note"].index)


def test_one_node_has_no_caveats_about_many():
    texts = " ".join(caveat.text for caveat in caveats_of(None, topologies=(SINGLE,)))
    assert "same host" not in texts
    assert "driver" not in texts
    assert "verdict" not in texts


def test_a_failed_attempt_that_was_done_again_is_noted_and_weakens_nothing():
    def change(_session, runs):
        again = replace(runs[0], spec=replace(runs[0].spec, attempt=2))
        return [replace(runs[0], status="failed", reasons=("the head died",)), again, *runs[1:]]

    (found,) = [caveat for caveat in caveats_of(change) if "left out" in caveat.text]
    assert found.severity == "note"
    assert found.text.endswith("(failed: the head died). All done again since.")


def test_a_training_that_diverged_is_counted_though_its_run_is_invalid():
    def change(session, runs):
        found = samples(diverged)(session, runs)
        return [replace(run, status="invalid", reasons=("it diverged",)) for run in found]

    (found,) = [caveat for caveat in caveats_of(change) if "diverged: " in caveat.text]
    assert "6 of pool of 6 runs" in found.text


def test_no_rule_is_in_the_table_twice():
    assert len(set(RULES)) == len(RULES)


def test_an_outlier_that_is_far_is_said_to_be_and_none_is_left_out():
    session, runs = made_up(cells=1, blocks=12, noise=0.01)
    found = analysis.build(session, samples(one_stall)(session, runs))
    (said,) = (caveat.text for caveat in found.caveats if "outliers of the headline" in caveat.text)
    assert re.search(r"multi in blocks? 2 \(far\)", said)
    assert "the ratio in block 2 (far)" in said
    assert found.cells[0].headline.comparison.pairs == 12


def test_an_outlier_that_is_not_far_is_not_said_to_be():
    def a_little(run, sample):
        values = [100.0 + block for block in range(12)]  # quartiles 102.75 and 108.25: fences at 116.5 and 124.75
        value = {1: 120.0}.get(run.spec.block, values[run.spec.block - 1])
        return replace(sample, value=value) if (sample.metric, sample.arm) == (RATE.name, "ray") else sample

    found = caveats_of(samples(a_little), blocks=12)
    (said,) = (caveat.text for caveat in found if "outliers of the headline" in caveat.text)
    assert said.endswith("single in block 1; multi in block 1.")


def test_nodes_that_a_quota_throttled_are_one_caveat_which_names_the_worst() -> None:
    def worker_most(session: Session, runs: list[Run]) -> list[Run]:
        return [
            replace(
                run,
                usage=tuple(
                    replace(row, periods=100, throttled_periods=60 if row.node == "worker-1" else 40)
                    for row in run.usage
                ),
            )
            for run in runs
        ]

    (text,) = [each.text for each in caveats_of(under_a_quota(worker_most)) if "throttled in" in each.text]
    assert "worker-1 of multi was throttled in up to 60 %" in text.replace("Worker", "worker")
    assert "(2 other nodes in no more)" in text


def test_checks_that_were_not_made_are_one_caveat_an_experiment() -> None:
    session, runs = made_up(cells=1, blocks=6)
    checks = "inference: that ray and pool agree (needs pool)"
    before, after = (analysis.build(each, runs).caveats for each in (session, replace(session, unchecked=(checks,))))
    (found,) = set(after) - set(before)
    assert (found.severity, found.about) == ("weakens", "session")
    assert found.text == "not checked in inference: that ray and pool agree (needs pool)."
