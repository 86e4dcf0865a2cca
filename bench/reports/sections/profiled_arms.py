"""Shows which functions each arm's workers were in, as a profiler saw them: arm beside arm, and cell beside cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench import stacks
from bench.analysis import Report
from bench.analysis.number_format import percent
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section
from bench.reports.sections.profiles import amount, profiled_runs
from bench.reports.tables import Table

MOST_FUNCTIONS = 6  # of the table: those that differ most from cell to cell
LEAST_SHARE = (
    0.02  # of an arm, and most of the rest: what has all of some arms and nothing of others only calls the work
)


@dataclass(frozen=True, kw_only=True)
class ProfiledArm:
    """What a profiler saw of one arm in the workers of one run."""

    cell: str
    topology: str
    arm: str
    profiler: str
    stacks: stacks.Stacks  # from the function that does all of the arm's work

    @property
    def whole(self) -> int:
        return sum(self.stacks.values())

    @property
    def shares(self) -> Mapping[str, float]:
        """By function, with all that it calls."""
        return {name: total / self.whole for name, _, total in stacks.by_function(self.stacks)}


def chapters(report: Report, runs: Sequence[Run] = ()) -> Iterator[Chapter]:
    """One for each experiment and profiler whose arms were seen."""
    for experiment, functions in report.profiled_in.items():
        seen = list(_profiled_arms(report, runs, experiment))
        for profiler in dict.fromkeys(each.profiler for each in seen):
            those = [each for each in seen if each.profiler == profiler]
            unseen = [arm for arm, function in functions.items() if not function]
            section = Section(
                title=f"Share of each arm in functions, with all that they call, by {profiler}: {stacks.PROFILERS[profiler].counts}",
                table=table(those),
                notes=(f"arms whose work a profiler does not see in workers of Ray: {', '.join(unseen)}",)
                if unseen
                else (),
                source="the workers of the first good run of each cell on each topology, below.",
            )
            yield Chapter(title=f"{experiment}: where the time of each arm went", sections=(section,))


def _profiled_arms(report: Report, runs: Sequence[Run], experiment: str) -> Iterator[ProfiledArm]:
    for cell in report.cells:
        if cell.experiment != experiment:
            continue
        for run in profiled_runs(cell, runs):
            of_workers: dict[str, list[stacks.Stacks]] = {}
            for name, text in run.profiles.items():
                named = stacks.read_name(name)
                if named and named[1] != stacks.DRIVER:
                    of_workers.setdefault(named[0], []).append(stacks.parse(text))
            for profiler, found in of_workers.items():
                all_workers = stacks.merged(found)
                for arm, function in report.profiled_in[experiment].items():
                    if function and (below := stacks.below(all_workers, function)):
                        yield ProfiledArm(
                            cell=" ".join(filter(None, (cell.cell, cell.title))),
                            topology=run.spec.topology.name,
                            arm=arm,
                            profiler=profiler,
                            stacks=below,
                        )


def table(seen: Sequence[ProfiledArm]) -> Table:
    """A row an arm, cell and topology; a column a function."""
    shares = [each.shares for each in seen]
    names = functions(seen, shares)
    unit = stacks.PROFILERS[seen[0].profiler].unit
    heads = [
        ("cell", False),
        ("on", False),
        ("arm", False),
        ("seen", True),
        *((_short(name, names), True) for name in names),
    ]
    return tables.table(
        heads,
        (
            tables.row(
                [
                    each.cell,
                    each.topology,
                    each.arm,
                    amount(unit, each.whole),
                    *(percent(round(of_arm.get(name, 0.0), 3)) for name in names),
                ]
            )
            for each, of_arm in zip(seen, shares, strict=True)
        ),
    )


def functions(seen: Sequence[ProfiledArm], shares: Sequence[Mapping[str, float]]) -> list[str]:
    """Those whose share of one arm differs most from cell to cell, then those with most of their own.

    Of several with equal shares, as of a caller and what it calls alone, the outermost.
    """
    depths: dict[str, int] = {}
    own: dict[str, float] = {}
    for each in seen:
        for stack in each.stacks:
            for depth, name in enumerate(stack):
                depths[name] = min(depth, depths.get(name, depth))
        for name, itself, _ in stacks.by_function(each.stacks):
            own[name] = max(own.get(name, 0.0), itself / each.whole)
    groups: dict[tuple[float, ...], list[str]] = {}
    for name in sorted(depths, key=lambda name: (depths[name], name)):
        row = tuple(round(of_arm.get(name, 0.0), 2) for of_arm in shares)
        if any(LEAST_SHARE <= share <= 1 - LEAST_SHARE for share in row):
            groups.setdefault(row, []).append(name)
    ordered = sorted(
        groups.items(), key=lambda group: (-_spread(seen, group[0]), -max(own[name] for name in group[1]), group[1])
    )
    return [names[0] for _, names in ordered[:MOST_FUNCTIONS]]


def _spread(seen: Sequence[ProfiledArm], row: Sequence[float]) -> float:
    """How far the shares of a function in the same arm lie apart, over cells."""
    of_arms: dict[tuple[str, str], list[float]] = {}
    for each, share in zip(seen, row, strict=True):
        of_arms.setdefault((each.arm, each.topology), []).append(share)
    return round(max(max(those) - min(those) for those in of_arms.values()), 2)


def _short(name: str, names: Sequence[str]) -> str:
    """A function without its file, where no other one has its name."""
    short = name.partition(" (")[0]
    return short if sum(each.partition(" (")[0] == short for each in names) == 1 else name
