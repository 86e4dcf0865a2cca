"""Defines the look of all boards: one data source, a colour per topology, a dash per node, and words on every panel.

The queries that all boards share are in `tools/dashboards/results.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict, TypeVar, Unpack

from grafana_foundation_sdk.builders import bargauge, common, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.barchart import Panel as BarChart
from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    FieldColor,
    QueryVariable,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Panel,
    Threshold,
    ThresholdsMode,
    VariableHide,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from bench.prometheus.boards import uid
from bench.prometheus.client import SOURCE_UID
from bench.reports.drawing.colours import ALARM, LEVELS, NEUTRAL
from bench.reports.drawing.colours import TOPOLOGIES as COLOURS
from tools.dashboards.results import SESSION, SESSIONS

SOURCE = DataSourceRef(type_val="prometheus", uid=SOURCE_UID)
SCRAPE = "2s"
CAPACITY = "capacity"  # in the name of a curve that is the most another one can reach
DASHES: Mapping[str, Sequence[int]] = {
    "worker-1": (10, 6),
    "worker-2": (2, 5),
    "worker-3": (12, 5, 2, 5),
    CAPACITY: (2, 12),
}
"""The line of each node beside the head's, which is solid, and of a capacity."""

Width = Literal[4, 6, 8, 12, 24]
Step = tuple[str, Mapping[str, object]]
"""The name of a transformation, and its options."""
Built = Builder[Panel]
"""A panel of any kind."""
AnyPanel = TypeVar("AnyPanel", timeseries.Panel, BarChart, stat.Panel, bargauge.Panel, table.Panel, statetimeline.Panel)


def board(name: str, title: str, description: str, *, since: str, refresh: str, several: bool = False) -> Dashboard:
    """Return an empty board with what all boards have: variables, annotations and links to the others.

    `several`: sessions can be chosen, and at first all are. Then nothing is marked over time, and the links to boards of one session
    take no choice with them.
    """
    made = (
        Dashboard(title)
        .uid(uid(name))
        .description(description)
        .tags(["raymeter"])
        .readonly()
        .timezone("browser")
        .time(since, "now")
        .refresh(refresh)
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(
            variable("session", "label_values(bench_run_status, session)", newest_first=True, multiple=several)
        )
        .with_variable(
            variable("experiment", f"label_values(bench_run_status{{{SESSIONS if several else SESSION}}}, experiment)")
        )
        .with_variable(variable("headline", _info("metric_info", 'headline="yes"', "metric"), hidden=True))
        .with_variable(variable("headline_title", _info("metric_info", 'headline="yes"', "title"), hidden=True))
        .with_variable(variable("subject", _info("arm_info", 'role="subject"', "arm"), hidden=True))
        .link(
            DashboardLink("Boards")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["raymeter"])
            .as_dropdown(False)
            .include_vars(not several)
            .keep_time(True)
        )
    )
    if several:
        return made
    for topology, colour in COLOURS.items():
        made = made.annotation(runs_of(topology, colour))
    return made


def _info(metric: str, matcher: str, label: str) -> str:
    return f'label_values(bench_{metric}{{experiment="$experiment",{matcher}}}, {label})'


class Choice(TypedDict, total=False):
    """How a variable is offered."""

    label: str
    newest_first: bool
    every: bool  # the board opens with all of its values
    multiple: bool  # several can be chosen
    hidden: bool


def variable(name: str, query: str, **choice: Unpack[Choice]) -> QueryVariable:
    """Return a variable whose values are read from Prometheus."""
    order = VariableSort.ALPHABETICAL_DESC if choice.get("newest_first") else VariableSort.ALPHABETICAL_ASC
    multiple = choice.get("multiple", False)
    made = (
        QueryVariable(name)
        .label(choice.get("label", name))
        .datasource(SOURCE)
        .query(query)
        .definition(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(order)
        .hide(VariableHide.HIDE_VARIABLE if choice.get("hidden") else VariableHide.DONT_HIDE)
    )
    made = made.include_all(True).all_value(".*") if multiple or choice.get("every") else made
    return made.multi(True) if multiple else made


def runs_of(topology: str, colour: str) -> AnnotationQuery:
    """Return an annotation that marks the time of each run on a topology: one region a run, though a run may be silent for a while."""
    running = f'bench_run_status{{{SESSION},topology="{topology}",status="running"}}'
    expr = f"max by (run, experiment, topology, parameters) (last_over_time({running}[2m])) == 1"
    return (
        AnnotationQuery()
        .name(f"Runs on {topology}")
        .datasource(SOURCE)
        .enable(True)
        .icon_color(colour)
        .target(over_time(expr, "").ref_id("Anno"))
        .expr(expr)
        .step(SCRAPE)
        .title_format("{{run}}")
        .text_format("{{experiment}}, {{parameters}}, on {{topology}}")
        .tag_keys("topology,parameters")
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


class Look(TypedDict, total=False):
    """What most panels can have besides title, description, unit and queries."""

    empty: Required[str]  # what it says without data; begins with UNEXPECTED if every session has data for it
    width: Width
    limit: float | None  # a dashed line at a value that the text states
    alarm_from: float | None  # the colour of alarm from this value on


class Bars(Look, total=False):
    """What a bar chart can have."""

    row: Required[str]  # the label that groups bars
    column: str  # the label with a bar for each of its values in a group


def curves(title: str, description: str, unit: str, *queries: Dataquery, **look: Unpack[Look]) -> timeseries.Panel:
    """Return a panel of values over time, each held until the next."""
    panel = (
        timeseries.Panel()
        .legend(_legend())
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
        .interval(SCRAPE)  # otherwise Grafana requests fewer points than were scraped, and misses runs of 10 s
        .axis_soft_min(0)
        .fill_opacity(0)
        .line_width(2)
        .line_interpolation(kinds.LineInterpolation.STEP_AFTER)
        .show_points(kinds.VisibilityMode.AUTO)
    )
    panel = with_line(panel, look.get("limit"))
    return in_dash_of_node(in_colour_of_topology(_panel(panel, (title, description, unit), queries, look)))


def matrix(title: str, description: str, unit: str, query: Dataquery, **look: Unpack[Bars]) -> BarChart:
    """Return a bar chart with a group per row and a bar per column in it: of topologies, single before multi."""
    row, column = look["row"], look.get("column", "topology")
    panel = (
        BarChart()
        .legend(_legend())
        .show_value(kinds.VisibilityMode.AUTO)
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
        .axis_soft_min(0)
    )
    steps: Sequence[Step] = (
        ("sortBy", {"sort": [{"field": column, "desc": column == "topology"}]}),
        ("sortBy", {"sort": [{"field": row}]}),  # keeps the order of equal rows
        ("groupingToMatrix", {"columnField": column, "rowField": row, "valueField": "Value"}),
    )
    panel = with_line(_transformed(panel, steps), look.get("limit"))
    return in_colour_of_topology(_panel(panel, (title, description, unit), [query], look))


def number(title: str, description: str, unit: str, query: Dataquery, **look: Unpack[Look]) -> stat.Panel:
    """Return a panel with one large value per series."""
    alarm_from = look.get("alarm_from")
    panel = (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(kinds.BigValueGraphMode.NONE)
        .color_mode(kinds.BigValueColorMode.NONE if alarm_from is None else kinds.BigValueColorMode.VALUE)
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .thresholds(_steps(NEUTRAL, alarm_from))
    )
    return _panel(panel, (title, description, unit), [query], look).height(4).span(look.get("width", 6))


def progress(title: str, description: str, query: Dataquery, **look: Unpack[Look]) -> bargauge.Panel:
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
    return _panel(panel, (title, description, "percentunit"), [query], look).height(4).span(look.get("width", 6))


def states(title: str, description: str, query: Dataquery, **look: Unpack[Look]) -> statetimeline.Panel:
    """Return a row per series, with a bar while its value is 1."""
    panel = (
        statetimeline.Panel()
        .legend(_legend().show_legend(False))
        .show_value(kinds.VisibilityMode.NEVER)
        .merge_values(True)
        .interval(SCRAPE)
        .color_scheme(FieldColor().mode(FieldColorModeId.FIXED).fixed_color(NEUTRAL))
    )
    return in_colour_of_topology(_panel(panel, (title, description, "none"), [query], look))


def listing(
    title: str, description: str, unit: str, *queries: Dataquery, steps: Sequence[Step], **look: Unpack[Look]
) -> table.Panel:
    """Return a table after the transformations in `steps`."""
    panel = _panel(_transformed(table.Panel(), steps), (title, description, unit), queries, look)
    return panel.span(look.get("width", 24))


def columns(*shown: str, value: str = "", sort_by: str = "") -> tuple[Step, ...]:
    """Return the transformations to a table with the columns `shown` in this order, and the value under the name `value`."""
    names = {name: position for position, name in enumerate((*shown, "Value"), start=1)}
    hidden = {"Time": True, **({} if value else {"Value": True})}
    named = {"Value": value} if value else {}
    ordered: Step = ("organize", {"excludeByName": hidden, "indexByName": names, "renameByName": named})
    return (("sortBy", {"sort": [{"field": sort_by or shown[0]}]}), ordered)


def in_per_cent(panel: AnyPanel) -> AnyPanel:
    """Give a panel of per cent its whole axis."""
    return panel.min(0).max(100)


def in_colour_of_topology(panel: AnyPanel) -> AnyPanel:
    """Give every series that is named after a topology the topology's colour."""
    for topology, colour in COLOURS.items():
        panel = panel.override_by_regexp(rf"/(^|\W){topology}(\W|$)/", [_colour(colour)])
    return panel


def in_colours(panel: AnyPanel, names: Sequence[str]) -> AnyPanel:
    """Give the series with these names a colour each."""
    for name, colour in zip(names, LEVELS, strict=False):
        panel = panel.override_by_name(name, [_colour(colour)])
    return panel


def in_dash_of_node(panel: timeseries.Panel) -> timeseries.Panel:
    """Give every series that is named after a node, or is a capacity, its kind of line."""
    for name, dash in DASHES.items():
        style = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": list(dash)})
        panel = panel.override_by_regexp(rf"/(^|\W){name}(\W|$)/", [style])
    return panel


PanelWithLine = TypeVar("PanelWithLine", timeseries.Panel, BarChart)


def with_line(panel: PanelWithLine, limit: float | None) -> PanelWithLine:
    """Draw a dashed line at `limit`, in sight whatever the values are."""
    if limit is None:
        return panel
    style = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
    return panel.thresholds(_steps("transparent", limit)).thresholds_style(style).axis_soft_max(1.2 * limit)


def _steps(colour: str, alarm_from: float | None) -> ThresholdsConfig:
    steps = [Threshold(value=None, color=colour)]
    if alarm_from is not None:
        steps.append(Threshold(value=alarm_from, color=ALARM))
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _colour(colour: str) -> DynamicConfigValue:
    return DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def _transformed(panel: AnyPanel, steps: Sequence[Step]) -> AnyPanel:
    for name, options in steps:
        panel = panel.with_transformation(DataTransformerConfig(id_val=name, options=options))
    return panel


def _legend() -> common.VizLegendOptions:
    return (
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(kinds.LegendDisplayMode.LIST)
        .placement(kinds.LegendPlacement.BOTTOM)
    )


def _panel(panel: AnyPanel, texts: tuple[str, str, str], queries: Sequence[Dataquery], look: Look) -> AnyPanel:
    """Give a panel its title, description and unit, queries and size."""
    title, description, unit = texts
    panel = panel.title(title).description(description).unit(unit).no_value(look["empty"])
    panel = panel.datasource(SOURCE).span(look.get("width", 12)).height(8)
    for number, query in enumerate(queries):
        panel = panel.with_target(query.ref_id(chr(ord("A") + number)))
    return panel
