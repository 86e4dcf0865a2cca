"""The boards: what is committed is what the code makes, and every panel asks for metrics that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_up_boards import board_session
from prometheus_client.parser import text_string_to_metric_families
from repository import ROOT

from bench.cluster.metrics_page import MetricsPage
from bench.errors import RecordDamaged
from bench.package_data import GRAFANA
from bench.prometheus import boards as committed_boards
from bench.prometheus import run_view
from bench.prometheus.board_queries import OF_PROMETHEUS, fill, metric_names, other_expressions, queries, variables
from bench.prometheus.board_queries import panels as panels_of
from tools import dashboards, write_dashboards
from tools.dashboards import panels

RAY_PAGE = (ROOT / "tests/unit/golden/ray-2.60.0-head-metrics.txt").read_text()
OF_ITSELF = frozenset({"process_cpu_seconds_total", "process_resident_memory_bytes"})  # Prometheus' page of its own
AFTER_AN_EVENT = frozenset({"ray_memory_manager_worker_eviction_total"})  # Ray has it once it has killed a worker
BOARDS = committed_boards.load()
PANELS = [(name, panel) for name, board in BOARDS.items() for panel in panels_of(board)]


def names_on(page: str) -> frozenset[str]:
    return frozenset(sample.name for family in text_string_to_metric_families(page) for sample in family.samples)


@pytest.fixture(scope="module")
def exporter_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    records = tmp_path_factory.mktemp("records")
    board_session().write_block(records, 3)
    return MetricsPage(records).text().decode()


def unknown_metrics(*pages: str) -> list[str]:
    """Each question that names a metric which no page has: the panel and the metric."""
    known = frozenset().union(OF_PROMETHEUS, OF_ITSELF, *map(names_on, pages))
    return [
        f"{query}: {name}"
        for board in BOARDS.values()
        for query in (*queries(board), *other_expressions(board))
        for name in query.metrics
        if name not in known
    ]


def values_of(tree: Any, key: str) -> list[Any]:
    if isinstance(tree, Mapping):
        return [each for name, value in tree.items() for each in ([value] if name == key else values_of(value, key))]
    return [each for value in tree for each in values_of(value, key)] if isinstance(tree, list) else []


def test_the_committed_boards_are_what_the_code_makes() -> None:
    committed = {path.name: path.read_text() for path in committed_boards.FOLDER.glob("*.json")}
    assert committed == dashboards.generate()


def test_the_command_says_which_board_has_drifted_and_writes_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed_boards, "FOLDER", tmp_path)
    write_dashboards.command()
    write_dashboards.command(check=True)
    (tmp_path / "live-run.json").write_text("{}")
    (tmp_path / "of-yesterday.json").write_text("{}")
    with pytest.raises(RecordDamaged, match=r"live-run\.json, of-yesterday\.json"):
        write_dashboards.command(check=True)
    write_dashboards.command()
    write_dashboards.command(check=True)
    assert not (tmp_path / "of-yesterday.json").exists()


def test_every_question_names_metrics_that_ray_or_the_exporter_have(exporter_page: str) -> None:
    assert unknown_metrics(RAY_PAGE, exporter_page) == []


@pytest.mark.parametrize(
    ("metric", "panel"),
    [
        ("ray_object_store_used_memory", "3: Nodes and network / Object store in use by node, % of its size"),
        ("bench_run_turns_wanted", "2: Live run / Progress of the newest run"),
        ("bench_run_status", "2: Live run / annotation Runs on multi"),
        ("bench_cell_gap", "1: Overview / Where the additional time of multi goes, % of the time of single"),
        ("ray_node_cpu_count", "3: Nodes and network / variable instance"),
    ],
)
def test_a_metric_that_was_renamed_is_found_with_its_panel(exporter_page: str, metric: str, panel: str) -> None:
    pages = [re.sub(rf"\b{metric}\b", f"{metric}_renamed", page) for page in (RAY_PAGE, exporter_page)]
    assert f"raymeter {panel}: {metric}" in unknown_metrics(*pages)


def test_every_alert_rule_names_metrics_that_there_are(exporter_page: str) -> None:
    known = names_on(RAY_PAGE) | names_on(exporter_page) | AFTER_AN_EVENT
    assert {name for rule in run_view.rules() for name in metric_names(rule.expr)} <= known


@pytest.mark.parametrize(
    ("expr", "names"),
    [
        ("up == 0", ("up",)),
        (
            'sum by (ray_node) (rate(a_total{ray_x="b_c"}[$__rate_interval])) / on (d) group_left (e) f_g',
            ("a_total", "f_g"),
        ),
        ("topk(1, last_over_time(a_b[5m])) or vector(0)", ("a_b",)),
        ("(time() - a offset 30s) > 0 and on (x) (b == 1)", ("a", "b")),
        ('count(ALERTS{alertstate="firing"})', ("ALERTS",)),
    ],
)
def test_metric_names_are_told_from_labels_functions_and_words(expr: str, names: tuple[str, ...]) -> None:
    assert metric_names(expr) == names


def test_every_data_source_is_the_provisioned_one() -> None:
    file = GRAFANA / "provisioning/datasources/prometheus.yaml"
    (source,) = yaml.safe_load(file.read_text())["datasources"]
    assert source["uid"] == panels.SOURCE_UID
    for name, board in BOARDS.items():
        found = [
            each for each in values_of(board, "datasource") if each != {"type": "prometheus", "uid": source["uid"]}
        ]
        assert found == [], name


def test_uids_and_titles_are_fixed_and_differ() -> None:
    assert {name: board["uid"] for name, board in BOARDS.items()} == {
        "experiment": "raymeter-experiment",
        "live-run": "raymeter-live-run",
        "nodes-and-network": "raymeter-nodes-and-network",
        "overview": "raymeter-overview",
        "sessions": "raymeter-sessions",
    }
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)


@pytest.mark.parametrize(
    ("name", "panel"), PANELS, ids=lambda value: value if isinstance(value, str) else value["title"]
)
def test_every_panel_has_a_title_a_unit_and_a_description(name: str, panel: Mapping[str, Any]) -> None:
    assert panel["title"]
    assert len(panel["description"]) > 20
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["targets"]


def test_panels_of_a_board_have_titles_of_their_own_and_do_not_overlap() -> None:
    for name, board in BOARDS.items():
        cells = [
            (x, y)
            for panel in board["panels"]
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]
        assert len(cells) == len(set(cells)), name
        assert max(x for x, _ in cells) < 24, name


def test_a_topology_has_the_same_colour_on_every_panel_that_names_it() -> None:
    colours: dict[str, set[str]] = {topology: set() for topology in panels.COLOURS}
    for _, panel in PANELS:
        for override in panel["fieldConfig"]["overrides"]:
            for topology, seen in colours.items():
                if topology in str(override["matcher"]["options"]):
                    seen |= {each["value"]["fixedColor"] for each in override["properties"] if each["id"] == "color"}
    assert colours == {topology: {colour} for topology, colour in panels.COLOURS.items()}


@pytest.mark.parametrize("name", sorted(BOARDS.keys() - {"sessions"}))
def test_runs_are_marked_from_prometheus_itself(name: str) -> None:
    marks = {each["name"]: each for each in BOARDS[name]["annotations"]["list"]}
    assert set(marks) == {"Runs on single", "Runs on multi"}
    for topology, colour in panels.COLOURS.items():
        mark = marks[f"Runs on {topology}"]
        assert mark["iconColor"] == colour
        assert f'bench_run_status{{session="$session",topology="{topology}"' in mark["expr"]
        assert mark["target"]["expr"] == mark["expr"]


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_lets_session_and_experiment_be_chosen_and_leads_to_the_others(name: str) -> None:
    board = BOARDS[name]
    assert [each["name"] for each in board["templating"]["list"][:2]] == ["session", "experiment"]
    (link,) = board["links"]
    assert (link["type"], link["tags"], link["includeVars"], link["keepTime"]) == (
        "dashboards",
        ["raymeter"],
        name != "sessions",  # the others show one, and could not take several
        True,
    )
    assert "raymeter" in board["tags"]


def test_the_board_of_several_sessions_opens_with_all_and_takes_those_that_are_chosen() -> None:
    board = BOARDS["sessions"]
    (session,) = [each for each in board["templating"]["list"] if each["name"] == "session"]
    assert (session["multi"], session["includeAll"], session["allValue"]) == (True, True, ".*")
    assert board["annotations"].get("list", []) == []
    for query in other_expressions(board):
        assert 'session="$session"' not in query.expr
    for query in queries(board):
        selectors = re.findall(r"\{[^}]*\}", query.expr)
        assert [each for each in selectors if 'session=~"$session"' not in each] == []
    for name in BOARDS.keys() - {"sessions"}:
        assert not [
            each for each in BOARDS[name]["templating"]["list"] if each["name"] == "session" and each.get("multi")
        ]


def test_a_session_in_a_table_of_several_leads_to_its_overview() -> None:
    tables = [panel for panel in panels_of(BOARDS["sessions"]) if "joinByField" in json.dumps(panel)]
    assert len(tables) == 2
    for table in tables:
        (link,) = values_of(table["fieldConfig"]["overrides"], "value")[-1]
        assert link["url"].startswith(f"/d/{BOARDS['overview']['uid']}?var-session=${{__value.raw:percentencode}}&")


def test_a_board_is_opened_at_the_newest_session_and_what_was_chosen_stays() -> None:
    offered = {
        "session": ("20260101-a", "20260102-b"),
        "experiment": ("inference",),
        "metric": ("m",),
        "title": ("m (s)",),
        "choice": ("01 m (s)",),
        "arm": ("ray",),
        "parameters": ("batch=1", "batch=10"),
    }
    asked = []

    def label_values(label: str, selector: str) -> tuple[str, ...]:
        asked.append(selector)
        return offered[label]

    found = variables(BOARDS["experiment"], label_values, {})
    assert found["session"] == "20260102-b"
    assert found["cell"] == "batch=1"
    assert 'bench_run_status{session="20260102-b"}' in asked
    assert variables(BOARDS["experiment"], label_values, {"session": "20260101-a"})["session"] == "20260101-a"


@pytest.mark.parametrize(
    ("name", "panel"), PANELS, ids=lambda value: value if isinstance(value, str) else value["title"]
)
def test_no_variable_of_a_question_is_left_open(name: str, panel: Mapping[str, Any]) -> None:
    known = {each["name"]: "x" for each in BOARDS[name]["templating"]["list"]}
    for target in panel["targets"]:
        assert "$" not in fill(target["expr"], known)


def test_a_link_leads_to_a_board_at_the_time_of_a_run() -> None:
    link = committed_boards.link(
        "http://127.0.0.1:3000/", "live-run", "s1", experiment="inference", begin=1.5, end=11.5
    )
    following = committed_boards.link(
        "http://127.0.0.1:3000", "live-run", "s1", experiment="inference", begin=1.5, end=None
    )
    assert following.endswith("&from=1500&to=now")
    assert link == (
        "http://127.0.0.1:3000/d/raymeter-live-run?var-session=s1&var-experiment=inference&from=1500&to=11500"
    )
    several = committed_boards.link(
        "http://127.0.0.1:3000", "sessions", "s1", "s2", experiment="inference", begin=1.5, end=None
    )
    assert several.endswith(
        "/d/raymeter-sessions?var-session=s1&var-session=s2&var-experiment=inference&from=1500&to=now"
    )


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_fits_into_a_config_map_that_is_applied_by_a_client(name: str) -> None:
    assert len(json.dumps(BOARDS[name], indent=2)) < 262_144


def test_boards_are_numbered_in_the_order_in_which_they_are_read() -> None:
    titles = [BOARDS[name]["title"] for name in committed_boards.NAMES]
    assert [title.partition(":")[0] for title in titles] == [f"raymeter {number}" for number in range(1, 6)]
    assert titles[0] == "raymeter 1: Overview"


@pytest.mark.parametrize(
    ("name", "panel"), PANELS, ids=lambda value: value if isinstance(value, str) else value["title"]
)
class TestAPanel:
    def test_says_why_it_shows_nothing(self, name: str, panel: Mapping[str, Any]) -> None:
        assert panel["fieldConfig"]["defaults"]["noValue"]

    def test_has_a_title_in_words(self, name: str, panel: Mapping[str, Any]) -> None:
        words = re.sub(r"\$\w+", "", panel["title"])
        assert "_" not in words
        assert len(panel["title"]) > 10

    def test_has_a_legend_that_is_a_list(self, name: str, panel: Mapping[str, Any]) -> None:
        legend = panel.get("options", {}).get("legend")
        assert legend is None or legend["displayMode"] == "list"

    def test_draws_a_line_where_its_text_names_one(self, name: str, panel: Mapping[str, Any]) -> None:
        drawn = panel["fieldConfig"]["defaults"].get("custom", {}).get("thresholdsStyle", {}).get("mode") == "dashed"
        assert drawn == bool(re.search(r"[Tt]he line\b", panel["description"]))
        if drawn:
            (_, limit) = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            assert limit["value"] in (0.01, 1)

    def test_has_the_whole_axis_if_it_shows_cpu_use_of_nodes(self, name: str, panel: Mapping[str, Any]) -> None:
        defaults = panel["fieldConfig"]["defaults"]
        if "CPU use" in panel["title"] and "one CPU" not in panel["title"]:
            assert (defaults["min"], defaults["max"]) == (0, 100)

    def test_holds_each_value_until_the_next(self, name: str, panel: Mapping[str, Any]) -> None:
        if panel["type"] == "timeseries":
            assert panel["fieldConfig"]["defaults"]["custom"]["lineInterpolation"] == "stepAfter"

    def test_reads_results_of_any_time(self, name: str, panel: Mapping[str, Any]) -> None:
        assert not [target for target in panel["targets"] if "$__range" in target["expr"]]

    def test_is_repeated_if_the_board_opens_with_all_cells(self, name: str, panel: Mapping[str, Any]) -> None:
        opens_with_all = {each["name"] for each in BOARDS[name]["templating"]["list"] if each.get("includeAll")}
        if "cell" in opens_with_all:
            asks = any("$cell" in target["expr"] for target in panel["targets"])
            assert (panel.get("repeat") == "cell") == asks


@pytest.mark.parametrize("name", BOARDS)
def test_panels_side_by_side_are_equally_high(name: str) -> None:
    heights: dict[int, set[int]] = {}
    for panel in BOARDS[name]["panels"]:
        heights.setdefault(panel["gridPos"]["y"], set()).add(panel["gridPos"]["h"])
    assert {y: high for y, high in heights.items() if len(high) > 1} == {}


def test_the_overview_opens_with_two_rows_of_answers() -> None:
    first = sorted(panels_of(BOARDS["overview"]), key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"]))
    assert [panel["type"] for panel in first[:9]] == ["bargauge", *7 * ["stat"], "table"]
    alarms = [panel for panel in first[:9] if panel["options"].get("colorMode") == "value"]
    assert [panel["title"].split()[0] for panel in alarms] == ["Caveats", "Blocks", "Alerts"]
    for panel in alarms:
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1]["value"] == 1
