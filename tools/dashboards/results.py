"""Writes the queries that boards share: what the report says of a session, and what its runs measured.

Results are read around the time that a board shows, so that they do not change with the part of it that is in sight.
"""

from __future__ import annotations

from bench.prometheus.session_gauges import SENT

AROUND = "[60d] offset -30d"  # from 30 days before to 30 days after; matchers bind it to one session
SESSION = 'session="$session"'
SESSIONS = 'session=~"$session"'  # on a board where several can be chosen
RUN = f'{SESSION},experiment="$experiment"'
CELL = 'parameters=~"$cell"'
HEADLINE = 'metric="$headline",node="",point=""'


def last(metric: str, matchers: str = RUN) -> str:
    """The last value of each series, of whatever time."""
    return f"last_over_time({metric}{{{matchers}}}{AROUND})"


RUNNING = f'(max by (session, run) (bench_run_status{{{RUN},status="running"}}) == 1)'
"""The run that is in progress: one at most."""
_OF_OK = last("bench_run_status", f'{RUN},status="ok"')
OK = f"(max by (session, run) ({_OF_OK}) == 1)"
"""The runs whose values are used."""


def _newest(sessions: str) -> str:
    """When the values of each session were sent last."""
    return f"max by (session) ({last(SENT, sessions)})"


def reported(metric: str, by: str, matchers: str = RUN, *, sessions: str = SESSION) -> str:
    """The newest values of a family that the client sent, from the page that it sent them to last."""
    page = f"{last(SENT, sessions)} == on (session) group_left () {_newest(sessions)}"
    return f"max by ({by}) ({last(metric, matchers)} and on (session, cluster, instance) ({page}))"


def texts(metric: str, by: str, matchers: str = SESSION, *, sessions: str = SESSION) -> str:
    """The texts of a family that still hold: the value of each is the time at which it was sent."""
    return f"max by ({by}) ({last(metric, matchers)} == on (session) group_left () {_newest(sessions)})"


def by_run(by: str, matchers: str) -> str:
    """The values of runs that are ok."""
    return f"max by ({by}) ({last('bench_run_value', f'{RUN},{matchers}')} and on (session, run) {OK})"


def median(by: str, matchers: str) -> str:
    """The median of the runs that the report uses: those that are ok, of blocks that are not excluded."""
    every = ", ".join(dict.fromkeys(("session", "run", "block", *by.split(", "))))
    excluded = texts("bench_block_excluded", "session, block")
    return f"quantile by ({by}) (0.5, {by_run(every, matchers)} unless on (session, block) {excluded})"
