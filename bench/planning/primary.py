"""Reads the primary comparisons of a session, which are named before it runs."""

from __future__ import annotations

from collections.abc import Sequence

from bench.errors import BadInput, did_you_mean
from bench.model import MOST_PRIMARY, Spec


def primary(text: str, specs: Sequence[Spec]) -> tuple[str, ...]:
    """The cells that `text` names, c01,c03 or inference:c01,network:c02, as "inference c01". Raises BadInput."""
    cells = {(spec.experiment, spec.cell): f"{spec.experiment} {spec.cell}" for spec in specs}
    experiments = {experiment for experiment, _ in cells}
    chosen: dict[str, None] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        experiment, _, cell = word.rpartition(":")
        if not experiment and len(experiments) > 1:
            raise BadInput(
                f"--primary {word} does not name the experiment.", f"Write for example {min(experiments)}:{word}."
            )
        key = (experiment or min(experiments), cell)
        if key not in cells:
            known = [f"{e}:{c}" if len(experiments) > 1 else c for e, c in cells]
            raise BadInput(
                f"--primary {word}: unknown cell.",
                f"{did_you_mean(word, known)}`bench plan` lists them: {known[0]} to {known[-1]}.",
            )
        chosen[cells[key]] = None
    if len(chosen) > MOST_PRIMARY:
        raise BadInput(
            f"--primary must name at most {MOST_PRIMARY} comparisons, got {len(chosen)}.",
            "All others are compared too, corrected for their number.",
        )
    return tuple(chosen)
