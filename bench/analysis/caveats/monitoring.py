"""Finds caveats in monitoring: alert rules that fired during a run."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.caveats.evidence import SESSION, Caveat, Evidence
from bench.counts import plural

MOST_NAMED = 2


def alerts_held(evidence: Evidence) -> Iterator[Caveat]:
    """Each alert rule that held during a run, with the number of runs."""
    alerts: dict[str, dict[str, str]] = {}
    for run in evidence.usable:
        for alert in run.alerts:
            rule, colon, text = alert.partition(": ")
            if colon:
                alerts.setdefault(rule, {}).setdefault(run.spec.folder, text)
    for rule, runs in alerts.items():
        named = "; ".join(f"{run}: {text}" for run, text in list(runs.items())[:MOST_NAMED])
        more = f"; and {len(runs) - MOST_NAMED} more" if len(runs) > MOST_NAMED else ""
        text = f"alert {rule} in {plural(len(runs), 'run')} ({named}{more})."
        yield Caveat(severity="weakens", about=SESSION, text=text)
