"""Fits a session into its time budget, and decides when it has measured enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from bench.errors import DoesNotFit
from bench.model import Session, Spec
from bench.planning.plan import Known, cluster_seconds, format_duration, run_seconds, sum_seconds

FEWEST_BLOCKS = 6  # a verdict needs as many; below them cells are dropped first
MOST_OVER = 1.1  # of the budget: a run is not begun that would end later


def fit(session: Session, known: Known) -> Session:
    """The session with what its budget has room for, and what was dropped by name.

    First blocks beyond 6 are dropped, then cells from the end, then blocks below 6, which leave no verdict. Raises
    DoesNotFit where not even one block of one cell fits.
    """
    budget = session.budget_seconds
    if budget is None:
        return session
    blocks = max(spec.block for spec in session.specs)
    cells = cells_of(session)
    kept_blocks, kept_cells = blocks, len(cells)

    def left() -> tuple[Spec, ...]:
        return tuple(
            s for s in session.specs if s.block <= kept_blocks and (s.experiment, s.cell) in cells[:kept_cells]
        )

    def is_too_long() -> bool:
        return sum_seconds(left(), known) > budget

    while is_too_long() and kept_blocks > FEWEST_BLOCKS:
        kept_blocks -= 1
    while is_too_long() and kept_cells > 1:
        kept_cells -= 1
    while is_too_long() and kept_blocks > 1:
        kept_blocks -= 1
    if is_too_long():
        takes = format_duration(sum_seconds(left(), known))
        raise DoesNotFit(
            f"--budget must be at least {takes}, the time of one block of one cell, got {format_duration(budget)}.",
            "Or use a smaller profile.",
        )
    experiments = {name for name, _ in cells[:kept_cells]}
    return replace(
        session,
        specs=left(),
        metrics={name: metrics for name, metrics in session.metrics.items() if name in experiments},
        arms={name: arms for name, arms in session.arms.items() if name in experiments},
        studies={name: study for name, study in session.studies.items() if name in experiments},
        dropped=tuple(_dropped(session, cells[kept_cells:], kept_blocks=kept_blocks, blocks=blocks)),
    )


def _dropped(session: Session, cells: Sequence[tuple[str, str]], *, kept_blocks: int, blocks: int) -> list[str]:
    params = {(spec.experiment, spec.cell): spec.params for spec in session.specs}
    named = [
        f"cell {name} {cell} ({' '.join(f'{key}={value}' for key, value in params[name, cell].items())})"
        for name, cell in cells
    ]
    if kept_blocks < blocks:
        first = kept_blocks + 1
        named.insert(0, f"block {first}" if first == blocks else f"blocks {first} to {blocks}")
    return named


def cells_of(session: Session) -> list[tuple[str, str]]:
    """Experiment and cell, in the order in which they were asked for."""
    order = list(session.metrics)
    cells = dict.fromkeys((spec.experiment, spec.cell) for spec in session.specs)
    return sorted(cells, key=lambda cell: (order.index(cell[0]), cell[1]))


@dataclass(kw_only=True)
class Limits:
    """When a session has measured enough; asked before each run. It hears how long things took, and no result.

    `is_precise` says whether the precision was reached; it is asked before a block, where all pairs are whole.
    """

    session: Session
    todo: tuple[Spec, ...]
    known: Known
    is_precise: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = monotonic
    _began: float = field(init=False)
    _block: int | None = None
    _asked: Spec | None = None  # about which one was asked last, and about which one before
    _before: Spec | None = None
    _block_began: float = 0.0
    _pace: float = 0.0  # the longest that a block took so far, beside what was expected of it: a ratio

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def left_seconds(self) -> float | None:
        """Of the budget. None: there is none."""
        budget = self.session.budget_seconds
        return None if budget is None else budget - (self.clock() - self._began)

    @property
    def most_wait_seconds(self) -> float:
        """How long a block may wait for a quiet machine, so that the wait alone does not end the session too late."""
        left, budget = self.left_seconds, self.session.budget_seconds
        return math.inf if left is None or budget is None else max(left, 0.0) + (MOST_OVER - 1) * budget

    def enough(self, spec: Spec) -> str:
        """Why `spec`, the next one, is not to be run; nothing where it is."""
        is_new = spec.block != self._block
        if spec is not self._asked:
            self._before, self._asked = self._asked, spec
        if is_new:
            self._close_block()
            share = self.session.precision_share
            if share is not None and self.is_precise():
                return f"the precision of {100 * share:g} % was reached"
        why = self._out_of_time(spec, is_new=is_new)
        if is_new and not why:
            self._block, self._block_began = spec.block, self.clock()
        return why

    def _close_block(self) -> None:
        if self._block is not None:
            took = self.clock() - self._block_began
            self._pace = max(self._pace, took / max(self._expected(self._block), 1e-9))

    def _expected(self, block: int) -> float:
        return sum_seconds([spec for spec in self.todo if spec.block == block], self.known)

    def _out_of_time(self, spec: Spec, *, is_new: bool) -> str:
        left, budget = self.left_seconds, self.session.budget_seconds
        if left is None or budget is None:
            return ""
        pace = self._pace or 1.0
        if is_new and self._pace and (needs := pace * self._expected(spec.block)) > left:
            return (
                f"{format_duration(max(left, 0.0))} of the budget of {format_duration(budget)} were left, and a block takes"
                f" {format_duration(needs)}"
            )
        needs = pace * run_seconds(spec, self.known)
        if self._before is None or _cluster(self._before) != _cluster(spec):
            needs += pace * cluster_seconds(spec.topology.name, self.known)
        if needs > left + (MOST_OVER - 1) * budget:
            return (
                f"the budget of {format_duration(budget)} had no room for another run, after"
                f" {format_duration(budget - left)} and with {format_duration(needs)} a run"
            )
        return ""


def _cluster(spec: Spec) -> tuple[int, str]:
    """What runs on one cluster have in common."""
    return spec.block, spec.topology.name
