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
from bench.runner.worker_starts import WorkerStarts
from bench.targets import Cluster, Target

POLL_SECONDS = 0.5
STATUS_SECONDS = 5.0
UNASKED = "TasksNotAsked"  # as rules of alerts are called
GRACE_SECONDS = 20.0  # for a job that has ended, or was stopped, to have its last lines fetched
# Without an answer from head or exporter for so long, the user is told, and the target is asked whether they still run.
SILENT_SECONDS = 30.0


class Listener(Protocol):
    """Is called as a session proceeds."""

    def host_is_busy(self, block: int, what: str) -> None: ...

    def cluster_wanted(self, topology: Topology, block: int) -> None: ...

    def cluster_step_started(self, doing: str) -> None: ...

    def cluster_step_finished(self, done: str, seconds: float) -> None: ...

    def run_begun(self, spec: Spec) -> None: ...

    def line_came(self, spec: Spec, line: Line) -> None: ...

    def cluster_silent(self, spec: Spec, what: str) -> None: ...

    def run_ended(self, spec: Spec, result: RunResult) -> None: ...

    def block_ended(self, block: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class SessionContext:
    """What all runs of a session have in common: folder, session, target, listener and stop request."""

    folder: Path
    session: Session
    target: Target
    listener: Listener
    stop: Stop

    @cached_property
    def digests(self) -> dict[str, str]:
        """The checksums that the good runs so far agree on. Each run adds its own."""
        return known_digests(store.load_runs(self.folder, self.session))


def known_digests(runs: list[Run]) -> dict[str, str]:
    """The checksums that the good runs so far agree on."""
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
    """The job of one run while it goes on, and the transfer of its record."""

    context: SessionContext
    api: JobsApi
    collector: Collector
    starts: WorkerStarts
    id: str = ""  # empty: it was not submitted

    def take_in(self, *, insist: bool = False) -> None:
        """Save the lines that are new, and tell the listener of them. Raises RecordDamaged."""
        spec = self.collector.spec
        for text in self.collector.fetch_new(insist=insist).splitlines():
            try:
                line = line_format.decode(text)
            except (msgspec.DecodeError, ValueError) as error:
                raise RecordDamaged(f"The cluster sent a line of {spec.folder} that is not one: {error}.") from error
            self.context.listener.line_came(spec, line)

    def end(self) -> None:
        """Stop the job and wait until it has ended, if possible: on a cluster that stays up it would run beside the next one."""
        until = time.monotonic() + GRACE_SECONDS
        try:
            self.api.stop(self.id)
            while time.monotonic() < until and self.api.status(self.id)[0] not in ENDED:
                time.sleep(0.2)
        except (http_client.RequestException, BenchError):
            return

    def cut_short(self, status: Status, reason: str) -> RunResult:
        """Stop the job, fetch what can still be fetched, and close the run on this side."""
        self.end()
        with suppress(http_client.RequestException, RecordDamaged):
            self.take_in(insist=True)
            self.collector.fetch_files(insist=True)
        return self.closed_here(status, reason)

    def closed_here(self, status: Status, reason: str) -> RunResult:
        """A result for a run that could not write its own: all that was transferred is kept."""
        lines, sha256 = store.measure(self.collector.path / store.SAMPLES)
        return RunResult(status=status, reasons=(reason,), lines=lines, sha256=sha256)


def run_one(
    context: SessionContext, spec: Spec, cluster: Cluster, quiet_check: QuietCheck, cluster_seconds: float | None = None
) -> RunResult:
    """Submit one Spec, transfer its record line by line, and close it.

    `cluster_seconds`: in which the cluster was stood up for it; None: it was up.

    A failure of this run is recorded. Raises AuthFailed or TargetFailed where later runs would fail too.
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
            raise  # later runs would fail too
    result = _checked(job, result)
    result = _ask_monitoring(collector, result, cluster)
    result = replace(
        result,
        quiet_check=quiet_check,
        clock_offsets_seconds=offsets,
        idle_load=context.target.idle_load(),
        seconds=round(time.monotonic() - begun, 3),
        cluster_seconds=cluster_seconds,
    )
    return store.close_run(context.folder, spec, result)


def _send_what_it_needs(folder: Path, spec: Spec, cluster: Cluster) -> None:
    """Send the seeded data sets, and the work of earlier attempts. Raises DataMissing where a data set is not on this machine."""
    for name in spec.data_sets:
        deliver(seeded.find(name), cluster)
    for tried in store.attempts(folder, spec):
        done = store.run_folder(folder, tried) / store.FILES / store.DONE
        is_given = tried.attempt < spec.attempt and done.is_file() and done.stat().st_size
        # The work of a damaged attempt has no numbers any more, so it is done again.
        if is_given and store.run_or_damage(folder, tried).status != "damaged":
            send_done_work(done, tried, cluster)


def _follow(job: _Job) -> RunResult:
    """Poll the record, and now and then the job, until the run has ended, was stopped, was lost, or is late.

    A cluster that does not answer may come back while the deadline lasts: its job goes on, and so does its record.
    Raises TargetFailed where the cluster cannot start the workers that the run begins with.
    """
    context, collector, spec = job.context, job.collector, job.collector.spec
    heard = time.monotonic()
    deadline, ask_again, ask_target = heard + spec.deadline_seconds, heard, heard + SILENT_SECONDS
    silence = ""
    while True:
        try:
            job.take_in()
            has_ended = collector.fetch_result() is not None
            if has_ended and time.monotonic() - heard > SILENT_SECONDS:
                return _end_of_job(job, "")  # the record is whole, though the Jobs API is silent
            # The head's dashboard takes milliseconds of a measured CPU to answer: it is asked seldom.
            if has_ended or time.monotonic() >= ask_again:
                collector.fetch_files()
                status, message = job.api.status(job.id)
                ask_again = time.monotonic() + STATUS_SECONDS
                job.starts.check()
                if status in ENDED:
                    return _end_of_job(job, message)
            heard, silence = time.monotonic(), ""
            ask_target = heard + SILENT_SECONDS
        except http_client.RequestException as error:
            silence = f"the cluster has not answered for {time.monotonic() - heard:.0f} s: {error}"
            if time.monotonic() >= ask_target:
                if why := context.target.ended():
                    return job.closed_here("failed", f"{why}; {silence}")
                context.listener.cluster_silent(spec, f"{silence}; waiting until the deadline of the run")
                ask_target = time.monotonic() + SILENT_SECONDS
        if context.stop.is_asked:
            return job.cut_short("stopped", "it was stopped by the user")
        if time.monotonic() > deadline:
            late = f"it did not end within its deadline of {spec.deadline_seconds:g} s"
            reason = ": ".join(filter(None, (late, silence or job.starts.failed() or job.api.waiting())))
            return job.cut_short("failed", reason)
        context.stop.event.wait(POLL_SECONDS)


def _end_of_job(job: _Job, message: str) -> RunResult:
    """The result of a job that has ended, checked against the lines that were transferred."""
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
            "invalid", f"{lines} of {result.lines} lines were transferred, or they differ from those that were written"
        )
    return result


def _checked(job: _Job, result: RunResult) -> RunResult:
    """The result after the checks of nodes, tasks and checksums; with the end of the log where it is not ok."""
    spec = job.collector.spec
    if not spec.breaks_cluster:
        result = _ask_nodes(job.context.target, result)
    if job.id and result.status != "ok":
        result = replace(result, log_end=job.api.log_end(job.id)[-store.LOG_END_BYTES :])
    if result.status == "ok" and not spec.faults:
        result = _ask_tasks(job, result)
    return _compare_digests(job.collector.path, result, job.context.digests)


def _ask_nodes(target: Target, result: RunResult) -> RunResult:
    """Put a failure of the nodes first among the reasons: what the driver noticed is its consequence."""
    if result.status == "stopped" or not (trouble := target.trouble()):
        return result
    return replace(result, status="invalid", reasons=(trouble, *result.reasons))


def _ask_tasks(job: _Job, result: RunResult) -> RunResult:
    """Make a run invalid whose tasks raised without its noticing: it timed work that was not done."""
    try:
        raised = job.api.raised(job.id)
    except (http_client.RequestException, BenchError, ValueError, KeyError, TypeError) as error:
        return replace(
            result, alerts=(*result.alerts, f"{UNASKED}: it is not known whether its tasks raised exceptions: {error}")
        )
    return replace(result, status="invalid", reasons=(*result.reasons, raised)) if raised else result


def _compare_digests(path: Path, result: RunResult, digests: dict[str, str]) -> RunResult:
    """Make an ok run invalid where its checksums differ from those of the runs before it."""
    if result.status != "ok":
        return result
    found = store.read_samples(path / store.SAMPLES, is_closed=True).digests
    wrong = [
        f"the checksum of {name} is {digest}, and was {digests[name]} in an earlier run of this session"
        for name, digest in found.items()
        if digests.setdefault(name, digest) != digest
    ]
    return replace(result, status="invalid", reasons=(*result.reasons, *wrong)) if wrong else result


def _ask_monitoring(collector: Collector, result: RunResult, cluster: Cluster) -> RunResult:
    """Add whether Prometheus agrees with the record, the alerts of the run, and the extract of its series."""
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
    seen = run_view.look(url, collector.spec, samples)
    result = replace(result, alerts=(*result.alerts, *seen.alerts), reconciled=seen.reconciled)
    if seen.reconciled is None:
        return replace(result, extract=Extract(missing="Prometheus could not be asked"))
    kept, file = extract.extract(url, collector.spec, seen.span)
    if file:
        store.write_whole(collector.path / store.SERIES, file)
    return replace(result, extract=kept)


def _reconcile(collector: Collector, samples: Sequence[Sample]) -> bool | None:
    """Whether the metrics page shows what the record has; None if it could not be asked."""
    try:
        return not reconcile.differences(collector.spec, samples, collector.metrics_page())
    except http_client.RequestException:
        return None


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if "bench.cluster.driver" not in line]
    return lines[-1].strip()[-300:] if lines else "without a message"
