"""Sends what the boards show of a whole session to the exporter of its present cluster: between runs, when nothing is timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench import http_client
from bench.errors import BenchError
from bench.model import Spec
from bench.planning.budget import Limits
from bench.planning.estimate import Pace
from bench.record import store
from bench.runner.deliver import send_gauges
from bench.runner.run import SessionContext
from bench.targets import Cluster

if TYPE_CHECKING:
    from bench.analysis import Report


@dataclass(kw_only=True)
class BoardValues:
    """Knows how far a session is, and what its blocks so far say."""

    context: SessionContext
    todo: Sequence[Spec]
    limits: Limits
    _report: Report | None = None
    _pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._pace = Pace(self.todo, self.limits.known)
        if len(self.todo) < len(self.context.session.specs):
            self.block_ended()  # a session that is continued has results already

    def run_ended(self) -> None:
        """Take in that the next run of `todo` has ended."""
        self._pace.ended += 1

    def block_ended(self) -> None:
        """Take in what the blocks so far say."""
        from bench.analysis import build  # heavy: the command line must start at once

        session = self.context.session
        self._report = build(session, store.load_runs(self.context.folder, session))

    def send(self, cluster: Cluster) -> None:
        """Send all values to a cluster, which may be new and know nothing. The session goes on without boards if that fails."""
        from bench.reports import board_gauges

        session = self.context.session
        blocks_left = {spec.block for spec in self.todo[self._pace.ended :]}
        progress = board_gauges.SessionProgress(
            runs_done=len(session.specs) - len(self.todo) + self._pace.ended,
            blocks_done=len({spec.block for spec in session.specs} - blocks_left),
            left_seconds=self._pace.left_seconds,
        )
        gauges = board_gauges.render(session, progress, self._report, at=int(time.time()))
        try:
            send_gauges(gauges, session.id, cluster)
        except http_client.RequestException:
            return  # the next run says that the cluster does not respond
        except BenchError as error:
            following = self.todo[min(self._pace.ended, len(self.todo) - 1)]
            self.context.listener.cluster_silent(following, f"the boards are not up to date: {error}")
