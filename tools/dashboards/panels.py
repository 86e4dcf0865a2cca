"""How every board looks: one data source, one colour a topology, a unit and a description on every panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, stat, table, timeseries
from grafana_foundation_sdk.builders.barchart import Panel as BarChart
from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    FieldColor,
    QueryVariable,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    VariableHide,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from bench.prometheus.boards import uid
from bench.prometheus.client import SOURCE_UID
from bench.reports.drawing.colours import NEUTRAL
from bench.reports.drawing.colours import TOPOLOGIES as COLOURS

SOURCE = DataSourceRef(type_val="prometheus", uid=SOURCE_UID)
SCRAPE = "2s"

RUN = 'session="$session",experiment="$experiment"'
HEADLINE = 'metric="$headline",node="",point=""'  # one figure a run: the points of a sweep are on the board Experiment
UNITS = {r"/\(s\)$/": "s", r"/\(B\)$/": "bytes", r"/\(B\/s\)$/": "Bps", r"/\(B\/[a-z]+\)$/": "bytes"}
"""Grafana's unit for a series whose name ends in ours."""

Width = Literal[6, 8, 12, 24]
AnyPanel = TypeVar("AnyPanel", timeseries.Panel, BarChart, stat.Panel, bargauge.Panel, table.Panel)


def board(name: str, title: str, description: str, *, since: str, refresh: str) -> Dashboard:
    """An empty board with what all of them have: variables, annotations, links to the others."""
    return (
        Dashboard(title)
        .uid(uid(name))
        .description(description)
        .tags(["raymeter"])
        .readonly()
        .timezone("browser")
        .time(since, "now")
        .refresh(refresh)
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(variable("session", "label_values(bench_run_status, session)", newest_first=True))
        .with_variable(variable("experiment", 'label_values(bench_run_status{session="$session"}, experiment)'))
        .with_variable(variable("headline", _info("metric_info", 'headline="yes"', "metric"), hidden=True))
        .with_variable(variable("subject", _info("arm_info", 'role="subject"', "arm"), hidden=True))
        .annotation(annotation("Runs", "bench_run_status", 'status="running"', title="{{run}}"))
        .annotation(annotation("Phases", "bench_run_phase", 'phase!=""', title="{{phase}}", shown=False))
        .link(
            DashboardLink("Boards")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["raymeter"])
            .as_dropdown(False)
            .include_vars(True)
            .keep_time(True)
        )
    )


def _info(metric: str, matcher: str, label: str) -> str:
    return f'label_values(bench_{metric}{{experiment="$experiment",{matcher}}}, {label})'


def variable(
    name: str, query: str, *, newest_first: bool = False, multiple: bool = False, hidden: bool = False
) -> QueryVariable:
    """A choice that Prometheus offers."""
    made = (
        QueryVariable(name)
        .label(name)
        .datasource(SOURCE)
        .query(query)
        .definition(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_DESC if newest_first else VariableSort.ALPHABETICAL_ASC)
        .hide(VariableHide.HIDE_VARIABLE if hidden else VariableHide.DONT_HIDE)
    )
    return made.multi(True).include_all(True).all_value(".*") if multiple else made


def annotation(name: str, metric: str, matcher: str, *, title: str, shown: bool = True) -> AnnotationQuery:
    """A span for as long as a series of the session's runs is 1."""
    by = "run, experiment, topology, cell, phase"  # no phase in a status: it does no harm
    return (
        AnnotationQuery()
        .name(name)
        .datasource(SOURCE)
        .enable(shown)
        .icon_color(NEUTRAL)
        .expr(f'max by ({by}) ({metric}{{session="$session",{matcher}}}) == 1')
        .step(SCRAPE)
        .title_format(title)
        .text_format("{{experiment}} {{cell}} on {{topology}}")
        .tag_keys("topology,cell")
    )


def over_time(expr: str, name: str) -> Dataquery:
    """A query for a curve, and the name of each."""
    return Dataquery().datasource(SOURCE).expr(expr).legend_format(name).range()


def at_end(expr: str, name: str = "") -> Dataquery:
    """A query for one value a series: what it is at the end of the board's time."""
    return Dataquery().datasource(SOURCE).expr(expr).legend_format(name).instant()


def rows(expr: str) -> Dataquery:
    """A query whose labels become columns."""
    return at_end(expr).format(PromQueryFormat.TABLE)


def curves(title: str, description: str, unit: str, *queries: Dataquery, width: Width = 12) -> timeseries.Panel:
    """Values over time."""
    panel = (
        timeseries.Panel()
        .legend(_legend().calcs(["lastNotNull", "max"]).display_mode(kinds.LegendDisplayMode.TABLE))
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .interval(SCRAPE)  # or Grafana asks for fewer points than were scraped, and a run of 10 s is lost between them
        .axis_soft_min(0)
        .fill_opacity(0)
        .line_width(2)
        .show_points(kinds.VisibilityMode.AUTO)
    )
    return in_colour_of_topology(_panel(panel, title, description, unit, queries, width=width))


def matrix(title: str, description: str, unit: str, query: Dataquery, *, row: str) -> BarChart:
    """Bars side by side: a group a `row`, in it a bar a topology."""
    to_matrix = {"columnField": "topology", "rowField": row, "valueField": "Value"}
    panel = (
        BarChart()
        .legend(_legend())
        .show_value(kinds.VisibilityMode.AUTO)
        .color_scheme(FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL))
        .axis_soft_min(0)
        .with_transformation(DataTransformerConfig(id_val="groupingToMatrix", options=to_matrix))
    )
    return in_colour_of_topology(_panel(panel, title, description, unit, [query], width=12))


def bars(title: str, description: str, unit: str, query: Dataquery, *, row: str, width: Width = 12) -> BarChart:
    """A bar a `row`."""
    panel = (
        BarChart()
        .x_field(row)
        .legend(_legend().show_legend(False))
        .show_value(kinds.VisibilityMode.AUTO)
        .color_scheme(FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL))
        .axis_soft_min(0)
    )
    return _panel(panel, title, description, unit, [query], width=width)


def number(title: str, description: str, unit: str, query: Dataquery, *, width: Width = 6) -> stat.Panel:
    """A value a series, large."""
    panel = (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(kinds.BigValueGraphMode.NONE)
        .color_mode(kinds.BigValueColorMode.NONE)
        .color_scheme(FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL))
    )
    return _panel(panel, title, description, unit, [query], width=width).height(5)


def progress(title: str, description: str, query: Dataquery, *, width: Width = 6) -> bargauge.Panel:
    """How much of a whole is done."""
    panel = (
        bargauge.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .display_mode(kinds.BarGaugeDisplayMode.BASIC)
        .orientation(kinds.VizOrientation.HORIZONTAL)
        .color_scheme(FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL))
        .min(0)
        .max(1)
    )
    return _panel(panel, title, description, "percentunit", [query], width=width).height(5)


def listing(
    title: str,
    description: str,
    unit: str,
    *queries: Dataquery,
    steps: Sequence[tuple[str, Mapping[str, object]]],
    width: Width = 24,
) -> table.Panel:
    """A table, after `steps`: transformations by their names, and what each is told."""
    panel = table.Panel()
    for name, options in steps:
        panel = panel.with_transformation(DataTransformerConfig(id_val=name, options=options))
    return _panel(panel, title, description, unit, queries, width=width)


def in_units_of_names(panel: timeseries.Panel) -> timeseries.Panel:
    """Each series in the unit that its name ends in: (s), (B), (B/s)."""
    for pattern, unit in UNITS.items():
        panel = panel.override_by_regexp(pattern, [DynamicConfigValue("unit", unit)])
    return panel


def in_colour_of_topology(panel: AnyPanel) -> AnyPanel:
    """Whatever is named after a topology has its colour."""
    for topology, colour in COLOURS.items():
        fixed = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
        panel = panel.override_by_regexp(rf"/(^|\W){topology}(\W|$)/", [fixed])
    return panel


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(kinds.LegendDisplayMode.LIST)
        .placement(kinds.LegendPlacement.BOTTOM)
    )


def _panel(
    panel: AnyPanel, title: str, description: str, unit: str, queries: Sequence[Dataquery], *, width: Width
) -> AnyPanel:
    panel = panel.title(title).description(description).unit(unit).datasource(SOURCE).span(width).height(8)
    for number, query in enumerate(queries):
        panel = panel.with_target(query.ref_id(chr(ord("A") + number)))
    return panel
