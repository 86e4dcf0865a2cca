"""Finds caveats about the machine: excluded blocks, blocks that began on a busy machine, missing counters."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.caveats.evidence import SESSION, Caveat, Evidence
from bench.analysis.comparison import EXCLUDED
from bench.analysis.number_format import percent
from bench.counts import plural

_MOST_SHOWN = 4


def excluded_blocks(evidence: Evidence) -> Iterator[Caveat]:
    """Blocks that are excluded; with too many of them there is no verdict. The report lists the reasons with its runs."""
    exclusions = evidence.exclusions
    if not exclusions.reasons:
        return
    which = "; ".join(
        f"block {block} ({reasons[0]})" for block, reasons in list(exclusions.reasons.items())[:_MOST_SHOWN]
    )
    rest = f"; and {len(exclusions.reasons) - _MOST_SHOWN} more" if len(exclusions.reasons) > _MOST_SHOWN else ""
    number = f"{len(exclusions.reasons)} of {plural(len(exclusions.blocks), 'block')}"
    if exclusions.is_forced:
        text = f"{number} would be excluded, and are used all the same (--allow-noise): {which}{rest}."
    elif exclusions.is_noisy:
        text = f"noisy host: {number} {EXCLUDED}, so all is undecided: see Runs (--detail)."
    else:
        text = f"{number} {EXCLUDED} everywhere: see Runs (--detail)."
    yield Caveat(severity="weakens", about=SESSION, text=text)


def began_busy(evidence: Evidence) -> Iterator[Caveat]:
    """Blocks that began before the machine was quiet."""
    checks = evidence.quiet_checks
    if checks and checks.busy and not checks.elsewhere:
        loads = [share for share in checks.busy.values() if share is not None]
        load = f", up to {percent(max(loads))} of its CPUs" if loads else ""
        text = (
            f"{plural(len(checks.busy), 'block')} of {checks.quiet + len(checks.busy)} began on a busy machine{load}."
        )
        yield Caveat(severity="note", about=SESSION, text=text)


def not_seen(evidence: Evidence) -> Iterator[Caveat]:
    """Kinds of interference that the kernel does not count here, so that they exclude nothing."""
    if evidence.exclusions.unseen:
        missing = ", ".join(evidence.exclusions.unseen)
        text = f"whether others disturbed the machine is known in part only, not counted here: {missing}."
        yield Caveat(severity="note", about=SESSION, text=text)
