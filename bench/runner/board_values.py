"""Sends what the boards show of a whole session to the exporter of its present cluster: between runs, when nothing is timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench import http_client
from bench.errors import BenchError
from bench.model import Spec
from bench.planning.budget import Limits
from bench.planning.estimate import Pace
from bench.runner.deliver import send_gauges
from bench.runner.run import SessionContext
from bench.targets import Cluster


@dataclass(kw_only=True)
class BoardValues:
    """Knows how far a session is, and sends that with the report so far where a Prometheus looks."""

    context: SessionContext
    todo: Sequence[Spec]
    limits: Limits
    _has_results: bool = field(init=False)
    _pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._pace = Pace(self.todo, self.limits.known)
        self._has_results = len(self.todo) < len(self.context.session.specs)  # of a session that is continued

    def run_ended(self) -> None:
        """Take in that the next run of `todo` has ended."""
        self._pace.ended += 1

    def block_ended(self) -> None:
        """Take in that another block has results."""
        self._has_results = True

    def send(self, cluster: Cluster) -> None:
        """Send all values to a cluster, which may be new and know nothing. The session goes on without boards if that fails.

        Without monitoring there are no boards, and nothing is made for them.
        """
        if cluster.prometheus_url is None:
            return
        from bench.reports import board_gauges

        session = self.context.session
        blocks_left = {spec.block for spec in self.todo[self._pace.ended :]}
        progress = board_gauges.SessionProgress(
            runs_done=len(session.specs) - len(self.todo) + self._pace.ended,
            blocks_done=len({spec.block for spec in session.specs} - blocks_left),
            left_seconds=self._pace.left_seconds,
        )
        report = self.context.so_far.read() if self._has_results else None
        gauges = board_gauges.render(session, progress, report, at=int(time.time()))
        try:
            send_gauges(gauges, session.id, cluster)
        except http_client.RequestException:
            return  # the next run says that the cluster does not respond
        except BenchError as error:
            following = self.todo[min(self._pace.ended, len(self.todo) - 1)]
            self.context.listener.cluster_silent(following, f"the boards are not up to date: {error}")
