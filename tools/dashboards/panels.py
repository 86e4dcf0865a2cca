"""Defines the look of all boards: one data source, a colour per topology, a unit and a description on every panel."""

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
HEADLINE = 'metric="$headline",node="",point=""'  # one value per run: points of a sweep are on the board Experiment
UNITS = {r"/\(s\)$/": "s", r"/\(B\)$/": "bytes", r"/\(B\/s\)$/": "Bps", r"/\(B\/[a-z]+\)$/": "bytes"}
"""Grafana's unit of a series, by the end of the series' name."""

Width = Literal[6, 8, 12, 24]
AnyPanel = TypeVar("AnyPanel", timeseries.Panel, BarChart, stat.Panel, bargauge.Panel, table.Panel)


def board(name: str, title: str, description: str, *, since: str, refresh: str) -> Dashboard:
    """Return an empty board with what all boards have: variables, annotations and links to the others."""
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
    """Return a variable whose values are read from Prometheus."""
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
    """Return an annotation that marks the times in which a series of the session's runs is 1."""
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
    """Return a query for curves; `name` is the legend of each."""
    return Dataquery().datasource(SOURCE).expr(expr).legend_format(name).range()


def at_end(expr: str, name: str = "") -> Dataquery:
    """Return a query for one value per series, at the end of the board's time range."""
    return Dataquery().datasource(SOURCE).expr(expr).legend_format(name).instant()


def rows(expr: str) -> Dataquery:
    """Return a query whose labels become the columns of a table."""
    return at_end(expr).format(PromQueryFormat.TABLE)


def curves(title: str, description: str, unit: str, *queries: Dataquery, width: Width = 12) -> timeseries.Panel:
    """Return a panel of values over time."""
    panel = (
        timeseries.Panel()
        .legend(_legend().calcs(["lastNotNull", "max"]).display_mode(kinds.LegendDisplayMode.TABLE))
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .interval(SCRAPE)  # otherwise Grafana requests fewer points than were scraped, and misses runs of 10 s
        .axis_soft_min(0)
        .fill_opacity(0)
        .line_width(2)
        .show_points(kinds.VisibilityMode.AUTO)
    )
    return in_colour_of_topology(_panel(panel, title, description, unit, queries, width=width))


def matrix(title: str, description: str, unit: str, query: Dataquery, *, row: str) -> BarChart:
    """Return a bar chart with a group per `row` and a bar per topology in it."""
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
    """Return a bar chart with a bar per `row`."""
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
    """Return a panel with one large value per series."""
    panel = (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(kinds.BigValueGraphMode.NONE)
        .color_mode(kinds.BigValueColorMode.NONE)
        .color_scheme(FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL))
    )
    return _panel(panel, title, description, unit, [query], width=width).height(5)


def progress(title: str, description: str, query: Dataquery, *, width: Width = 6) -> bargauge.Panel:
    """Return a bar of the share that is done."""
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
    """Return a table after the transformations in `steps`: their names and options."""
    panel = table.Panel()
    for name, options in steps:
        panel = panel.with_transformation(DataTransformerConfig(id_val=name, options=options))
    return _panel(panel, title, description, unit, queries, width=width)


def in_units_of_names(panel: timeseries.Panel) -> timeseries.Panel:
    """Give each series the unit that its name ends in: (s), (B), (B/s)."""
    for pattern, unit in UNITS.items():
        panel = panel.override_by_regexp(pattern, [DynamicConfigValue("unit", unit)])
    return panel


def in_colour_of_topology(panel: AnyPanel) -> AnyPanel:
    """Give every series that is named after a topology the topology's colour."""
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
