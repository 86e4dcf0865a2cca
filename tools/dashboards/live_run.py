"""Builds the board Live run: the progress of the session, and each sample as it arrives."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from tools.dashboards.panels import HEADLINE, RUN, at_end, board, curves, number, over_time, progress

OF_RUN = "session, run"
RUNNING = f'(bench_run_status{{{RUN},status="running"}} == 1)'
LAST_BEGUN = f"topk(1, last_over_time(bench_run_begun_timestamp_seconds{{{RUN}}}[$__range]))"


def build() -> Dashboard:
    """Build the board."""
    return (
        board(
            "live-run",
            "raymeter: Live run",
            "Progress of the session, and each sample as it arrives. No data while a run measures without monitoring.",
            since="now-15m",
            refresh="5s",
        )
        .with_panel(
            progress(
                "Progress of the newest run",
                "Share of its work that is done, if the run reports its work; otherwise the present turn as a share of all turns,"
                " including warm-ups.",
                at_end(f"({_work_done()} or {_turns_done()}) and on ({OF_RUN}) {LAST_BEGUN}", "{{run}}"),
            )
        )
        .with_panel(
            number(
                "Time left of the present run",
                "Estimated from the work, or otherwise the turns, done since the run began. 0 if no run is in progress.",
                "s",
                at_end(
                    f"max({_left('bench_run_work_done', 'bench_run_work_wanted')}"
                    f" or {_left('bench_run_turn', 'bench_run_turns_wanted')}) or vector(0)",
                    "left",
                ),
            )
        )
        .with_panel(
            number(
                "Speed of the present run, per second",
                "Work done per second since the run began, including its start, if the run reports its work; otherwise turns. 0 if none.",
                "ops",
                at_end(f"max({_rate('bench_run_work_done')} or {_rate('bench_run_turn')}) or vector(0)", "rate"),
            )
        )
        .with_panel(
            number(
                "Runs by status",
                "Runs of this experiment in the dashboard's time range, by their present status or how they ended.",
                "short",
                at_end(
                    f"sum by (status) (max by (run, status) ({_last('bench_run_status')}))",
                    "{{status}}",
                ),
            )
        )
        .with_panel(
            curves(
                "$headline of every sample",
                "Headline metric of every arm, without warm-ups. Each value is held until the next sample.",
                "short",
                over_time(
                    f"max by (topology, arm, cell) (bench_sample_value{{{RUN},{HEADLINE}}})",
                    "{{topology}} {{cell}} {{arm}}",
                ),
                width=24,
            )
        )
        .with_panel(
            curves(
                "Samples recorded by run",
                "All samples of each run, of every metric and arm. A flat line is a run that makes no progress.",
                "short",
                over_time(f"max by (run) (bench_run_samples{{{RUN}}})", "{{run}}"),
            )
        )
        .with_panel(
            curves(
                "Phase of the run",
                "1 while a run is in the phase: start-up, warm-up or steady. Only the steady phase counts for results.",
                "short",
                over_time(f"max by (phase, topology) (bench_run_phase{{{RUN}}})", "{{phase}} on {{topology}}"),
            )
        )
    )


def _last(metric: str) -> str:
    return f"last_over_time({metric}{{{RUN}}}[$__range])"


def _turns_done() -> str:
    return f"{_last('bench_run_turn')} / {_last('bench_run_turns_wanted')}"


def _work_done() -> str:
    return f"{_last('bench_run_work_done')} / {_last('bench_run_work_wanted')}"


_SO_FAR = f"(time() - bench_run_begun_timestamp_seconds{{{RUN}}})"


def _left(done: str, wanted: str) -> str:
    more = f"({wanted}{{{RUN}}} - {done}{{{RUN}}})"
    return f"({more} * {_SO_FAR} / ({done}{{{RUN}}} > 0) and on ({OF_RUN}) {RUNNING})"


def _rate(done: str) -> str:
    return f"({done}{{{RUN}}} / {_SO_FAR} and on ({OF_RUN}) {RUNNING})"
