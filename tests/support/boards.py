"""What a user would see on the boards: each panel's query, asked through Grafana, for one experiment of a session."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.number_format import label
from bench.doctor import monitoring
from bench.model import Run, Session
from bench.prometheus import boards as committed
from bench.prometheus.board_queries import fill, queries, variables
from bench.prometheus.client import Grafana

Values = dict[tuple[str, ...], float]
"""Values of a query by the labels that it keeps, in the order of the labels' names."""
TABLE = "$headline_title by cell, as in the report"
BY_BLOCK = "$headline_title: multi / single, block by block"


def empty(grafana_url: str, session: Session, experiment: str) -> list[str]:
    """The panels that show nothing of an experiment, each with its metrics."""
    grafana = Grafana(grafana_url)
    chosen = {"session": session.id, "experiment": experiment}
    begin = datetime.fromisoformat(session.created).timestamp()
    boards = grafana.boards()
    assert set(boards) == {committed.uid(name) for name in committed.NAMES}
    return [
        f"{found}, asked as {found.expr}"
        for board in boards.values()
        for found in monitoring.empty_panels(grafana.source, board, chosen=chosen, begin=begin, end=time.time())
    ]


def shown_on_overview(grafana_url: str, session: Session, experiment: str) -> dict[tuple[str, int], Values]:
    """What the Overview shows of an experiment of a session: by panel, and number of the query in it."""
    grafana = Grafana(grafana_url)
    board = grafana.boards()[committed.uid("overview")]
    begin = datetime.fromisoformat(session.created).timestamp()

    def label_values(label: str, selector: str) -> tuple[str, ...]:
        return grafana.source.label_values(label, selector, begin=begin, end=time.time())

    chosen = variables(board, label_values, {"session": session.id, "experiment": experiment})
    found: dict[tuple[str, int], Values] = {}
    numbers: Counter[str] = Counter()
    for query in queries(board):
        answer = grafana.source.query(fill(query.expr, chosen))
        found[query.panel, numbers[query.panel]] = {
            tuple(series.labels[name] for name in sorted(series.labels)): series.last for series in answer
        }
        numbers[query.panel] += 1
    return found


def side_by_side(report: Report, session: Session, runs: Sequence[Run]) -> dict[tuple[str, int], Values]:
    """The numbers of several nodes beside one that the Overview must show, as the record has them. What is unknown is left out."""
    titles = {spec.cell: spec.cell_title or spec.cell for spec in session.specs}
    found: dict[tuple[str, int], Values] = {(TABLE, number): {} for number in range(1, 9)}
    found[BY_BLOCK, 0] = dict(_by_block(runs, session, titles))
    cpu_use = found["CPU use, % of all CPUs of the topology", 0] = {}
    by_payload = found["Bytes sent for each byte of payload", 0] = {}
    gains = []
    for cell in report.cells:
        parameters, row = titles[cell.cell], cell.headline
        assert row
        assert row.comparison
        used = _used(cell)
        ratio = row.comparison.ratio
        medians = [side.estimate.value if side.estimate else None for side in row.sides.values()]
        of_cpu = [used.get(("CPU time", topology)) for topology in row.sides]
        ends = [ratio.value, ratio.low, ratio.high] if ratio else [None, None, None]
        for number, value in enumerate([*ends, row.comparison.pairs, *medians, *of_cpu], start=1):
            found[TABLE, number] |= {} if value is None else {(parameters,): value}
        gains += [cell.gain] if ratio else []
        cpu_use |= {(parameters, name): value for (resource, name), value in used.items() if resource == "CPU use"}
        by_payload |= {
            (parameters, name): value / used["payload", name]
            for (resource, name), value in used.items()
            if resource == "wire bytes" and ("payload", name) in used
        }
    for name, function in (("worst", min), ("best", max)):
        found[f"Multi beside single, {name} cell (100 %: equal)", 0] = {(): function(gains)} if gains else {}
    return found


def _used(cell: CellReport) -> dict[tuple[str, str], float]:
    """What a unit of work used, by resource and topology; without what cannot be told from idle traffic."""
    return {
        (row.metric.means or label(row.metric), topology): side.estimate.value
        for row in (*cell.usage, *(row for row in cell.rows if row.metric.means == "payload"))
        for topology, side in row.sides.items()
        if side.estimate and not side.like_idle
    }


def _by_block(
    runs: Sequence[Run], session: Session, titles: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], float]]:
    """The ratio of each block with a good run on both topologies: by hand, work by time of the samples that count."""
    values: dict[tuple[str, str, str], float] = {}
    for run in runs:
        headline = session.metrics[run.spec.experiment][0]
        assert headline.kind == "rate"
        subject = next(arm.name for arm in session.arms[run.spec.experiment] if arm.role == "subject")
        samples = [
            (sample.value, sample.interval.seconds)
            for sample in run.samples
            if (sample.metric, sample.arm, sample.warmup, sample.point) == (headline.name, subject, False, "")
            and sample.value is not None
        ]
        if run.status == "ok" and samples:
            work = math.fsum(value * seconds for value, seconds in samples)
            key = (f"{run.spec.block:02d}", titles[run.spec.cell], run.spec.topology.name)
            values[key] = work / math.fsum(seconds for _, seconds in samples)
    for (block, parameters, topology), value in values.items():
        if topology == "multi" and (block, parameters, "single") in values:
            yield (block, parameters), value / values[block, parameters, "single"]
