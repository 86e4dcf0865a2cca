"""Does a plan, one run at a time, on a fresh cluster for every topology of every block; stopped and resumed at will."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from bench import http_client
from bench.cluster import clock_skew
from bench.data import seeded
from bench.errors import AuthFailed, BenchError, RecordDamaged, TargetFailed
from bench.model import Closing, Extract, Gate, Line, Run, Sample, Session, Spec, Status, Topology
from bench.prometheus import extract, reconcile, run_view
from bench.record import store
from bench.runner.collect import Collector
from bench.runner.deliver import deliver, give_back
from bench.runner.jobs_api import ENDED, JobsApi
from bench.runner.quiet_check import wait_for_quiet
from bench.runner.worker_starts import WorkerStarts
from bench.sanitize import from_clean_json
from bench.targets import Cluster, Target

POLL_SECONDS = 0.5
STATUS_SECONDS = 5.0
UNASKED = "TasksNotAsked"  # as rules of alerts are called
GRACE_SECONDS = 20.0  # for a job that has ended, or was stopped, to have its last lines fetched
# Without an answer from head or exporter for so long, the user is told, and the target is asked whether they still run.
SILENT_SECONDS = 30.0


class Listener(Protocol):
    """Who is told how a session goes on. Nothing here prints."""

    def host_is_busy(self, block: int, what: str) -> None: ...

    def cluster_wanted(self, topology: Topology, block: int) -> None: ...

    def run_begun(self, spec: Spec) -> None: ...

    def line_came(self, spec: Spec, line: Line) -> None: ...

    def cluster_silent(self, spec: Spec, what: str) -> None: ...

    def run_ended(self, spec: Spec, closing: Closing) -> None: ...


@dataclass
class Stop:
    """Set once by the first Ctrl-C; looked at wherever the session waits."""

    event: threading.Event = field(default_factory=threading.Event)
    may_interrupt: bool = False  # while a cluster is being stood up: waiting for it would be no stop

    @property
    def is_asked(self) -> bool:
        return self.event.is_set()

    def ask(self) -> None:
        self.event.set()


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is left of a session: what is kept, what is run again, what was never begun."""

    kept: tuple[Spec, ...]
    again: tuple[Spec, ...]
    new: tuple[Spec, ...]

    @property
    def todo(self) -> tuple[Spec, ...]:
        return self.again + self.new


def remaining(folder: Path, session: Session) -> Work:
    """What `resume` would run. Runs that are ok or invalid stand; failed, stopped and damaged ones get a new attempt.

    Raises RecordDamaged where the plan was changed since any of its runs was started.
    """
    store.check_cells(session)
    kept, again, new = [], [], []
    for spec in session.specs:
        last = store.latest_attempt(folder, spec)
        if last is None:
            new.append(spec)
            continue
        store.check_unchanged(folder, last)
        status = store.run_or_damage(folder, last).status
        if status in ("ok", "invalid"):
            kept.append(last)
        else:
            again.append(replace(last, attempt=last.attempt + 1))
    return Work(kept=tuple(kept), again=tuple(again), new=tuple(new))


def never_enough(_spec: Spec) -> str:
    """Every run of the plan is wanted."""
    return ""


def perform(  # noqa: PLR0913, as run_one
    folder: Path,
    session: Session,
    todo: tuple[Spec, ...],
    *,
    target: Target,
    listener: Listener,
    stop: Stop,
    enough: Callable[[Spec], str] = never_enough,
    most_wait_seconds: Callable[[], float] = lambda: math.inf,
) -> str:
    """Run `todo` in the plan's order. A run that fails is recorded, and the next one gets a fresh cluster.

    `enough` is asked before each run, and says why it and all after it are not wanted any more: that is returned.
    `most_wait_seconds` is asked before each block, how long it may wait for a quiet machine.
    Raises TargetFailed where no cluster can be stood up. Returns early when `stop` is asked for.
    """
    position = {spec.id: number for number, spec in enumerate(session.specs)}
    in_order = sorted(todo, key=lambda spec: position[spec.id])
    digests = known_digests(store.load_runs(folder, session))
    gates: dict[int, Gate] = {}
    for (block, _), together in itertools.groupby(in_order, key=lambda spec: (spec.block, spec.topology.name)):
        group = list(together)
        if block not in gates:
            if why := enough(group[0]):
                return why  # before a wait that would be for nothing
            told = partial(listener.host_is_busy, block)
            load = target.idle_load()
            gates[block] = wait_for_quiet(
                stop.event,
                told,
                most_seconds=most_wait_seconds(),
                deployment_cpus=load.cpus + load.ray_cpus if load else 0.0,
            )
        cluster: Cluster | None = None
        settings: Mapping[str, str] = {}  # of Ray, of that cluster
        for spec in group:
            if stop.is_asked:
                return ""
            if why := enough(spec):
                return why
            if cluster is None or spec.ray_settings != settings:
                settings = spec.ray_settings
                listener.cluster_wanted(spec.topology, block)
                stop.may_interrupt = True
                cluster = target.up(spec.topology, settings)
                stop.may_interrupt = False
            listener.run_begun(spec)
            closing = run_one(
                folder,
                spec,
                cluster=cluster,
                target=target,
                digests=digests,
                gate=gates[block],
                listener=listener,
                stop=stop,
            )
            listener.run_ended(spec, closing)
            if closing.status != "ok" or spec.breaks_cluster:
                cluster = None  # what broke the run may have broken its cluster
    return ""


def run_one(  # noqa: PLR0913, where, what, on what, and who is told: none of them goes with another
    folder: Path,
    spec: Spec,
    *,
    cluster: Cluster,
    target: Target,
    digests: dict[str, str],
    gate: Gate,
    listener: Listener,
    stop: Stop,
) -> Closing:
    """Submit one Spec, bring its record home line by line, and close it. What the run did is never raised; what no run here could do is."""
    path = store.begin_run(folder, spec)
    api = JobsApi(cluster.dashboard_url, cluster.token)
    collector = Collector(exporter_url=cluster.exporter_url, token=cluster.token, spec=spec, path=path)
    job_id = ""
    offsets = clock_skew.measure(cluster)
    starts = WorkerStarts(target, collector, before=target.failed_starts())
    try:
        clock_skew.check(offsets)
        _send_what_it_needs(folder, spec, cluster)
        job_id = api.submit(spec, python=cluster.python, environment=cluster.environment, between_tries=starts.check)
        closing = _follow(
            api,
            job_id,
            collector,
            ended=target.ended,
            starts=starts,
            listener=listener,
            stop=stop,
        )
    except (AuthFailed, TargetFailed) as error:
        if job_id:
            _end_job(api, job_id)
        closing = _closed_here(path, "failed", str(error))
        store.close_run(folder, spec, replace(closing, gate=gate, clock_offsets_seconds=offsets))
        raise  # no run after this one would do better
    except (BenchError, http_client.RequestException) as error:
        if job_id:
            _end_job(api, job_id)  # on a cluster that stays up it would go on beside what comes next
        closing = _closed_here(path, "failed", str(error))
    if not spec.breaks_cluster:
        closing = _ask_nodes(closing, target.trouble)
    if job_id and closing.status != "ok":
        closing = replace(closing, log_end=api.log_end(job_id)[-store.LOG_END_BYTES :])
    if closing.status == "ok" and not spec.faults:
        closing = _ask_tasks(api, job_id, closing)
    closing = _look_through_window(collector, _judge(path, closing, digests=digests), cluster)
    closing = replace(closing, gate=gate, clock_offsets_seconds=offsets, idle_load=target.idle_load())
    return store.close_run(folder, spec, closing)


def _send_what_it_needs(folder: Path, spec: Spec, cluster: Cluster) -> None:
    """The sets that a person has seeded, and what earlier attempts had done. Raises DataMissing where a set is not here."""
    for name in spec.data_sets:
        deliver(seeded.find(name), cluster)
    for tried in store.attempts(folder, spec):
        done = store.run_folder(folder, tried) / store.FILES / store.DONE
        is_given = tried.attempt < spec.attempt and done.is_file() and done.stat().st_size
        # What a damaged attempt had done has no numbers any more: it is done again.
        if is_given and store.run_or_damage(folder, tried).status != "damaged":
            give_back(done, tried, cluster)


def _follow(  # noqa: PLR0913, as run_one
    api: JobsApi,
    job_id: str,
    collector: Collector,
    *,
    ended: Callable[[], str],
    starts: WorkerStarts,
    listener: Listener,
    stop: Stop,
) -> Closing:
    """Poll the record, and now and then the job, until the run has ended, was stopped, was lost, or is late.

    A cluster that does not answer may come back while the deadline lasts: its job goes on, and so does its record.
    Raises TargetFailed where the cluster cannot start the workers that the run begins with.
    """
    spec, path = collector.spec, collector.path
    heard = time.monotonic()
    deadline, ask_again, ask_target = heard + spec.deadline_seconds, heard, heard + SILENT_SECONDS
    silence = ""
    while True:
        try:
            _take_in(collector, listener)
            has_ended = collector.fetch_closing() is not None
            if has_ended and time.monotonic() - heard > SILENT_SECONDS:
                # The record is whole, though the Jobs API is silent.
                return _end_of_job(collector, "", listener=listener)
            # The head's dashboard takes milliseconds of a measured CPU to answer: it is asked seldom.
            if has_ended or time.monotonic() >= ask_again:
                collector.fetch_files()
                status, message = api.status(job_id)
                ask_again = time.monotonic() + STATUS_SECONDS
                starts.check()
                if status in ENDED:
                    return _end_of_job(collector, message, listener=listener)
            heard, silence = time.monotonic(), ""
            ask_target = heard + SILENT_SECONDS
        except http_client.RequestException as error:
            silence = f"the cluster has not answered for {time.monotonic() - heard:.0f} s: {error}"
            if time.monotonic() >= ask_target:
                if why := ended():
                    return _closed_here(path, "failed", f"{why}; {silence}")
                listener.cluster_silent(spec, f"{silence}; waiting for it until the deadline of the run")
                ask_target = time.monotonic() + SILENT_SECONDS
        if stop.is_asked:
            return _cut_short(api, job_id, collector, "stopped", "it was stopped by the user", listener=listener)
        if time.monotonic() > deadline:
            late = f"it did not end within its deadline of {spec.deadline_seconds:g} s"
            reason = ": ".join(filter(None, (late, silence or starts.failed() or api.waiting())))
            return _cut_short(api, job_id, collector, "failed", reason, listener=listener)
        stop.event.wait(POLL_SECONDS)


def _cut_short(
    api: JobsApi, job_id: str, collector: Collector, status: Status, reason: str, *, listener: Listener
) -> Closing:
    """End the job, fetch what there still is, and close the run here."""
    _end_job(api, job_id)
    _take_in_last(collector, listener)
    return _closed_here(collector.path, status, reason)


def _end_of_job(collector: Collector, message: str, *, listener: Listener) -> Closing:
    """The job is over: its own word on how it ended, checked against what came home; or that it left none."""
    until = time.monotonic() + GRACE_SECONDS
    while True:
        _take_in(collector, listener, insist=True)
        closing = collector.fetch_closing(insist=True)
        lines, sha256 = store.measure(collector.path / store.SAMPLES)
        if closing is None or lines >= closing.lines or time.monotonic() > until:
            break
        time.sleep(0.2)
    collector.fetch_files(insist=True)
    if closing is None:
        return _closed_here(collector.path, "failed", f"its driver ended without a result: {_last_line(message)}")
    if (lines, sha256) != (closing.lines, closing.sha256):
        reason = f"{lines} of {closing.lines} lines came home, or not the same ones"
        return _closed_here(collector.path, "invalid", reason)
    return closing


def _judge(path: Path, closing: Closing, *, digests: dict[str, str]) -> Closing:
    """An ok run whose checksums are not those of the runs before it is invalid."""
    if closing.status != "ok":
        return closing
    found = {
        line.digest[0]: line.digest[1] for line in store.read_lines(path / store.SAMPLES, is_closed=True) if line.digest
    }
    wrong = [
        f"the checksum of {name} is {digest}, and was {digests[name]} in an earlier run of this session"
        for name, digest in found.items()
        if digests.setdefault(name, digest) != digest
    ]
    return replace(closing, status="invalid", reasons=(*closing.reasons, *wrong)) if wrong else closing


def _ask_tasks(api: JobsApi, job_id: str, closing: Closing) -> Closing:
    """A run whose tasks raised, and that is ok all the same, has not looked at their results: it timed work that was not done."""
    try:
        raised = api.raised(job_id)
    except (http_client.RequestException, BenchError, ValueError, KeyError, TypeError) as error:
        return replace(closing, alerts=(*closing.alerts, f"{UNASKED}: whether its tasks raised is not known: {error}"))
    return replace(closing, status="invalid", reasons=(*closing.reasons, raised)) if raised else closing


def _ask_nodes(closing: Closing, trouble: Callable[[], str]) -> Closing:
    """What befell the nodes meanwhile is the first reason: what the driver saw of it came after."""
    if closing.status == "stopped" or not (befell := trouble()):
        return closing
    return replace(closing, status="invalid", reasons=(befell, *closing.reasons))


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


def _take_in(collector: Collector, listener: Listener, *, insist: bool = False) -> None:
    for text in collector.fetch_new(insist=insist).splitlines():
        try:
            line = from_clean_json(text, Line)
        except (msgspec.DecodeError, ValueError) as error:
            raise RecordDamaged(
                f"The cluster sent a line of {collector.spec.folder} that is not one: {error}."
            ) from error
        listener.line_came(collector.spec, line)


def _take_in_last(collector: Collector, listener: Listener) -> None:
    """Fetch what there still is, as well as it goes."""
    try:
        _take_in(collector, listener, insist=True)
        collector.fetch_files(insist=True)
    except (http_client.RequestException, RecordDamaged):
        return


def _end_job(api: JobsApi, job_id: str) -> None:
    """Stop the job and see it end, as well as it goes: the cluster goes down in any case."""
    until = time.monotonic() + GRACE_SECONDS
    try:
        api.stop(job_id)
        while time.monotonic() < until and api.status(job_id)[0] not in ENDED:
            time.sleep(0.2)
    except (http_client.RequestException, BenchError):
        return


def _closed_here(path: Path, status: Status, reason: str) -> Closing:
    """A closing for a run that could not write its own: all that came home is kept."""
    lines, sha256 = store.measure(path / store.SAMPLES)
    return Closing(status=status, reasons=(reason,), lines=lines, sha256=sha256)


def _look_through_window(collector: Collector, closing: Closing, cluster: Cluster) -> Closing:
    """What the window says of the run: whether it shows what the record has, which alerts it raised; its series are kept."""
    if closing.status == "stopped":
        return replace(closing, extract=Extract(missing="the run was stopped"))
    try:
        lines = list(store.read_lines(collector.path / store.SAMPLES, is_closed=False))
    except RecordDamaged:
        return replace(closing, reconciled=None, extract=Extract(missing="the record of the run is damaged"))
    samples = [line.sample for line in lines if line.sample]
    if cluster.prometheus_url is None:
        closing = replace(closing, extract=Extract(missing="there is no Prometheus beside this cluster"))
    else:
        closing = _ask_prometheus(cluster.prometheus_url, collector, closing, samples)
    if closing.status == "ok" and closing.reconciled is None:
        closing = replace(closing, reconciled=_reconcile(collector, samples))
    return closing if closing.status == "ok" else replace(closing, reconciled=None)


def _ask_prometheus(url: str, collector: Collector, closing: Closing, samples: list[Sample]) -> Closing:
    seen = run_view.look(url, collector.spec, samples)
    closing = replace(closing, alerts=(*closing.alerts, *seen.alerts), reconciled=seen.reconciled)
    if seen.reconciled is None:
        return replace(closing, extract=Extract(missing="Prometheus could not be asked"))
    kept, file = extract.extract(url, collector.spec, seen.span)
    if file:
        store.write_whole(collector.path / store.SERIES, file)
    return replace(closing, extract=kept)


def _reconcile(collector: Collector, samples: list[Sample]) -> bool | None:
    """Whether the metrics page shows what the record has; None if it could not be asked."""
    try:
        return not reconcile.differences(collector.spec, samples, collector.metrics_page())
    except http_client.RequestException:
        return None


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if "bench.cluster.driver" not in line]
    return lines[-1].strip()[-300:] if lines else "it left no word"
