"""Reasons not to believe a number: a table of rules, each of which looks at the evidence and says what it sees."""

from __future__ import annotations

from bench.analysis.doubts import bounds, clock, conditions, cores, credit, host, numbers, window
from bench.analysis.doubts.evidence import Doubt, Evidence, Rule

RULES: tuple[Rule, ...] = (
    numbers.slower_than_peer,
    conditions.unequal_totals,
    conditions.facts_differ,
    cores.unequal_cores,
    conditions.digests_differ,
    numbers.spilled,
    numbers.too_fast,
    numbers.not_steady,
    numbers.few_pairs,
    host.vetoed_blocks,
    conditions.pairs_apart,
    conditions.excluded_runs,
    conditions.damaged_runs,
    conditions.not_run,
    numbers.start_turns_it_round,
    numbers.overhead_dominated,
    clock.short_samples,
    numbers.not_finite,
    numbers.partly_missing,
    numbers.loads_missing,
    credit.credit_differs,
    numbers.uneven_work,
    numbers.held_up,
    conditions.throttled,
    host.began_busy,
    host.not_seen,
    conditions.overcommitted,
    conditions.oversubscribed,
    cores.shared_cores,
    cores.any_kind,
    conditions.profiled,
    numbers.skewed,
    numbers.luck,
    numbers.order_matters,
    bounds.drifted,
    bounds.copying_drifted,
    conditions.other_host,
    conditions.no_idle_baseline,
    conditions.not_reconciled,
    window.alerts_held,
    conditions.same_host,
    conditions.driver_shares_head,
    conditions.not_deterministic,
    conditions.no_bytes,
    numbers.outliers,
)


def find(evidence: Evidence) -> tuple[Doubt, ...]:
    """All doubts, those that refuse a verdict first."""
    order = {"refuses": 0, "weakens": 1, "note": 2}
    found = dict.fromkeys(doubt for rule in RULES for doubt in rule(evidence))
    return tuple(sorted(found, key=lambda doubt: order[doubt.severity]))
