"""Where the time or the memory of driver and workers went, as a profiler saw it: of each cell the first good run of a topology."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench import stacks
from bench.analysis.cells import CellReport
from bench.model import Run

MOST_FUNCTIONS = 40


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One file of a run, read."""

    title: str
    unit: str  # of its weights: us or B
    stacks: stacks.Stacks
    source: str


def of_cell(cell: CellReport, runs: Sequence[Run]) -> Iterator[Profile]:
    """Those of the first run with any, on each topology; the driver's first."""
    seen: set[str] = set()
    for run in runs:
        topology = run.spec.topology.name
        is_its = run.status == "ok" and (run.spec.experiment, run.spec.cell) == (cell.experiment, cell.cell)
        if not is_its or not run.profiles or topology in seen:
            continue
        seen.add(topology)
        named = [(name, said) for name in run.profiles if (said := stacks.read_name(name))]
        for name, (profiler, where) in sorted(named, key=lambda each: (each[1][1] != stacks.DRIVER, each[1][1])):
            found = stacks.parse(run.profiles[name])
            if not sum(found.values()):
                continue
            who = "the driver" if where == stacks.DRIVER else f"the workers on {where}"
            yield Profile(
                title=f"{topology}, {who}, by {profiler}: {stacks.PROFILERS[profiler].counts}",
                unit=stacks.PROFILERS[profiler].unit,
                stacks=found,
                source=f"results/{run.spec.session}/runs/{run.spec.folder}/files/{name}",
            )


def listing(profile: Profile) -> tuple[str, ...]:
    """The functions that had most themselves, a line each."""
    whole = sum(profile.stacks.values())
    rows = list(stacks.by_function(profile.stacks))
    shown = [f"{own / whole:6.1%} {total / whole:6.1%}  {name}" for name, own, total in rows[:MOST_FUNCTIONS]]
    rest = [f"... and {len(rows) - MOST_FUNCTIONS} other functions"] if len(rows) > MOST_FUNCTIONS else []
    return (f"  self  total  of {amount(profile.unit, whole)}", *shown, *rest)


def amount(unit: str, weight: float) -> str:
    """A weight in words: 1.25 s, 12.5 MiB."""
    return f"{weight / 1e6:,.3g} s" if unit == "us" else f"{weight / 2**20:,.3g} MiB"
