"""Builds the board Sessions: the headline of one cell in several sessions, the oldest first, and what differs between them."""

from __future__ import annotations

from grafana_foundation_sdk.builders.barchart import Panel as BarChart
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from tools.dashboards.panels import board, columns, in_colours, listing, matrix, rows, variable
from tools.dashboards.results import SESSIONS, last, reported, texts

OF_EXPERIMENT = f'{SESSIONS},experiment="$experiment"'
OF_CELL = f'{OF_EXPERIMENT},parameters="$cell"'
BEGUN = f"min by (session) ({last('bench_run_begun_timestamp_seconds', OF_EXPERIMENT)})"
"""The sessions that have measured the experiment, and when."""
ENDS = {"low": "interval from", "high": "to"}
"""The names of the bars beside `ratio`, which stand in alphabetical order."""
FIRST_BLOCK = "Not known: no session of this cell has a block with a good run on both topologies."
OVERVIEW = {
    "title": "Overview of this session",
    "url": "/d/raymeter-overview?var-session=${__value.raw:percentencode}&${experiment:queryparam}&${__url_time_range}",
}
Columns = dict[str, tuple[str, str]]
"""The query and unit of each column of a table with a row for each session, by the column's name."""


def build() -> Dashboard:
    """Build the board."""
    return (
        board(
            "sessions",
            "raymeter 5: Sessions",
            "The headline of one cell in each chosen session, as in its report, and what differs between the sessions.",
            since="now-7d",
            refresh="1m",
            several=True,
        )
        .with_variable(variable("cell", f"label_values(bench_run_status{{{OF_EXPERIMENT}}}, parameters)"))
        .with_panel(_sessions())
        .with_panel(_ratios())
        .with_panel(_values())
        .with_panel(_numbers())
        .with_panel(_parameters())
    )


def _sessions() -> Table:
    done, wanted = (_reported(f"bench_session_runs_{name}", "session", SESSIONS) for name in ("done", "wanted"))
    caveats = _texts("bench_caveat", "session, severity, about, text", f'{SESSIONS},severity!="note"')
    excluded = _texts("bench_block_excluded", "session, block", SESSIONS)
    shown = {
        "begun": (f"1000 * {BEGUN}", "dateTimeAsIso"),
        "runs ended": (f"{done} / {wanted} and on (session) {BEGUN}", "percentunit"),
        "caveats that weaken or block a verdict": (_count(caveats), "none"),
        "blocks excluded for interference": (_count(excluded), "none"),
    }
    return _by_session(
        "Sessions of $experiment, the oldest first",
        "When each began, how much of it is done, and what its numbers must not be read without. A session's name leads to its Overview.",
        shown,
        empty="No data: no session was started while Prometheus was there. Start one with `bench run`.",
    )


def _ratios() -> BarChart:
    ratios = _reported("bench_cell_ratio", "session, estimate", f'{OF_CELL},estimate!="gain"')
    for estimate, name in ENDS.items():
        ratios = f'label_replace({ratios}, "estimate", "{name}", "estimate", "{estimate}")'
    panel = matrix(
        "$headline_title: multi / single in each session, $cell",
        "The ratio of the report with its 95 % interval (below 6 pairs: their range). The line is at 100 %: equal.",
        "percentunit",
        rows(ratios),
        row="session",
        column="estimate",
        limit=1,
        empty=FIRST_BLOCK,
    )
    return in_colours(panel, ("ratio", "interval from", "to"))


def _values() -> BarChart:
    return matrix(
        "$headline_title of single and multi in each session, $cell",
        "Median of the invocations, as in the report. Sessions may differ in more than the topology: see the parameters below.",
        "short",
        rows(_reported("bench_cell_value", "session, topology", f'{OF_CELL},estimate="median"')),
        row="session",
        empty="Not known: no session of this cell has a block that has ended.",
    )


def _numbers() -> Table:
    def ratio(estimate: str) -> tuple[str, str]:
        return _reported("bench_cell_ratio", "session", f'{OF_CELL},estimate="{estimate}"'), "none"

    def value(topology: str, estimate: str) -> tuple[str, str]:
        of_topology = f'{OF_CELL},topology="{topology}",estimate="{estimate}"'
        return _reported("bench_cell_value", "session", of_topology), "short"

    shown = {
        "multi / single": ratio("ratio"),
        "from": ratio("low"),
        "to": ratio("high"),
        "pairs": (_reported("bench_cell_pairs", "session", OF_CELL), "none"),
    }
    for topology in ("single", "multi"):
        names = {"median": topology, "low": f"{topology} from", "high": f"{topology} to"}
        shown |= {name: value(topology, estimate) for estimate, name in names.items()}
    return _by_session(
        "$headline_title with intervals and verdict in each session, $cell",
        "Ratio and medians with their 95 % intervals (below 6 pairs: their range), and the verdict of the session's own report.",
        shown,
        empty=FIRST_BLOCK,
        text=_texts("bench_cell_verdict", "session, verdict", OF_CELL),
    )


def _parameters() -> Table:
    values = f"max by (session, param, value) ({last('bench_cell_param', OF_CELL)})"
    differs = f"count by (param) (count by (param, value) ({values})) > 1"
    return listing(
        "Parameters that differ between the sessions, $cell",
        "Cells have the names of the parameters that differ within a session: others can differ between sessions.",
        "none",
        rows(f"{values} and on (param) ({differs})"),
        steps=columns("param", "session", "value"),
        empty="The cell has the same parameters in each of these sessions.",
    )


def _by_session(title: str, description: str, shown: Columns, *, empty: str, text: str = "") -> Table:
    """Return a table with a row for each session, the oldest first; `text` brings a column with the name of its label."""
    queries = [*([text] if text else []), *(query for query, _ in shown.values())]
    letters = [chr(ord("A") + number) for number in range(len(queries))]
    named = {f"Value #{letter}": name for letter, name in zip(letters[-len(shown) :], shown, strict=True)}
    panel = listing(
        title,
        description,
        "short",
        *map(rows, queries),
        steps=[
            ("filterFieldsByName", {"include": {"pattern": "^(session|verdict|Value.*)$"}}),
            ("joinByField", {"byField": "session", "mode": "outer"}),
            ("organize", {"excludeByName": {"Value #A": True} if text else {}, "renameByName": named}),
            ("sortBy", {"sort": [{"field": "session"}]}),
        ],
        empty=empty,
    )
    for name, (_, unit) in shown.items():
        panel = panel.override_by_name(name, [DynamicConfigValue("unit", unit)])
    return panel.override_by_name("session", [DynamicConfigValue("links", [OVERVIEW])])


def _count(found: str) -> str:
    """The number of texts of each session, which may be 0."""
    return f"(count by (session) ({found}) or 0 * {BEGUN}) and on (session) {BEGUN}"


def _reported(metric: str, by: str, matchers: str) -> str:
    return reported(metric, by, matchers, sessions=SESSIONS)


def _texts(metric: str, by: str, matchers: str) -> str:
    return texts(metric, by, matchers, sessions=SESSIONS)
