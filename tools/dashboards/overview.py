"""Builds the board Overview: how far the session is, what it says, and what its numbers must not be read without."""

from __future__ import annotations

from grafana_foundation_sdk.builders.barchart import Panel as BarChart
from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from bench.analysis.breakdown.network import NAMES as PARTS
from tools.dashboards.panels import (
    Built,
    at_end,
    board,
    columns,
    in_colours,
    in_per_cent,
    listing,
    matrix,
    number,
    progress,
    rows,
)
from tools.dashboards.results import AROUND, HEADLINE, RUN, SESSION, by_run, last, reported, texts

FIRST_BLOCK = "Not known: the first block has not ended, no block is usable, or there is one topology."
FIRING = f'alertstate="firing",{SESSION}'


def build() -> Dashboard:
    """Build the board."""
    made = (
        board(
            "overview",
            "raymeter 1: Overview",
            "Progress, results and caveats of a session. Results are those of the report, renewed after each block.",
            since="now-1h",
            refresh="10s",
        )
        .with_panel(
            progress(
                "Runs of the session that have ended",
                "Share of all runs of the session, of every status.",
                at_end(
                    f"{reported('bench_session_runs_done', 'session', SESSION)}"
                    f" / {reported('bench_session_runs_wanted', 'session', SESSION)}",
                    "runs",
                ),
                empty="No data: no session was started while Prometheus was there. Start one with `bench run`.",
            )
        )
        .with_panel(
            number(
                "Time left of the session",
                "Estimated when its last run ended. 0 s at the end.",
                "s",
                at_end(reported("bench_session_left_seconds", "session", SESSION), "left"),
                empty="No data: no session was started while Prometheus was there.",
            )
        )
    )
    for panel in (*_gains(), *_warnings()):
        made = made.with_panel(panel)
    made = made.with_panel(_numbers()).with_panel(_by_block()).with_panel(_gap())
    for panel in (*_shares(), *_resources()):
        made = made.with_panel(panel)
    made = made.with_row(Row("Caveats, excluded blocks and alerts"))
    for table in _texts():
        made = made.with_panel(table)
    return made


def _gains() -> list[Built]:
    gain = reported("bench_cell_ratio", "parameters", f'{RUN},estimate="gain"')
    meaning = (
        "Headline of several nodes as a share of what one node with the same CPUs does; of a time, the inverse. 100 %: equal."
        " Higher is better."
    )
    return [
        number(
            f"Multi beside single, {name} cell (100 %: equal)",
            meaning,
            "percentunit",
            at_end(f"{function}({gain})", name),
            empty=FIRST_BLOCK,
        )
        for name, function in (("worst", "min"), ("best", "max"))
    ]


def _warnings() -> list[Built]:
    fired = f"count by (alertname, run, node, arm) ({last('ALERTS', FIRING)})"
    serious = texts("bench_caveat", "severity, about, text", f'{SESSION},severity!="note"')
    sent, payload = (
        reported("bench_cell_used", "parameters, topology", f'{RUN},topology="multi",resource="{resource}"')
        for resource in ("wire bytes", "payload")
    )
    return [
        number(
            "Caveats that weaken or block a verdict",
            "Listed below, with notes. Should be 0.",
            "short",
            at_end(f"count({serious}) or vector(0)", "caveats"),
            empty="0",
            alarm_from=1,
        ),
        number(
            "Blocks excluded for interference",
            "Blocks that other processes disturbed: no value of them is used. Should be 0. If more than 20 % of the blocks are"
            " excluded, there is no verdict.",
            "short",
            at_end(f"count({texts('bench_block_excluded', 'block')}) or vector(0)", "blocks"),
            empty="0",
            alarm_from=1,
        ),
        number(
            "Alerts that fired in the session's runs",
            "Lost nodes, workers killed for want of memory, throttling over 1 %, runs on which record and Prometheus disagree. Listed"
            " below. Should be 0.",
            "short",
            at_end(f"count({fired}) or vector(0)", "alerts"),
            empty="0",
            alarm_from=1,
        ),
        number(
            "Bytes sent by multi for each byte of payload, worst cell",
            "Bytes that all nodes sent, without idle traffic, divided by those that the work itself carries.",
            "none",
            at_end(f"max({sent} / {payload})", "bytes"),
            empty="Not known: the experiment has no payload, or bytes are like idle traffic or not counted.",
        ),
    ]


def _numbers() -> Table:
    def ratio(estimate: str) -> str:
        return reported("bench_cell_ratio", "parameters", f'{RUN},estimate="{estimate}"')

    def median(topology: str) -> str:
        return reported("bench_cell_value", "parameters", f'{RUN},topology="{topology}",estimate="median"')

    def cpu(topology: str) -> str:
        return reported("bench_cell_used", "parameters", f'{RUN},topology="{topology}",resource="CPU time"')

    shown = {
        "multi / single": (ratio("ratio"), "none"),
        "interval from": (ratio("low"), "none"),
        "to": (ratio("high"), "none"),
        "pairs": (reported("bench_cell_pairs", "parameters"), "none"),
        "single": (median("single"), "short"),
        "multi": (median("multi"), "short"),
        "CPU time, single": (cpu("single"), "s"),
        "CPU time, multi": (cpu("multi"), "s"),
    }
    queries = (texts("bench_cell_verdict", "parameters, verdict", RUN), *(query for query, _ in shown.values()))
    named = {f"Value #{chr(ord('B') + number)}": name for number, name in enumerate(shown)}
    panel = listing(
        "$headline_title by cell, as in the report",
        "Medians of the invocations, their ratio with its 95 % interval (below 6 pairs: their range), and CPU time per unit of work.",
        "short",
        *map(rows, queries),
        steps=[
            ("filterFieldsByName", {"include": {"pattern": "^(parameters|verdict|Value.*)$"}}),
            ("joinByField", {"byField": "parameters", "mode": "outer"}),
            (
                "organize",
                {"excludeByName": {"Value #A": True}, "renameByName": {"parameters": "cell", **named}},
            ),
        ],
        empty="The first block of the session has not ended.",
    )
    for name, (_, unit) in shown.items():
        panel = panel.override_by_name(name, [DynamicConfigValue("unit", unit)])
    to_cell = (
        "/d/raymeter-experiment?${session:queryparam}&${experiment:queryparam}&var-cell=${__value.raw:percentencode}"
    )
    link = {"title": "Arms, nodes and curves of this cell", "url": f"{to_cell}&${{__url_time_range}}"}
    return panel.override_by_name("cell", [DynamicConfigValue("links", [link])])


def _by_block() -> BarChart:
    multi, single = (
        by_run("block, parameters", f'{HEADLINE},arm="$subject",topology="{topology}"')
        for topology in ("multi", "single")
    )
    return matrix(
        "$headline_title: multi / single, block by block",
        "Both values are those of a whole run, as in the report. The line is at 100 %: equal. Excluded blocks are shown too.",
        "percentunit",
        rows(f"{multi} / {single}"),
        row="block",
        column="parameters",
        limit=1,
        empty="Empty until a block has a good run on both topologies.",
    )


def _gap() -> BarChart:
    panel = matrix(
        "Where the additional time of multi goes, % of the time of single",
        "Time per unit of work beyond that of one node, in parts that add up to it. Below 0: several nodes need less.",
        "percentunit",
        rows(reported("bench_cell_gap", "parameters, part")),
        row="parameters",
        column="part",
        empty="Not known: the first block has not ended, the session has one topology, or the headline is not a rate or time.",
    )
    return in_colours(panel.stacking(kinds.StackingMode.NORMAL), PARTS)


def _shares() -> list[Built]:
    names = {"peer": "the best peer", "ceiling": "the ceiling of the CPUs"}
    return [
        matrix(
            f"Subject as a share of {name}",
            "Headline of the subject beside that of the arm that did best, on the same nodes and CPUs. The line is at 100 %: equal."
            " Higher is better.",
            "percentunit",
            rows(f"min by (parameters, topology) ({_share(role)})"),
            row="parameters",
            limit=1,
            empty=f"This session has no arm with the role {role}, or its first block has not ended.",
        )
        for role, name in names.items()
    ]


def _share(role: str) -> str:
    return reported("bench_cell_share", "parameters, topology, arm", f'{RUN},role="{role}"')


def _resources() -> list[Built]:
    sent = reported("bench_cell_used", "parameters, topology", f'{RUN},resource="wire bytes"')
    payload = reported("bench_cell_used", "parameters, topology", f'{RUN},resource="payload"')
    used = reported("bench_cell_used", "parameters, topology", f'{RUN},resource="CPU use"')
    return [
        matrix(
            "Bytes sent for each byte of payload",
            "Bytes that all nodes sent, without idle traffic, divided by those that the work itself carries.",
            "none",
            rows(f"{sent} / {payload}"),
            row="parameters",
            empty="Not known: the experiment has no payload, or bytes are like idle traffic or not counted.",
        ),
        in_per_cent(
            matrix(
                "CPU use, % of all CPUs of the topology",
                "Mean over the timed intervals of the subject, of all nodes together.",
                "percent",
                rows(used),
                row="parameters",
                empty="Not counted here, or the first block has not ended.",
            )
        ),
    ]


def _texts() -> list[Table]:
    duration = f"2 * count_over_time(ALERTS{{{FIRING}}}{AROUND})"  # rules are evaluated every 2 s
    return [
        listing(
            "Caveats of the report",
            "Reasons not to trust a number. One that refuses blocks the verdicts of what it is about.",
            "none",
            rows(texts("bench_caveat", "severity, about, text")),
            steps=columns("severity", "about", "text"),
            empty="No caveat, or the first block has not ended.",
        ),
        listing(
            "Excluded blocks",
            "Blocks that other processes disturbed, by what the kernel counted, with the first reason.",
            "none",
            rows(texts("bench_block_excluded", "block, reason")),
            steps=columns("block", "reason"),
            empty="No block is excluded.",
            width=12,
        ),
        listing(
            "Alerts that fired",
            "Each alert rule that held in a run of the session, and for how long.",
            "s",
            rows(f"max by (alertname, run, node, arm) ({duration})"),
            steps=columns("alertname", "run", "node", "arm", value="for", sort_by="run"),
            empty="No alert fired.",
            width=12,
        ),
    ]
