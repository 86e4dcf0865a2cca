"""Live run: how far the session is, and each sample when it comes."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from tools.dashboards.panels import HEADLINE, RUN, at_end, board, curves, number, over_time, progress

OF_RUN = "session, run"
RUNNING = f'(bench_run_status{{{RUN},status="running"}} == 1)'
LAST_BEGUN = f"topk(1, last_over_time(bench_run_begun_timestamp_seconds{{{RUN}}}[$__range]))"


def build() -> Dashboard:
    """The board."""
    return (
        board(
            "live-run",
            "raymeter: Live run",
            "How far the session is, and each sample when it comes. Silent while a run asks not to be watched.",
            since="now-15m",
            refresh="5s",
        )
        .with_panel(
            progress(
                "Done of the newest run",
                "Of the run begun last: work done of the work in hand, where it says so; else the turn that it is in, of all"
                " it will have, warm-ups with them.",
                at_end(f"({_work_done()} or {_turns_done()}) and on ({OF_RUN}) {LAST_BEGUN}", "{{run}}"),
            )
        )
        .with_panel(
            number(
                "Left of the run that goes on",
                "If its work, or else its turns, go on as they did so far. 0 when nothing runs.",
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
                "Rate of the run that goes on",
                "Work done a second since it began, its start too, where it says how much; else turns. 0 when nothing runs.",
                "ops",
                at_end(f"max({_rate('bench_run_work_done')} or {_rate('bench_run_turn')}) or vector(0)", "rate"),
            )
        )
        .with_panel(
            number(
                "Runs by how they stand",
                "Runs of this experiment in the board's time: those that go on, and how the others ended.",
                "short",
                at_end(
                    f"sum by (status) (max by (run, status) ({_last('bench_run_status')}))",
                    "{{status}}",
                ),
            )
        )
        .with_panel(
            curves(
                "$headline, sample by sample",
                "The headline of every arm, each value until the next one comes. Warm-ups are left out.",
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
                "Samples recorded",
                "All samples of each run, of every metric and arm. A line that stays flat is a run that does not go on.",
                "short",
                over_time(f"max by (run) (bench_run_samples{{{RUN}}})", "{{run}}"),
            )
        )
        .with_panel(
            curves(
                "Phase",
                "1 while a run is in this phase. Start-up and warm-up do not count in any number but their own.",
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
