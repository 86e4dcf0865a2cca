"""Builds the board Live run: the run that is in progress, and each sample as it arrives."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from tools.dashboards.panels import at_end, board, curves, number, over_time, progress, states, variable
from tools.dashboards.results import CELL, HEADLINE, RUN, RUNNING, last

NEWEST = f"topk(1, {last('bench_run_begun_timestamp_seconds')})"
_SO_FAR = f"(time() - bench_run_begun_timestamp_seconds{{{RUN}}})"


def build() -> Dashboard:
    """Build the board."""
    return (
        board(
            "live-run",
            "raymeter 2: Live run",
            "The run that is in progress, and each sample as it arrives. No data while an arm is timed without monitoring.",
            since="now-15m",
            refresh="5s",
        )
        .with_variable(variable("cell", f"label_values(bench_run_status{{{RUN}}}, parameters)", every=True))
        .with_panel(
            progress(
                "Progress of the newest run",
                "Share of its work that is done, if the run reports its work; otherwise the present turn as a share of all turns,"
                " including warm-ups.",
                at_end(f"({_work_done()} or {_turns_done()}) and on (session, run) {NEWEST}", "{{run}}"),
                empty="No data: the session has no run yet.",
                width=12,
            )
        )
        .with_panel(
            number(
                "Time left of the present run",
                "Estimated from the work, or otherwise the turns, done since the run began. 0 s if no run is in progress.",
                "s",
                at_end(
                    f"max({_left('bench_run_work_done', 'bench_run_work_wanted')}"
                    f" or {_left('bench_run_turn', 'bench_run_turns_wanted')}) or vector(0)",
                    "left",
                ),
                empty="0 s",
            )
        )
        .with_panel(
            number(
                "Runs of this experiment by status",
                "Each run by its present status or how it ended.",
                "short",
                at_end(
                    f"sum by (status) (max by (run, status) ({last('bench_run_status')})) > 0",
                    "{{status}}",
                ),
                empty="No data: the session has no run yet.",
            )
        )
        .with_panel(
            curves(
                "$headline_title, sample by sample: $cell",
                "Headline of the subject, without warm-ups, in the newest run of each topology. Each value is held until the next"
                " sample. A drift on both topologies is the machine's.",
                "short",
                over_time(_samples(), "{{topology}}"),
                empty="No data: the cell has no sample that counts in this time.",
                width=24,
            )
            .repeat("cell")
            .repeat_direction("h")
            .max_per_row(2)
        )
        .with_panel(
            curves(
                "Samples that the present run has recorded",
                "Of all metrics and arms, with warm-ups. A flat line is a run that makes no progress.",
                "short",
                over_time(
                    f"max by (topology) (bench_run_samples{{{RUN}}} and on (session, run) {RUNNING})", "{{topology}}"
                ),
                empty="No data: no run was in progress in this time.",
            )
        )
        .with_panel(
            states(
                "Phase of the present run",
                "Start-up, warm-up or steady. Only samples of the steady phase count for results.",
                over_time(f"max by (topology, phase) (bench_run_phase{{{RUN}}}) == 1", "{{topology}}: {{phase}}"),
                empty="No data: no run was in progress in this time.",
            )
        )
    )


def _samples() -> str:
    newest = f"topk by (topology) (1, bench_run_begun_timestamp_seconds{{{RUN},{CELL}}})"
    value = f'bench_sample_value{{{RUN},{CELL},{HEADLINE},arm="$subject"}}'
    return f"max by (topology) ({value} and on (session, run) {newest})"


def _turns_done() -> str:
    return f"{last('bench_run_turn')} / {last('bench_run_turns_wanted')}"


def _work_done() -> str:
    return f"{last('bench_run_work_done')} / {last('bench_run_work_wanted')}"


def _left(done: str, wanted: str) -> str:
    more = f"({wanted}{{{RUN}}} - {done}{{{RUN}}})"
    return f"({more} * {_SO_FAR} / ({done}{{{RUN}}} > 0) and on (session, run) {RUNNING})"
