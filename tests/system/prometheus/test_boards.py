"""The boards in a real Prometheus, panel by panel: each shows the value that the record has, of one cell and session, at any zoom."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median
from typing import Any

import pytest
from made_up import ARMS, MULTI, RATE
from made_up_boards import EXCLUDED, LEFT_SECONDS, MS, POINTS, THROTTLED, BoardSession, board_session, write
from real_prometheus import RAY_PAGE, RealPrometheus, a_real_prometheus

from bench.model import NodeUsage, Run
from bench.prometheus import boards as committed
from bench.prometheus.board_queries import Query, fill, panels, queries, variables
from bench.prometheus.client import Series
from bench.prometheus.scraping import SCRAPE_SECONDS
from bench.prometheus.session_gauges import SENT

pytestmark = pytest.mark.prometheus

BOARDS = committed.load()
CELLS = {"c01": "batch=1", "c02": "batch=10"}
USED = (1, 3)  # blocks whose values count
RANGE_SECONDS = 3600.0
# What they show is of the present; the alert holds still.
OF_NOW = ("Time left of the present run", "Pages that cannot be scraped", "Alerts that fired")
MOST_SERIES = 8
OTHER = "20260201-100000-inference-other"

Values = dict[tuple[str, ...], float]
"""Values of a panel by the labels that its query keeps, in the order of the labels' names."""


@dataclass
class Played:
    """A Prometheus that has seen a whole session, block by block, and another one before it."""

    real: RealPrometheus
    made: BoardSession
    other: BoardSession  # ended before `made` began
    begun: float
    _variables: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    def chosen(self, board: str, cell: str) -> Mapping[str, str]:
        """The variables of a board when it is opened, or with a cell chosen."""
        if (board, cell) not in self._variables:

            def label_values(label: str, selector: str) -> tuple[str, ...]:
                return self.real.prometheus.label_values(label, selector, begin=self.begun, end=time.time())

            self._variables[board, cell] = variables(BOARDS[board], label_values, {"cell": cell} if cell else {})
        return self._variables[board, cell]

    def ask(self, board: str, query: Query, cell: str = "", *, at: float | None = None) -> tuple[Series, ...]:
        expr = fill(query.expr, self.chosen(board, cell), range_seconds=RANGE_SECONDS)
        return self.real.prometheus.query(expr, at=at)

    def shown(self, board: str, title: str, cell: str = "", *, target: int = 0) -> Values:
        """What a panel shows now; of a table with several queries, what the one with this number brings."""
        found = [query for query in queries(BOARDS[board]) if query.panel == title]
        assert len(found) > target, f"{board} has no panel {title}"
        answer = self.ask(board, found[target], cell)
        values = {tuple(series.labels[name] for name in sorted(series.labels)): series.last for series in answer}
        assert len(values) == len(answer)
        return values

    def runs(self, cell: str, topology: str, blocks: Sequence[int] = USED) -> list[Run]:
        return [
            run
            for block in blocks
            for run in self.made.ended
            if (run.spec.cell, run.spec.topology.name, run.spec.block) == (cell, topology, block)
        ]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    records, folder = tmp_path_factory.mktemp("records"), tmp_path_factory.mktemp("prometheus")
    other, made = board_session(OTHER, seed=8, multi=0.5, image_edge=32), board_session()
    begun = time.time() - 60
    with a_real_prometheus(folder, records) as real:
        real.until(lambda: bool(real.prometheus.query("up")))
        for session in (other, made):
            for block in (1, 2, 3):
                session.write_block(records, block)
                real.until(partial(_has, real, session, block))
        present = write(records, made.present, is_closed=False)
        real.until(real.is_scraped_often)
        real.until(lambda: bool(real.prometheus.query('bench_run_status{status="running"} == 1')))
        real.until(lambda: bool(real.prometheus.query('ALERTS{alertstate="firing",alertname="Throttled"}')))
        yield Played(real, made, other, begun)
        present.close("stopped", ())


def _has(real: RealPrometheus, session: BoardSession, block: int) -> bool:
    """Whether all runs of a block, and what was sent after it, have been scraped."""
    runs = [run for run in session.ended if run.spec.block == block]
    status = f'bench_run_status{{session="{session.session.id}",block="{block:02d}",status="ok"}} == 1'
    sent = f'{SENT}{{session="{session.session.id}"}} == {1_000_000 + block}'
    return len(real.prometheus.query(status)) == len(runs) and bool(real.prometheus.query(sent))


def value_of(run: Run, metric: str, arm: str = "ray", point: str = "") -> float:
    """By hand: work by time for a rate, or else the mean."""
    samples = [
        sample
        for sample in run.samples
        if (sample.metric, sample.arm, sample.point) == (metric, arm, point)
        and not sample.warmup
        and sample.value is not None
    ]
    weights = [sample.interval.seconds if metric == RATE.name else 1.0 for sample in samples]
    return math.fsum((s.value or 0.0) * weight for s, weight in zip(samples, weights, strict=True)) / math.fsum(weights)


def rows_of(run: Run) -> list[NodeUsage]:
    """What the nodes used while the subject's headline was timed."""
    return [row for row in run.usage if row.arm == "ray" and not row.warmup and not row.point]


def wire_bytes(run: Run) -> float:
    """Sent by all nodes for a unit of work, without idle traffic."""
    idle = {row.node: (row.sent_bytes or 0) / row.interval.seconds for row in run.usage if row.arm == "idle"}
    sent = math.fsum((row.sent_bytes or 0) - idle[row.node] * row.interval.seconds for row in rows_of(run))
    return sent / math.fsum(row.work or 0.0 for row in rows_of(run))


def cpu_percent(run: Run, node: str = "") -> float:
    rows = [row for row in rows_of(run) if row.node == (node or row.node)]
    used = math.fsum(row.cpu_seconds or 0.0 for row in rows)
    return 100 * used / math.fsum(row.interval.seconds for row in rows) / run.spec.topology.cpus_per_node


def geometric(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))


def share(played: Played, cell: str, topology: str, arm: str) -> float:
    """The subject beside an arm, over the blocks that count. Of two pairs, Hodges and Lehmann's estimate is their mean."""
    return geometric([value_of(run, RATE.name) / value_of(run, RATE.name, arm) for run in played.runs(cell, topology)])


def pairs(played: Played, cell: str, blocks: Sequence[int] = USED) -> list[tuple[float, float]]:
    """The headline on single and on multi, block by block."""
    sides = [[value_of(run, RATE.name) for run in played.runs(cell, name, blocks)] for name in ("single", "multi")]
    return list(zip(*sides, strict=True))


def test_progress_and_time_left_are_those_of_the_session(played: Played) -> None:
    session = (played.made.session.id,)
    assert played.shown("overview", "Runs of the session that have ended") == {session: 12 / 16}
    assert played.shown("overview", "Time left of the session") == {session: LEFT_SECONDS}


def test_the_worst_and_the_best_cell_are_shown_as_shares_of_one_node(played: Played) -> None:
    gains = [geometric([multi / single for single, multi in pairs(played, cell)]) for cell in CELLS]
    for name, gain in (("worst", min(gains)), ("best", max(gains))):
        title = f"Multi beside single, {name} cell (100 %: equal)"
        assert played.shown("overview", title) == {(): pytest.approx(gain)}


def test_each_warning_counts_what_the_report_has(played: Played) -> None:
    report = played.made.report(3)
    serious = [caveat for caveat in report.caveats if caveat.severity != "note"]
    assert serious
    counts = {
        "Caveats that weaken or block a verdict": len(serious),
        "Blocks excluded for interference": 1,
        "Alerts that fired in the session's runs": 1,
    }
    for title, count in counts.items():
        assert played.shown("overview", title) == {(): count}
    caveats = played.shown("overview", "Caveats of the report")
    assert {(about, severity, text[:99]) for about, severity, text in caveats} == {
        (caveat.about, caveat.severity, caveat.text[:99]) for caveat in report.caveats
    }
    assert [key[0] for key in played.shown("overview", "Excluded blocks")] == [f"{EXCLUDED:02d}"]
    ((alert, seconds),) = played.shown("overview", "Alerts that fired").items()
    run, arm, node = THROTTLED
    assert alert == ("Throttled", arm, node, run)
    assert seconds >= SCRAPE_SECONDS


@pytest.mark.parametrize("cell", CELLS)
def test_the_table_has_the_medians_and_ratios_of_each_cell(played: Played, cell: str) -> None:
    title, parameters = "$headline_title by cell, as in the report", CELLS[cell]
    ratios = [multi / single for single, multi in pairs(played, cell)]
    cpu = {
        topology: median(
            math.fsum(row.cpu_seconds or 0.0 for row in rows_of(run))
            / math.fsum(row.work or 0.0 for row in rows_of(run))
            for run in played.runs(cell, topology)
        )
        for topology in ("single", "multi")
    }
    expected = [
        geometric(ratios),
        min(ratios),  # the interval of two pairs is their range
        max(ratios),
        len(ratios),
        median(single for single, _ in pairs(played, cell)),
        median(multi for _, multi in pairs(played, cell)),
        cpu["single"],
        cpu["multi"],
    ]
    shown = [played.shown("overview", title, target=number)[parameters,] for number in range(1, len(expected) + 1)]
    assert shown == pytest.approx(expected)
    assert (parameters, "undecided") in played.shown("overview", title)


def test_the_ratio_is_shown_block_by_block_with_those_that_are_excluded(played: Played) -> None:
    shown = played.shown("overview", "$headline_title: multi / single, block by block")
    assert shown == {
        (f"{block:02d}", parameters): pytest.approx(multi / single)
        for cell, parameters in CELLS.items()
        for block in (1, 2, 3)
        for single, multi in pairs(played, cell, [block])
    }


@pytest.mark.parametrize("cell", CELLS)
def test_the_parts_of_the_gap_add_up_to_it(played: Played, cell: str) -> None:
    shown = played.shown("overview", "Where the additional time of multi goes, % of the time of single")
    parts = [value for (parameters, _), value in shown.items() if parameters == CELLS[cell]]
    gap = fmean(1 / multi - 1 / single for single, multi in pairs(played, cell))
    assert math.fsum(parts) == pytest.approx(gap / fmean(1 / single for single, _ in pairs(played, cell)))


def test_the_subject_is_shown_beside_the_best_peer_and_the_ceiling(played: Played) -> None:
    arms = {"the best peer": "numpy-one-by-one", "the ceiling of the CPUs": "numpy-all-cpus"}
    for name, arm in arms.items():
        assert played.shown("overview", f"Subject as a share of {name}") == {
            (parameters, topology): pytest.approx(share(played, cell, topology, arm))
            for cell, parameters in CELLS.items()
            for topology in ("single", "multi")
        }


def test_bytes_are_without_idle_traffic_and_those_of_the_headline(played: Played) -> None:
    wire = {cell: median(map(wire_bytes, played.runs(cell, "multi"))) for cell in CELLS}
    by_payload = {(CELLS[cell], "multi"): pytest.approx(sent / 784) for cell, sent in wire.items()}
    assert played.shown("overview", "Bytes sent for each byte of payload") == by_payload  # single: like idle traffic
    title = "Bytes sent by multi for each byte of payload, worst cell"
    assert played.shown("overview", title) == {(): pytest.approx(max(wire.values()) / 784)}
    for cell, parameters in CELLS.items():
        assert played.shown("experiment", "Payload beside bytes sent, per unit of work", parameters) == {
            ("payload", "single"): 784,
            ("payload", "multi"): 784,
            ("wire bytes", "multi"): pytest.approx(wire[cell]),
        }


def test_cpu_use_is_in_per_cent_of_all_cpus_and_of_each_nodes(played: Played) -> None:
    assert played.shown("overview", "CPU use, % of all CPUs of the topology") == {
        (parameters, topology): pytest.approx(median(map(cpu_percent, played.runs(cell, topology))))
        for cell, parameters in CELLS.items()
        for topology in ("single", "multi")
    }
    nodes = {"single": ("head",), "multi": ("head", "worker-1")}
    for cell, parameters in CELLS.items():
        assert played.shown("experiment", "CPU use by node, % of its CPUs", parameters) == {
            (node, topology): pytest.approx(median(cpu_percent(run, node) for run in played.runs(cell, topology)))
            for topology, names in nodes.items()
            for node in names
        }
        assert played.shown("experiment", "Share of the work by node", parameters) == {
            (node, topology): pytest.approx(1 / len(names)) for topology, names in nodes.items() for node in names
        }


@pytest.mark.parametrize("cell", CELLS)
def test_arms_are_compared_within_one_cell(played: Played, cell: str) -> None:
    assert played.shown("experiment", "$headline_title by arm", CELLS[cell]) == {
        (arm.name, topology): pytest.approx(
            median(value_of(run, RATE.name, arm.name) for run in played.runs(cell, topology))
        )
        for arm in ARMS
        for topology in ("single", "multi")
    }


def test_response_times_are_shown_by_load_and_topology(played: Played) -> None:
    titles = {
        500: "Median response time by load (lower is better)",
        990: "Response time by load, 99th percentile (lower is better)",
    }
    for per_mille, title in titles.items():
        assert played.shown("experiment", title, CELLS["c02"]) == {
            (point, topology): pytest.approx(MS[per_mille] * factor * slower)
            for point, factor in POINTS.items()
            for topology, slower in (("single", 1.0), ("multi", 1.5))
        }


@pytest.mark.parametrize("cell", CELLS)
def test_the_table_of_metrics_has_every_metric_at_every_point(played: Played, cell: str) -> None:
    shown = played.shown("experiment", "All metrics of the cell, medians of its runs", CELLS[cell])
    keys = {
        (sample.arm, sample.metric, sample.point)
        for run in played.runs(cell, "single")
        for sample in run.samples
        if sample.value is not None and not sample.warmup
    }
    assert {point for _, _, point in keys} == {"", *POINTS}
    expected = {
        tuple(filter(None, (arm, metric, point, topology))): pytest.approx(
            median(value_of(run, metric, arm, point) for run in played.runs(cell, topology))
        )
        for arm, metric, point in keys
        for topology in ("single", "multi")
    }
    assert shown == expected


def test_the_parameters_are_those_of_the_cell(played: Played) -> None:
    for cell, parameters in CELLS.items():
        (run, *_) = played.runs(cell, "single")
        shown = played.shown("experiment", "Parameters of the cell", parameters)
        assert set(shown) == {(name, str(value)) for name, value in run.spec.params.items()}


def test_measuring_costs_what_the_control_arm_says(played: Played) -> None:
    assert played.shown("nodes-and-network", "Throughput that measuring costs, % of the subject's") == {
        (parameters, topology): pytest.approx(1 / share(played, cell, topology, "ray-unwatched") - 1)
        for cell, parameters in CELLS.items()
        for topology in ("single", "multi")
    }


def test_nodes_are_those_of_the_run_in_progress_and_not_at_a_point_of_a_sweep(played: Played) -> None:
    last = {row.node: row for row in rows_of(played.made.present)}
    expected = {
        "CPU use by node, % of its CPUs": lambda row: 100 * row.cpu_seconds / row.interval.seconds,
        "Peak CPU use by node, % of its CPUs": lambda row: 100 * row.peak_cpus,
        "Bytes sent by node, per second": lambda row: row.sent_bytes / row.interval.seconds,
        "Bytes received by node, per second": lambda row: row.received_bytes / row.interval.seconds,
        "Packets sent by node, per second": lambda row: row.sent_packets / row.interval.seconds,
        "TCP segments sent again by node, per sample": lambda row: row.retransmits,
        "Peak memory by node, bytes": lambda row: row.peak_memory_bytes,
        "CPU throttling by node, % of the periods of its quota": lambda row: row.throttled_periods / row.periods,
    }
    for title, value in expected.items():
        assert played.shown("nodes-and-network", title) == {
            (node, "multi"): pytest.approx(value(row)) for node, row in last.items()
        }, title


def test_memory_has_the_capacity_of_a_node_beside_it(played: Played) -> None:
    title = "Peak memory by node, bytes"
    assert played.shown("nodes-and-network", title, target=1) == {("multi",): MULTI.memory_bytes_per_node}
    title = "Memory use by node, bytes as reported by Ray"
    (whole,) = re.findall(r"^ray_node_mem_total{.*} (\S+)$", RAY_PAGE.decode(), re.MULTILINE)
    assert played.shown("nodes-and-network", title, target=1) == {("multi",): float(whole)}


def test_start_up_is_that_of_the_runs_that_count(played: Played) -> None:
    for cell, parameters in CELLS.items():
        assert played.shown("experiment", "Start-up of the subject (lower is better)", parameters) == {
            ("startup_seconds", topology): pytest.approx(
                median(value_of(run, "startup_seconds") for run in played.runs(cell, topology))
            )
            for topology in ("single", "multi")
        }


def test_the_live_board_shows_the_run_in_progress(played: Played) -> None:
    present = played.made.present
    last = [s.value for s in present.samples if (s.metric, s.arm) == (RATE.name, "ray")][-1]
    shown = played.shown("live-run", "$headline_title, sample by sample: $cell", CELLS["c01"])
    assert shown["multi",] == last
    assert played.shown("live-run", "Samples that the present run has recorded") == {("multi",): len(present.samples)}
    assert played.shown("live-run", "Runs of this experiment by status") == {("ok",): 12, ("running",): 1}
    assert played.shown("live-run", "Phase of the present run") == {("steady", "multi"): 1}


@pytest.mark.parametrize("board", BOARDS)
def test_results_do_not_change_with_the_part_of_the_time_that_is_in_sight(played: Played, board: str) -> None:
    now = time.time()
    for query in queries(BOARDS[board]):
        if not query.is_instant or query.panel in OF_NOW:
            continue
        cell = CELLS["c01"] if "$cell" in query.expr else ""
        answers = [
            {tuple(sorted(series.labels.items())): series.last for series in played.ask(board, query, cell, at=at)}
            for at in (now, played.begun, now - 86_400)
        ]
        assert answers[0], query
        assert answers[1] == answers[0], query
        assert answers[2] == answers[0], query


@pytest.mark.parametrize("board", BOARDS)
def test_every_panel_has_data_of_a_session_that_has_all_of_it(played: Played, board: str) -> None:
    empty = []
    for query in queries(BOARDS[board]):
        expr = fill(query.expr, played.chosen(board, ""), range_seconds=RANGE_SECONDS)
        if not played.real.prometheus.query_range(
            expr, begin=played.begun, end=time.time() + SCRAPE_SECONDS, step_seconds=SCRAPE_SECONDS
        ):
            empty.append(str(query))
    assert empty == []


CURVES = [(board, panel) for board in BOARDS for panel in panels(BOARDS[board]) if panel["type"] == "timeseries"]


@pytest.mark.parametrize(
    ("board", "panel"), CURVES, ids=lambda value: value if isinstance(value, str) else value["title"]
)
def test_no_two_curves_of_a_panel_look_alike_and_there_are_few(
    played: Played, board: str, panel: Mapping[str, Any]
) -> None:
    names = []
    for target in panel["targets"]:
        cell = CELLS["c01"] if "$cell" in target["expr"] else ""
        expr = fill(target["expr"], played.chosen(board, cell), range_seconds=RANGE_SECONDS)
        found = played.real.prometheus.query_range(
            expr, begin=played.begun, end=time.time() + SCRAPE_SECONDS, step_seconds=SCRAPE_SECONDS
        )
        names += [_legend(target["legendFormat"], series.labels) for series in found]
    assert 0 < len(names) <= MOST_SERIES
    looks = [_look(panel, name, number) for number, name in enumerate(names)]
    assert [look for look, times in Counter(looks).items() if times > 1] == [], names


def _legend(text: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{\s*(.+?)\s*\}\}", lambda match: labels.get(match[1], ""), text)


def _look(panel: Mapping[str, Any], name: str, number: int) -> tuple[str, str]:
    """The colour of a curve, from the palette by its number unless its name has one, and its dashes."""
    colour, dash = f"palette {number}", ""
    for override in panel["fieldConfig"]["overrides"]:
        matcher = override["matcher"]
        pattern = matcher["options"].strip("/") if matcher["id"] == "byRegexp" else re.escape(matcher["options"])
        if re.search(pattern, name):
            for each in override["properties"]:
                if each["id"] == "color":
                    colour = each["value"]["fixedColor"]
                elif each["id"] == "custom.lineStyle":
                    dash = str(each["value"]["dash"])
    return colour, dash


def test_another_session_has_values_of_its_own(played: Played) -> None:
    """What the tests above compare would be seen if a query mixed sessions: the other one has half of multi's speed."""
    other = variables(
        BOARDS["overview"],
        lambda label, selector: played.real.prometheus.label_values(
            label, selector, begin=played.begun, end=time.time()
        ),
        {"session": OTHER},
    )
    (query,) = [
        each for each in queries(BOARDS["overview"]) if each.panel == "Multi beside single, best cell (100 %: equal)"
    ]
    (series,) = played.real.prometheus.query(fill(query.expr, other))
    assert series.last < 0.6


@pytest.mark.parametrize("cell", CELLS)
def test_several_sessions_have_the_headline_of_their_own_reports(played: Played, cell: str) -> None:
    ratios, values, numbers = {}, {}, {}
    for session in (played.made, played.other):
        (found,) = [each for each in session.report(3).cells if each.cell == cell]
        assert found.headline
        assert found.headline.comparison
        ratio, pairs = found.headline.comparison.ratio, found.headline.comparison.pairs
        assert ratio
        name = session.session.id
        ratios |= {("interval from", name): ratio.low, ("ratio", name): ratio.value, ("to", name): ratio.high}
        numbers[name] = [ratio.value, ratio.low, ratio.high, pairs]
        for topology in ("single", "multi"):
            estimate = found.headline.sides[topology].estimate
            assert estimate
            values[name, topology] = estimate.value
            numbers[name] += [estimate.value, estimate.low, estimate.high]
    assert len({round(value, 9) for value in ratios.values()}) == len(ratios), "other values would not be seen"
    parameters = CELLS[cell]
    assert played.shown("sessions", "$headline_title: multi / single in each session, $cell", parameters) == ratios
    title = "$headline_title of single and multi in each session, $cell"
    assert played.shown("sessions", title, parameters) == values
    title = "$headline_title with intervals and verdict in each session, $cell"
    assert {name for name, _ in played.shown("sessions", title, parameters)} == numbers.keys()
    for name, expected in numbers.items():
        shown = [played.shown("sessions", title, parameters, target=target) for target in range(1, len(expected) + 1)]
        assert [each[name,] for each in shown] == expected


def test_several_sessions_are_listed_with_what_their_numbers_must_not_be_read_without(played: Played) -> None:
    title = "Sessions of $experiment, the oldest first"
    begun, done, caveats, excluded = (played.shown("sessions", title, target=target) for target in range(4))
    sessions = [(session.session.id,) for session in (played.other, played.made)]
    assert sorted(begun, key=begun.__getitem__) == sorted(begun) == sessions
    assert [1000 * played.begun < moment < 1000 * time.time() for moment in begun.values()] == [True, True]
    assert done == dict.fromkeys(sessions, 12 / 16)
    serious = {
        (session.session.id,): sum(caveat.severity != "note" for caveat in session.report(3).caveats)
        for session in (played.other, played.made)
    }
    assert caveats == serious
    assert excluded == dict.fromkeys(sessions, 1)


def test_a_parameter_that_differs_between_sessions_is_named_and_no_other(played: Played) -> None:
    shown = played.shown("sessions", "Parameters that differ between the sessions, $cell", CELLS["c01"])
    made, other = (session.session.id for session in (played.made, played.other))
    assert set(shown) == {("image_edge", made, "28"), ("image_edge", other, "32")}


def test_sessions_that_are_not_chosen_are_not_shown(played: Played) -> None:
    chosen = variables(
        BOARDS["sessions"],
        lambda label, selector: played.real.prometheus.label_values(
            label, selector, begin=played.begun, end=time.time()
        ),
        {"session": OTHER},
    )
    for query in queries(BOARDS["sessions"]):
        answer = played.real.prometheus.query(fill(query.expr, chosen))
        assert {series.labels["session"] for series in answer} <= {OTHER}, query
