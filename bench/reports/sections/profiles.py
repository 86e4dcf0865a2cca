"""Shows where the time or the memory of driver and workers went, as a profiler saw it: lists of functions and flame graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench import stacks
from bench.analysis.cells import CellReport
from bench.model import Run
from bench.reports.document import CellView, Section
from bench.reports.drawing.picture import Picture
from bench.reports.drawing.svg import WIDTH, Canvas

MOST_FUNCTIONS = 40
ROW = 17  # units high
LEAST_WIDTH = 0.7  # of a frame that is drawn
MOST_ROWS = 40  # what lies deeper is in the file
LETTER = 6.6  # units wide, about
COLOURS = ("#E69F00", "#F0E442", "#D98E04", "#E8C15A")  # black words can be read on each


def sections(view: CellView) -> Iterator[Section]:
    """One for each profile."""
    for number, profile in enumerate(of_cell(view.cell, view.runs)):
        yield Section(
            title=f"Profile: {profile.title}",
            listing=listing(profile),
            source=profile.source,
            draw=partial(picture, profile, view.name("flame", str(number))),
        )


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One file of a run, read."""

    title: str
    unit: str  # of its weights: us or B
    stacks: stacks.Stacks
    source: str


def profiled_runs(cell: CellReport, runs: Sequence[Run]) -> list[Run]:
    """The first good run with a profile on each topology."""
    found: dict[str, Run] = {}
    for run in runs:
        is_its = run.status == "ok" and (run.spec.experiment, run.spec.cell) == (cell.experiment, cell.cell)
        if is_its and run.profiles:
            found.setdefault(run.spec.topology.name, run)
    return list(found.values())


def of_cell(cell: CellReport, runs: Sequence[Run]) -> Iterator[Profile]:
    """Those of the first run with any, on each topology; the driver's first."""
    for run in profiled_runs(cell, runs):
        topology = run.spec.topology.name
        named = [(name, parsed) for name in run.profiles if (parsed := stacks.read_name(name))]
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
    """Format a weight: 1.25 s, 12.5 MiB."""
    return f"{weight / 1e6:,.3g} s" if unit == "us" else f"{weight / 2**20:,.3g} MiB"


def picture(profile: Profile, name: str) -> Iterator[Picture]:
    """A flame graph, drawn here from names and numbers, so that no stranger's picture is ever shown."""
    whole = stacks.tree(profile.stacks)
    boxes = list(_boxes(whole, 0.0, 0, WIDTH / whole.total))
    canvas = Canvas(height=ROW * (1 + max(row for *_, row in boxes)))
    for number, (frame, x, wide, row) in enumerate(boxes):
        share = f"{amount(profile.unit, frame.total)}, {frame.total / whole.total:.1%}"
        canvas.box(x, ROW * row, wide - 0.4, ROW - 1, kind="flame", colour=COLOURS[(number + row) % len(COLOURS)])
        canvas.tip(f"{frame.name}: {share}")
        room = int((wide - 6) / LETTER)
        if room >= 3:
            words = frame.name if len(frame.name) <= room else f"{frame.name[: room - 1]}…"
            canvas.words(x + 3, ROW * row + 12, words, kind="in")
    yield Picture(
        title=f"Flame graph: {profile.title}",
        canvas=canvas,
        name=name,
        says=f"what called what, from the top, of {amount(profile.unit, whole.total)} in all.",
        alternative="; ".join(listing(profile)[:6]),
        reads=(
            "a box is as wide as its share, with all that it called, which stands below it; the order from left to right"
            f" means nothing. Point at a box for its name. Boxes of less than {LEAST_WIDTH / WIDTH:.1%}, or deeper than"
            f" {MOST_ROWS} calls, are left out: https://speedscope.app opens the file, and shows them."
        ),
        source=profile.source,
    )


def _boxes(frame: stacks.Frame, x: float, row: int, scale: float) -> Iterator[tuple[stacks.Frame, float, float, int]]:
    """Each frame that is wide enough, where it begins, how wide it is, and in which row."""
    yield frame, x, frame.total * scale, row
    if row == MOST_ROWS:
        return
    for called in sorted(frame.called.values(), key=lambda each: (-each.total, each.name)):
        if called.total * scale < LEAST_WIDTH:
            return
        yield from _boxes(called, x, row + 1, scale)
        x += called.total * scale
