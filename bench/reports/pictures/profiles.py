"""Flame graphs of what a profiler saw: drawn here from names and numbers, so that no stranger's picture is ever shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench import stacks
from bench.analysis.cells import CellReport
from bench.model import Run
from bench.reports.pictures.session import Picture, name_of
from bench.reports.pictures.svg import WIDTH, Canvas
from bench.reports.sections import profiles
from bench.reports.sections.profiles import Profile

ROW = 17  # units high
LEAST_WIDTH = 0.7  # of a frame that is drawn
MOST_ROWS = 40  # what lies deeper is in the file
LETTER = 6.6  # units wide, about
COLOURS = ("#E69F00", "#F0E442", "#D98E04", "#E8C15A")  # black words can be read on each


def of_cell(cell: CellReport, runs: Sequence[Run]) -> Iterator[Picture]:
    """A flame graph of each profile of `cell`."""
    for number, profile in enumerate(profiles.of_cell(cell, runs)):
        yield _flame(profile, name_of("flame", cell, str(number)))


def _flame(profile: Profile, name: str) -> Picture:
    whole = stacks.tree(profile.stacks)
    boxes = list(_boxes(whole, 0.0, 0, WIDTH / whole.total))
    canvas = Canvas(height=ROW * (1 + max(row for *_, row in boxes)))
    for number, (frame, x, wide, row) in enumerate(boxes):
        share = f"{profiles.amount(profile.unit, frame.total)}, {frame.total / whole.total:.1%}"
        canvas.box(x, ROW * row, wide - 0.4, ROW - 1, kind="flame", colour=COLOURS[(number + row) % len(COLOURS)])
        canvas.tip(f"{frame.name}: {share}")
        room = int((wide - 6) / LETTER)
        if room >= 3:
            words = frame.name if len(frame.name) <= room else f"{frame.name[: room - 1]}…"
            canvas.words(x + 3, ROW * row + 12, words, kind="in")
    return Picture(
        title=f"Flame graph: {profile.title}",
        svg=canvas.drawn(name, f"{profile.title}. {'; '.join(profiles.listing(profile)[:6])}"),
        says=f"what called what, from the top, of {profiles.amount(profile.unit, whole.total)} in all.",
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
