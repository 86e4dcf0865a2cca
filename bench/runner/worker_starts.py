"""Ends a run whose cluster cannot start workers: Ray waits a minute for each of them, and retries without end."""

from __future__ import annotations

from dataclasses import dataclass

from bench.errors import TargetFailed
from bench.runner.collect import Collector
from bench.targets import Target


@dataclass(frozen=True)
class WorkerStarts:
    """The failed worker starts of one run, without those from before it began."""

    target: Target
    collector: Collector
    before: str

    def failed(self) -> str:
        """Return why workers did not start, as the raylets report it; empty if all did."""
        reason = self.target.failed_starts()
        return "" if reason == self.before else reason

    def check(self) -> None:
        """Raise TargetFailed if workers did not start and the run has recorded nothing yet, so that it waits for them."""
        if not self.collector.offset and (reason := self.failed()):
            raise TargetFailed(f"The cluster cannot start workers: {reason}.", "Correct that, then `bench resume`.")
