"""Lists the rules that find caveats, and applies them to the evidence of a session."""

from __future__ import annotations

from bench.analysis.caveats import bounds, clock, conditions, cores, credit, host, monitoring, values
from bench.analysis.caveats.evidence import Caveat, Evidence, Rule

RULES: tuple[Rule, ...] = (
    values.slower_than_peer,
    conditions.unequal_totals,
    conditions.facts_differ,
    cores.unequal_cores,
    conditions.digests_differ,
    values.spilled,
    values.too_fast,
    values.not_steady,
    values.few_pairs,
    host.excluded_blocks,
    conditions.pairs_apart,
    conditions.excluded_runs,
    conditions.damaged_runs,
    conditions.not_run,
    values.start_turns_it_round,
    values.overhead_dominated,
    clock.short_samples,
    values.not_finite,
    values.partly_missing,
    values.loads_missing,
    credit.credit_differs,
    values.uneven_work,
    values.held_up,
    values.left_out,
    conditions.throttled,
    host.began_busy,
    host.not_seen,
    conditions.overcommitted,
    conditions.oversubscribed,
    cores.shared_cores,
    cores.any_kind,
    conditions.profiled,
    conditions.compiled_at_every_start,
    conditions.unchecked,
    values.skewed,
    values.luck,
    values.luck_of_changes,
    values.order_matters,
    bounds.drifted,
    bounds.copying_drifted,
    conditions.other_host,
    conditions.no_idle_baseline,
    conditions.not_reconciled,
    monitoring.alerts_held,
    conditions.same_host,
    conditions.driver_shares_head,
    conditions.not_deterministic,
    conditions.no_bytes,
    values.outliers,
)


def find(evidence: Evidence) -> tuple[Caveat, ...]:
    """Return all caveats, those that block a verdict first."""
    order = {"refuses": 0, "weakens": 1, "note": 2}
    caveats = dict.fromkeys(caveat for rule in RULES for caveat in rule(evidence))
    return tuple(sorted(caveats, key=lambda caveat: order[caveat.severity]))
