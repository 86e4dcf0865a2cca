"""Runs clustering: rounds in which all jobs are done once by one of the arms, and what must be true of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any

from bench.context import Context
from bench.counts import plural
from bench.errors import DataMissing, RunFailed
from bench.experiments.clustering import arms, peers, split, work
from bench.experiments.clustering.inputs import open_jobs
from bench.experiments.clustering.metrics import CHECKED_SHARE, JOBS_PER_SECOND, Account, Round, of_pool, of_round
from bench.experiments.clustering.params import Params, job_of
from bench.experiments.clustering.reference import Reference
from bench.experiments.clustering.split import Part
from bench.experiments.clustering.work import Given, Job, Outcome
from bench.experiments.clustering.workspace import READY_SECONDS, Workspace, folder_of
from bench.experiments.toolkit import faults, recovery
from bench.experiments.toolkit.journal import Journal
from bench.experiments.toolkit.placement import get_in_time
from bench.experiments.toolkit.pool import Answer, Counts, WorkerPool
from bench.model import Sample, to_json
from bench.record.files import replace_whole

IN_FLIGHT = 2  # of a worker: the part in hand, and the one that waits for it
STALL_SECONDS = 300.0  # without any answer, at least
SLOWER_TIMES = 30.0  # than guessed, and a peer is given up
LOG_BYTES = 2**20  # of a node's log that are kept
MOST_ASIDE = 0.01  # of the jobs, and one in any case: beyond it the run is invalid
MOST_REASONS = 3  # of results that are not those of the reference
TIMES_TO_COMPLETE = 3
MOST_INPUTS = 20  # of jobs that were set aside, that are kept


@dataclass(kw_only=True)
class Rounds:
    """The arms at work: what they all need, and what must be the same of all."""

    params: Params
    job: Job
    jobs_per_part: int
    context: Context
    workspace: Workspace
    pool: WorkerPool
    peers: peers.ClusteringPeers
    journal: Journal[Outcome]
    reference: Reference
    startup_seconds: float  # from this attempt's beginning until all were ready
    turn: int = 0
    passes: int = 0
    _is_watched: bool = False  # whether faults are injected in this turn
    _is_back: bool = False  # whether this attempt has recovered from what ended the one before
    _recoveries: recovery.Recoveries | None = None

    @cached_property
    def jobs(self) -> int:
        """Of the layers that are chosen."""
        return split.total(self.params.jobs, self.params.layers)

    def parts(self) -> Iterator[Part]:
        """All parts of a round, in order."""
        return split.parts(self.params.jobs, self.jobs_per_part, self.params.layers)

    @cached_property
    def part_count(self) -> int:
        return split.count(self.params.jobs, self.jobs_per_part, self.params.layers)

    def begin(self, turn: int, *, is_warmup: bool) -> None:
        """The next arm of this turn has its go."""
        self.turn, self.passes = turn, 0
        self._is_watched = bool(self.params.chaos) and not is_warmup

    def work(self, arm: str) -> Callable[[], Round]:
        """One round of `arm`."""
        if arm == "ray":
            return self._by_pool
        if arm == "empty-parts":
            return self._of_nothing
        return lambda: self._by_peers(arm)

    def on_fault(self, kind: str, node: str) -> None:
        if self._recoveries:
            self._recoveries.injected(kind, node, monotonic())

    def check(self, arm: str, rounds: Sequence[Round]) -> None:
        """What every round must be: all jobs but those set aside, each once, with results that agree."""
        for each in rounds:
            for reason in self._wrong(each.account):
                self.context.invalid(f"{arm}: {reason}")
            if each.counts and each.counts.losses and not self.params.chaos:
                names = ", ".join(loss.worker for loss in each.counts.losses)
                self.context.invalid(f"workers died, and others did their parts: {names}")
            shape = replace(self.job, failing=())
            layers = f" of {self.params.layers}" if self.params.layers else ""
            aside = [one.job for one in each.account.aside]  # only what did the same jobs has the same digest
            without = f" without {len(aside)}, cubes {sum((number + 1) ** 3 for number in aside)}" if aside else ""
            self.context.same_everywhere(
                f"clustering: digest of {self.params.jobs} jobs{layers}{without}, {shape}", str(each.account.digest)
            )

    def _wrong(self, account: Account) -> Iterable[str]:
        jobs, aside = self.jobs, [each.job for each in account.aside]
        if len(aside) > max(1, MOST_ASIDE * jobs):
            were = plural(len(aside), "job was", "jobs were")
            yield f"{were} set aside, the first is {aside[0]}: see set-aside.jsonl of the run"
        if account.jobs + len(aside) != jobs:
            yield f"{account.jobs} of {jobs} jobs were done, and {len(aside)} set aside"
        squares, all_cubes = work.sums_of(split.spans(self.params.jobs, self.params.layers))
        missing = sum((number + 1) ** 2 for number in aside)
        if (account.squares + missing) % work.MODULUS != squares:
            yield "the sum over the jobs' numbers is not what it must be: some were lost, and others done twice"
        cubes = sum((number + 1) ** 3 for number in aside)
        if self.job.kind != "kmeans" and (account.digest + cubes) % work.MODULUS != all_cubes:
            yield "the sum over the jobs' results is not what it must be"
        yield from islice(self.reference.wrong(account.results), MOST_REASONS)

    def _by_pool(self) -> Round:
        self.passes += 1
        name, account = f"{self.turn}/{self.passes}", Account()
        begun, written = monotonic(), self.journal.seconds
        for outcome in self.journal.done(name):
            account.add(outcome, is_kept=True)
        if account.kept:
            self.context.reuses_work()
        self._watch()
        self.context.progress(account.jobs, self.jobs)  # what was kept is in no rate

        def keep(answers: Sequence[Answer]) -> None:
            self._write_down(name, answers)
            for answer in answers:
                account.add(answer.value, failures=answer.failures)
                if self._recoveries:
                    self._is_back = True
                    self._recoveries.saw(answer.value.node, answer.value.worker, monotonic())
            # Without answers too: a fault may have waited for a worker.
            self.context.progress(account.jobs, self.jobs)

        counts = self.pool.run(do_part, self._missing(account.parts), keep)
        account.wasted_seconds += sum(outcome.busy_seconds for outcome in counts.duplicates)
        self._do_what_is_missing(name)
        seconds = monotonic() - begun
        self._merge(account)
        self._set_aside(account)
        return Round(
            account=account,
            workers=len(self.workspace.slots()),
            seconds=monotonic() - begun,
            counts=counts,
            journal_seconds=self.journal.seconds - written,
            merge_seconds=monotonic() - begun - seconds,
            missing=self.jobs - account.jobs - len(account.aside),
            recoveries=self._recovered(counts),
        )

    def _recovered(self, counts: Counts) -> tuple[recovery.Recovery, ...]:
        if self._recoveries is None:
            return ()
        found = self._recoveries.recovered(
            [(recovery.node_of(loss.worker), loss.recovered_at) for loss in counts.losses]
        )
        self._recoveries = None
        return tuple(found)

    def _watch(self) -> None:
        if not self._is_watched:
            return
        self._recoveries = recovery.Recoveries(workers=lambda: {worker.name for worker in self.pool.workers})
        plan = faults.draw_faults(self.params.chaos, self.context.seed)
        ended = faults.ended_last_attempt(plan, self.context.attempt)
        if ended and not self._is_back:  # rounds that had been done before, and other arms, are no part of it
            self._recoveries.injected(ended, "", monotonic() - self.startup_seconds)

    def _missing(self, parts: set[int]) -> Iterable[Part]:
        known = frozenset(parts)
        return (part for part in self.parts() if part.number not in known)

    def _do_what_is_missing(self, name: str) -> None:
        """Read the journal again, from the disk: parts without a whole row are done and written again."""
        for _ in range(TIMES_TO_COMPLETE):
            on_disk = {outcome.part for outcome in self.journal.done(name)}
            if len(on_disk) == self.part_count:
                return
            self.pool.run(do_part, self._missing(on_disk), partial(self._write_down, name))
        raise RunFailed(
            f"The journal lacks parts that were written {TIMES_TO_COMPLETE} times: its disk loses what is written.",
            "Look at the head's disk, and go on with `bench resume`.",
        )

    def _write_down(self, name: str, answers: Sequence[Answer]) -> None:
        if answers:
            self.journal.append(name, [answer.value for answer in answers])

    def _merge(self, account: Account) -> None:
        """Results in the order of the jobs: on each node first, then here, and what a lost node had from the journal."""
        if not account.results:
            return
        merged: dict[int, bytes] = {}
        for found in self.workspace.ask("merge").values():
            merged.update(found)
        if any(merged[number] != account.results[number] for number in merged.keys() & account.results.keys()):
            self.context.invalid("a node's file of results differs from the journal")
        whole = b"".join(account.results[number] for number in sorted(account.results))
        replace_whole(self.context.folder / f"results-{self.turn}-{self.passes}.f64", whole, is_lasting=False)
        self.workspace.ask("forget_results")

    def _set_aside(self, account: Account) -> None:
        """Leave what failed with all that it takes to try it by oneself: its input, its error."""
        import numpy as np

        if not account.aside:
            return
        folder, aside = self.context.folder, sorted(account.aside, key=lambda each: each.job)
        replace_whole(folder / "set-aside.jsonl", b"".join(to_json(each) + b"\n" for each in aside), is_lasting=False)
        first = aside[:MOST_INPUTS] if self.job.bytes else []
        for each in first:
            parts = self.parts()
            part = next(part for part in parts if each.job < part.first + part.jobs)
            np.save(folder / f"set-aside-{each.job}.npy", work.vectors_of(self.job, part, None)(each.job))

    def _of_nothing(self) -> Round:
        account = Account()
        parts = (replace(part, jobs=0) for part in self.parts())

        def keep(answers: Sequence[Answer]) -> None:
            for answer in answers:
                account.add(answer.value)

        counts = self.pool.run(do_part, parts, keep)
        return Round(account=account, workers=len(self.pool.workers), seconds=counts.seconds, counts=counts)

    def _by_peers(self, arm: str) -> Round:
        parts = self.parts()
        seconds = READY_SECONDS + SLOWER_TIMES * self.jobs * self.params.job_seconds
        begun, account = monotonic(), Account()
        if arm == "serial":
            found = self.peers.serial(list(parts), seconds)
        elif arm == "pool":
            found = self.peers.pooled(list(parts), seconds)
        else:
            found = self.peers.by_tasks(parts, seconds)
        for outcome in found:
            account.add(outcome)
        workers = 1 if arm == "serial" else len(self.pool.workers)
        return Round(account=account, workers=workers, seconds=monotonic() - begun)


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: all jobs, by every arm in each turn."""
    workers = sum(node.cpus for node in context.nodes)
    job = job_of(params, context.seed, given_by(params, context))
    jobs_per_part = jobs_per_part_of(params, job, workers)
    nodes = list(context.nodes)  # those that are lost on the way too
    with ExitStack() as ends:
        rounds = start(params, job, jobs_per_part, context, ends)
        for number, turn in enumerate(context.turns(), start=1):
            for arm in turn.order(arms.ARMS):
                rounds.begin(number, is_warmup=turn.warmup)
                measured = turn.measure(
                    arm, rounds.work(arm.name), lambda done: {n: float(c) for n, c in done.account.by_node.items()}
                )
                if arm == arms.EMPTY_PARTS:
                    parts = sum(done.counts.calls for done in measured.results if done.counts)
                    yield measured.sample(JOBS_PER_SECOND, parts / measured.interval.seconds)
                    continue
                rounds.check(arm.name, measured.results)
                yield from of_round(measured, nodes)
                yield measured.sample(CHECKED_SHARE, rounds.reference.share)
                if arm == arms.RAY:
                    yield from of_pool(measured)


def jobs_per_part_of(params: Params, job: Job, workers: int) -> int:
    """As many as are asked for, by their number or by their input, or as suits the length of a job."""
    if params.jobs_per_part:
        return params.jobs_per_part
    jobs = split.total(params.jobs, params.layers)
    if params.part_mib and job.bytes:
        return split.filled(jobs, job_bytes=job.bytes, part_bytes=params.part_mib * 2**20)
    return split.chosen(jobs, job_seconds=params.job_seconds, job_bytes=job.bytes, workers=workers)


def given_by(params: Params, context: Context) -> Given | None:
    """The user's own file, read and checked before the clock runs.

    Raises BadInput where it is not what it should be, and DataMissing where it is not here.
    """
    if not params.input:
        return None
    found = open_jobs(params.input, params.points, params.dimensions, params.jobs)
    context.data(params.input, found.sha256)  # two folders may have files of one name
    return Given(path=params.input, sha256=found.sha256)


def start(params: Params, job: Job, jobs_per_part: int, context: Context, ends: ExitStack) -> Rounds:
    """Workers, file servers and peers in their slots, ready; the input on the disks that shall have it."""
    if faults.changes_nodes(params.chaos):
        context.expects_losses()
    begun = monotonic()
    # Below Ray's own, which goes when the cluster does: a driver that was killed takes nothing away.
    folder = str(Path(_session_folder()) / f"clustering-{token_hex(4)}")
    workspace = Workspace(job=job, folder=folder, source=params.source, first=context.nodes[0].name, nodes={})
    for node in context.nodes:
        workspace.add(node)
    ends.callback(workspace.ask, "close")
    if params.source != "made":
        where = [workspace.first] if params.source == "pulled" else list(workspace.servers)
        if job.given:
            _check_copies(workspace, job.given, where)
        else:
            workspace.ask("write_input", list(split.parts(params.jobs, jobs_per_part, params.layers)), of=where)
    longest = SLOWER_TIMES * jobs_per_part * params.job_seconds
    pool = WorkerPool(
        workspace.spawn,
        workspace.slots,
        in_flight=IN_FLIGHT,
        stall_seconds=max(STALL_SECONDS, longest),
        max_failures=1,  # a job that fails is retried, and set aside, by its worker
        speculation=True,
    )
    ends.callback(pool.close)
    get_in_time([worker.actor.ready.remote() for worker in pool.workers], READY_SECONDS, "Workers that start")
    having = context.nodes if params.source == "local" else []
    beside = peers.start(
        job,
        context.nodes,
        {node.name: folder_of(folder, node.name) for node in having},
        has_serial=context.wants(arms.SERIAL),
        has_pool=context.wants(arms.POOL),
    )
    ends.callback(beside.processes.close)
    beside.ready()
    journal = ends.enter_context(
        Journal(
            context.folder,
            context.earlier,
            work=work.describe_work(job, params.jobs, jobs_per_part, params.layers),
            item=Outcome,
            identity=lambda outcome: outcome.part,
        )
    )
    ends.callback(_collect_logs, workspace, context.folder)
    rounds = Rounds(
        params=params,
        job=job,
        jobs_per_part=jobs_per_part,
        context=context,
        workspace=workspace,
        pool=pool,
        peers=beside,
        journal=journal,
        reference=Reference(job=job, jobs=params.jobs, jobs_per_part=jobs_per_part, layers=params.layers),
        startup_seconds=monotonic() - begun,
    )
    context.handle_faults(on_fault=rounds.on_fault, fill_disk=journal.fill_disk)
    return rounds


def do_part(worker: Any, part: Part) -> Any:
    """A reference to the outcome of `part`."""
    return worker.do.remote(part)


def _check_copies(workspace: Workspace, given: Given, nodes: Sequence[str]) -> None:
    """Raise DataMissing unless all of these nodes have that very file."""
    without = [name for name, has in workspace.ask("has", given, of=nodes).items() if not has]
    if without:
        raise DataMissing(
            f"input={given.path}: {', '.join(without)} cannot read it, or has another file under that path.",
            "Take source=pulled: then the first node's is enough.",
        )


def _session_folder() -> str:
    import ray

    ray.put(None)  # where no Ray runs yet, as in `bench try`, the first call of it starts one
    return str(ray._private.worker.global_worker.node.get_session_dir_path())  # noqa: SLF001, there is no public way


def _collect_logs(workspace: Workspace, folder: Path) -> None:
    """The end of what each node's workers wrote."""
    logs: Mapping[str, str] = workspace.ask("log")
    for node, text in logs.items():
        if text:
            (folder / f"log-{node}.txt").write_text(text[-LOG_BYTES:])
