"""What an experiment recommends is said in one sentence, over all of its cells."""

from __future__ import annotations

from collections.abc import Sequence

from made_up import MULTI, SINGLE

from bench.analysis.cells import CellReport
from bench.analysis.comparison import Side
from bench.analysis.recommended import sentence
from bench.analysis.rows import MetricRow
from bench.experiments.network.arms import PUT_GET
from bench.experiments.network.metrics import BEST_SHARE, BEST_SIZE, BEST_STREAMS, CHUNK
from bench.model import Metric

MIB = 2**20


def a_cell(blocks: Sequence[tuple[int, int, int, float | None]], pages: str = "at-use") -> CellReport:
    """Object MiB, streams, chunk MiB and share of each block on multi; on single there is no share."""
    columns = [dict(enumerate(column)) for column in zip(*blocks, strict=True)]

    def row(metric: Metric, column: dict[int, float | None], times: int) -> MetricRow:
        values = {block: value * times for block, value in column.items() if value is not None}
        side = Side(estimate=None, spread=None, values=values, missing={})
        sides = {MULTI.name: side} if metric == BEST_SHARE else {SINGLE.name: side, MULTI.name: side}
        return MetricRow(metric=metric, arm=PUT_GET.name, headline=False, sides=sides)

    metrics = ((BEST_SIZE, MIB), (BEST_STREAMS, 1), (CHUNK, MIB), (BEST_SHARE, 1))
    return CellReport(
        experiment="network", cell="c01", title=f"store_pages={pages}", unit="B", params={"store_pages": pages}, subject=PUT_GET.name,
        rows=tuple(row(metric, column, times) for (metric, times), column in zip(metrics, columns, strict=True)),
        usage=(), arms=(), nodes=(),
    )  # fmt: skip


def test_the_cell_that_reaches_the_largest_share_is_named_with_all_its_settings() -> None:
    cells = [a_cell([(64, 1, 5, 0.4)]), a_cell([(16, 4, 1, 0.5), (16, 4, 1, 0.6)], pages="at-start")]
    assert sentence(cells, "multi") == (
        "Best settings on multi with store_pages=at-start: recommended object 16 MiB, recommended streams 4, chunk 1 MiB."
        " With them ray-put-get reaches 55 % (recommended share of raw tcp)."
    )


def test_where_blocks_differ_it_is_what_most_of_them_say_and_no_mean_of_two() -> None:
    said = sentence([a_cell([(64, 1, 5, 0.4), (16, 4, 5, 0.9), (64, 1, 5, 0.5)])], "multi")
    assert "recommended object 64 MiB, recommended streams 1," in said
    assert "45 %" in said


def test_inside_one_node_nothing_is_recommended() -> None:
    assert sentence([a_cell([(64, 1, 5, 0.4)])], "single") == ""
    assert sentence([a_cell([(64, 1, 5, None)])], "multi") == ""
