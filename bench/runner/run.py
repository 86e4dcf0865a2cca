"""Runs one Spec on a cluster: submits its job, transfers its record line by line, and closes it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import msgspec

from bench import http_client
from bench.cluster import clock_skew
from bench.data import seeded
from bench.errors import AuthFailed, BenchError, RecordDamaged, TargetFailed
from bench.model import Extract, Line, QuietCheck, Run, RunResult, Sample, Session, Spec, Status, Topology
from bench.prometheus import extract, reconcile, run_view
from bench.record import line_format, store
from bench.runner.collect import Collector
from bench.runner.deliver import deliver, send_done_work
from bench.runner.interrupts import Stop
from bench.runner.jobs_api import ENDED, JobsApi
from bench.runner.report_so_far import ReportSoFar
from bench.runner.worker_starts import WorkerStarts
from bench.targets import Cluster, Target

POLL_SECONDS = 0.5
STATUS_SECONDS = 5.0
UNASKED = "TasksNotAsked"  # named like an alert rule
GRACE_SECONDS = 20.0  # for fetching the last lines of a job that has ended or was stopped
# After this time without a response from head and exporter the user is told, and the target is asked whether they run.
SILENT_SECONDS = 30.0


class Listener(Protocol):
    """Is called as a session proceeds."""

    def host_is_busy(self, block: int, what: str) -> None: ...

    def cluster_wanted(self, topology: Topology, block: int) -> None: ...

    def cluster_step_started(self, doing: str) -> None: ...

    def cluster_step_finished(self, done: str, seconds: float) -> None: ...

    def dashboards_ready(self, link: str) -> None: ...

    def run_begun(self, spec: Spec) -> None: ...

    def line_came(self, spec: Spec, line: Line) -> None: ...

    def cluster_silent(self, spec: Spec, what: str) -> None: ...

    def run_ended(self, spec: Spec, result: RunResult) -> None: ...

    def block_ended(self, block: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class SessionContext:
    """What all runs of a session have in common: folder, session, target, listener, stop request and report so far."""

    folder: Path
    session: Session
    target: Target
    listener: Listener
    stop: Stop
    so_far: ReportSoFar

    @cached_property
    def digests(self) -> dict[str, str]:
        """The checksums that the good runs so far agree on. Each run adds its own."""
        return known_digests(store.load_runs(self.folder, self.session))


def known_digests(runs: list[Run]) -> dict[str, str]:
    """Return the checksums that the good runs so far agree on, by name."""
    return {
        name: digest
        for run in reversed(runs)
        if run.status == "ok"
        for name, digest in [*run.digests.items(), *_data_digests(run)]
    }


def _data_digests(run: Run) -> Iterator[tuple[str, str]]:
    if run.facts:
        yield from ((store.DATA + name, digest) for name, digest in run.facts.data.items())


@dataclass(kw_only=True)
class _Job:
    """The job of one running run, and the transfer of its record."""

    context: SessionContext
    api: JobsApi
    collector: Collector
    starts: WorkerStarts
    id: str = ""  # empty until the job is submitted

    def take_in(self, *, insist: bool = False) -> None:
        """Save the new lines, and pass them to the listener. Raises RecordDamaged."""
        spec = self.collector.spec
        for text in self.collector.fetch_new(insist=insist).splitlines():
            try:
                line = line_format.decode(text)
            except (msgspec.DecodeError, ValueError) as error:
                raise RecordDamaged(f"The cluster sent an unreadable line of {spec.folder}: {error}.") from error
            self.context.listener.line_came(spec, line)

    def end(self) -> None:
        """Stop the job and wait until it has ended, so that it does not run beside the next one. Failures are ignored."""
        until = time.monotonic() + GRACE_SECONDS
        try:
            self.api.stop(self.id)
            while time.monotonic() < until and self.api.status(self.id)[0] not in ENDED:
                time.sleep(0.2)
        except (http_client.RequestException, BenchError):
            return

    def cut_short(self, status: Status, reason: str) -> RunResult:
        """Stop the job, fetch the rest of its record if possible, and close the run on the client."""
        self.end()
        with suppress(http_client.RequestException, RecordDamaged):
            self.take_in(insist=True)
            self.collector.fetch_files(insist=True)
        return self.closed_here(status, reason)

    def closed_here(self, status: Status, reason: str) -> RunResult:
        """Return a result for a run that could not write its own, with all lines that were transferred."""
        lines, sha256 = store.measure(self.collector.path / store.SAMPLES)
        return RunResult(status=status, reasons=(reason,), lines=lines, sha256=sha256)


def run_one(
    context: SessionContext, spec: Spec, cluster: Cluster, quiet_check: QuietCheck, cluster_seconds: float | None = None
) -> RunResult:
    """Submit one Spec, transfer its record line by line, and close the run.

    `cluster_seconds`: that starting the cluster for this run took; None if it was up already.

    A failure of this run is recorded. Raises AuthFailed or TargetFailed if later runs would fail too.
    """
    begun = time.monotonic()
    path = store.begin_run(context.folder, spec)
    collector = Collector(exporter_url=cluster.exporter_url, token=cluster.token, spec=spec, path=path)
    starts = WorkerStarts(context.target, collector, before=context.target.failed_starts())
    api = JobsApi(cluster.dashboard_url, cluster.token)
    job = _Job(context=context, api=api, collector=collector, starts=starts)
    offsets = clock_skew.measure(cluster)
    try:
        clock_skew.check(offsets)
        _send_what_it_needs(context.folder, spec, cluster)
        job.id = api.submit(spec, python=cluster.python, environment=cluster.environment, between_tries=starts.check)
        result = _follow(job)
    except (BenchError, http_client.RequestException) as error:
        if job.id:
            job.end()
        result = job.closed_here("failed", str(error))
        if isinstance(error, (AuthFailed, TargetFailed)):
            store.close_run(
                context.folder, spec, replace(result, quiet_check=quiet_check, clock_offsets_seconds=offsets)
            )
            raise
    result = _checked(job, result)
    result = _ask_monitoring(collector, result, cluster)
    result = replace(
        result,
        quiet_check=quiet_check,
        clock_offsets_seconds=offsets,
        idle_load=context.target.idle_load(),
        seconds=round(time.monotonic() - begun, 3),
        cluster_seconds=cluster_seconds,
        monitored=cluster.prometheus_url is not None,
    )
    return store.close_run(context.folder, spec, result)


def _send_what_it_needs(folder: Path, spec: Spec, cluster: Cluster) -> None:
    """Send data sets and the items that attempts have done which came to no end. Raises DataMissing if a data set is not on this machine."""
    for name in spec.data_sets:
        deliver(seeded.find(name), cluster)
    for attempt in _unfinished(folder, spec):
        done = store.run_folder(folder, attempt) / store.FILES / store.DONE
        if done.is_file() and done.stat().st_size:
            send_done_work(done, attempt, cluster)


def _unfinished(folder: Path, spec: Spec) -> list[Spec]:
    """Return the earlier attempts that `spec` goes on with: those since the last that came to its end.

    A damaged attempt has no samples any more, so its items are done again.
    """
    found: list[Spec] = []
    for attempt in store.attempts(folder, spec):
        if attempt.attempt < spec.attempt:
            status = store.run_or_damage(folder, attempt).status
            if status in store.ENDED:
                found = []
            elif status != "damaged":
                found.append(attempt)
    return found


def _follow(job: _Job) -> RunResult:
    """Poll the record, and less often the job, until the run has ended, was stopped, was lost, or missed its deadline.

    A cluster that does not respond may recover before the deadline: its job goes on, and so does its record. Raises TargetFailed
    if the cluster cannot start the workers that the run needs at its begin.
    """
    context, collector, spec = job.context, job.collector, job.collector.spec
    last_response = time.monotonic()
    deadline, next_status, next_target_check = (
        last_response + spec.deadline_seconds,
        last_response,
        last_response + SILENT_SECONDS,
    )
    silence = ""
    while True:
        try:
            job.take_in()
            has_ended = collector.fetch_result() is not None
            if has_ended and time.monotonic() - last_response > SILENT_SECONDS:
                return _end_of_job(job, "")  # the record is complete, though the Jobs API does not respond
            # The head's dashboard uses milliseconds of a measured CPU for a response: it is asked seldom.
            if has_ended or time.monotonic() >= next_status:
                collector.fetch_files()
                status, message = job.api.status(job.id)
                next_status = time.monotonic() + STATUS_SECONDS
                job.starts.check()
                if status in ENDED:
                    return _end_of_job(job, message)
            last_response, silence = time.monotonic(), ""
            next_target_check = last_response + SILENT_SECONDS
        except http_client.RequestException as error:
            silence = f"the cluster has not responded for {time.monotonic() - last_response:.0f} s: {error}"
            if time.monotonic() >= next_target_check:
                if reason := context.target.ended():
                    return job.closed_here("failed", f"{reason}; {silence}")
                context.listener.cluster_silent(spec, f"{silence}; waiting until the deadline of the run")
                next_target_check = time.monotonic() + SILENT_SECONDS
        if context.stop.is_asked:
            return job.cut_short("stopped", "it was stopped by the user")
        if time.monotonic() > deadline:
            late = f"it did not end within its deadline of {spec.deadline_seconds:g} s"
            reason = ": ".join(filter(None, (late, silence or job.starts.failed() or job.api.waiting())))
            return job.cut_short("failed", reason)
        context.stop.event.wait(POLL_SECONDS)


def _end_of_job(job: _Job, message: str) -> RunResult:
    """Return the result of a job that has ended, checked against the transferred lines."""
    until = time.monotonic() + GRACE_SECONDS
    while True:
        job.take_in(insist=True)
        result = job.collector.fetch_result(insist=True)
        lines, sha256 = store.measure(job.collector.path / store.SAMPLES)
        if result is None or lines >= result.lines or time.monotonic() > until:
            break
        time.sleep(0.2)
    job.collector.fetch_files(insist=True)
    if result is None:
        return job.closed_here("failed", f"its driver ended without a result: {_last_line(message)}")
    if (lines, sha256) != (result.lines, result.sha256):
        return job.closed_here(
            "invalid", f"{lines} of {result.lines} lines were transferred, or they differ from the lines written"
        )
    return result


def _checked(job: _Job, result: RunResult) -> RunResult:
    """Check nodes, tasks and checksums; add the end of the log unless the result is ok."""
    spec = job.collector.spec
    if not spec.breaks_cluster:
        result = _ask_nodes(job.context.target, result)
    if job.id and result.status != "ok":
        result = replace(result, log_end=job.api.log_end(job.id)[-store.LOG_END_BYTES :])
    if result.status == "ok" and not spec.faults:
        result = _ask_tasks(job, result)
    return _compare_digests(job.collector.path, result, job.context.digests)


def _ask_nodes(target: Target, result: RunResult) -> RunResult:
    """Put a failure of the nodes first among the reasons: the driver saw only its consequence."""
    if result.status == "stopped" or not (trouble := target.trouble()):
        return result
    return replace(result, status="invalid", reasons=(trouble, *result.reasons))


def _ask_tasks(job: _Job, result: RunResult) -> RunResult:
    """Make a run invalid if its tasks raised exceptions unnoticed: it timed work that was not done."""
    try:
        raised = job.api.raised(job.id)
    except (http_client.RequestException, BenchError, ValueError, KeyError, TypeError) as error:
        return replace(
            result, alerts=(*result.alerts, f"{UNASKED}: it is not known whether its tasks raised exceptions: {error}")
        )
    return replace(result, status="invalid", reasons=(*result.reasons, raised)) if raised else result


def _compare_digests(path: Path, result: RunResult, digests: dict[str, str]) -> RunResult:
    """Make an ok run invalid if its checksums differ from those of earlier runs of the session."""
    if result.status != "ok":
        return result
    own_digests = store.read_samples(path / store.SAMPLES, is_closed=True).digests
    wrong = [
        f"the checksum of {name} is {digest}, and was {digests[name]} in an earlier run of this session"
        for name, digest in own_digests.items()
        if digests.setdefault(name, digest) != digest
    ]
    return replace(result, status="invalid", reasons=(*result.reasons, *wrong)) if wrong else result


def _ask_monitoring(collector: Collector, result: RunResult, cluster: Cluster) -> RunResult:
    """Add the alerts of the run, the extract of its series, and whether Prometheus agrees with the record."""
    if result.status == "stopped":
        return replace(result, extract=Extract(missing="the run was stopped"))
    try:
        samples = store.read_samples(collector.path / store.SAMPLES, is_closed=False).samples
    except RecordDamaged:
        return replace(result, reconciled=None, extract=Extract(missing="the record of the run is damaged"))
    if cluster.prometheus_url is None:
        result = replace(result, extract=Extract(missing="there is no Prometheus beside this cluster"))
    else:
        result = _ask_prometheus(cluster.prometheus_url, collector, result, samples)
    if result.status == "ok" and result.reconciled is None:
        result = replace(result, reconciled=_reconcile(collector, samples))
    return result if result.status == "ok" else replace(result, reconciled=None)


def _ask_prometheus(url: str, collector: Collector, result: RunResult, samples: Sequence[Sample]) -> RunResult:
    view = run_view.look(url, collector.spec, samples)
    result = replace(result, alerts=(*result.alerts, *view.alerts), reconciled=view.reconciled)
    if view.reconciled is None:
        return replace(result, extract=Extract(missing="Prometheus could not be asked"))
    extracted, file = extract.extract(url, collector.spec, view.span)
    if file:
        store.write_whole(collector.path / store.SERIES, file)
    return replace(result, extract=extracted)


def _reconcile(collector: Collector, samples: Sequence[Sample]) -> bool | None:
    """Whether the metrics page agrees with the record; None if it cannot be fetched."""
    try:
        return not reconcile.differences(collector.spec, samples, collector.metrics_page())
    except http_client.RequestException:
        return None


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if "bench.cluster.driver" not in line]
    return lines[-1].strip()[-300:] if lines else "without a message"
