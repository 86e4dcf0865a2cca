"""Runs an experiment once in this process, and checks what it yields."""

from __future__ import annotations

import re
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import params as parameters
from bench.cluster import work_checks
from bench.cluster.driver import refuse_large_functions
from bench.cluster.local_context import LocalContext
from bench.cluster.local_ray import LocalRay, started_on_use
from bench.errors import BadInput, BenchError, RunFailed
from bench.experiments import Experiment, load
from bench.model import Sample, Spec


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """The samples of a local run. `reasons`: why it would be invalid; `unmeasured`: declared metrics without a sample."""

    spec: Spec
    samples: tuple[Sample, ...]
    work: dict[str, dict[str, float]]  # credited to nodes, by arm and node
    reasons: tuple[str, ...]
    unmeasured: tuple[str, ...]


def run(spec: Spec, *, address: str | None = None, print_logs: bool = True) -> LocalRun:
    """Run `spec` in a Ray of its own, or in the one at `address`. Raises RunFailed if the experiment raises."""
    if spec.faults:
        raise BadInput("bench try injects no faults.", "Leave out chaos, or use `bench run`.")
    experiment = load(spec.experiment)
    local_ray = LocalRay(topology=spec.topology, settings=spec.ray_settings, address=address, print_logs=print_logs)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, started_on_use(local_ray):
        refuse_large_functions()
        context = LocalContext(
            nodes=local_ray.nodes(),
            seed=spec.seed,
            repeats=spec.samples,
            passes=1,
            warmups=spec.warmups,
            arms=spec.arms,
            folder=Path(folder),
        )
        try:
            params = experiment.params(**parameters.complete(experiment.params, spec.params))
            yielded = list(experiment.run(params, context))
        except BenchError:
            raise
        except Exception as error:
            raise RunFailed(describe_error(error, experiment), "--debug prints the traceback.") from error
    samples = (*yielded, *context.recorded)
    return LocalRun(
        spec=spec,
        samples=samples,
        work=_add_up(context),
        reasons=tuple(_reasons(spec, experiment, context, samples)),
        unmeasured=tuple(
            metric.name
            for metric in experiment.metrics
            if metric.name not in {sample.metric for sample in samples if sample.value is not None}
        ),
    )


def describe_error(error: Exception, experiment: Experiment[Any]) -> str:
    """Describe an error in one line, with the experiment's line that raised it. For an error in a task, describe that one."""
    cause = getattr(error, "cause", None)  # set on Ray's RayTaskError
    lines = str(cause or error).strip().splitlines() or [""]
    frames = [(frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)]
    frames += re.findall(r'File "([^"]+)", line (\d+)', str(error) if cause else "")
    package = Path(experiment.run.__code__.co_filename).parent
    own = [frame for frame in frames if Path(frame[0]).is_relative_to(package) and "toolkit" not in frame[0]]
    where = f" ({own[-1][0]}, line {own[-1][1]})" if own else ""
    return f"The experiment raised {type(cause or error).__name__}: {lines[-1].rstrip('.')}{where}."


def _add_up(context: LocalContext) -> dict[str, dict[str, float]]:
    work: dict[str, dict[str, float]] = {}
    for arm, passes in context.credits.items():
        total = work.setdefault(arm, {})
        for credit in passes:
            for node, amount in credit.items():
                total[node] = total.get(node, 0.0) + amount
    return work


def _reasons(
    spec: Spec, experiment: Experiment[Any], context: LocalContext, samples: Sequence[Sample]
) -> Iterator[str]:
    """Yield the reasons why a run with these samples would be invalid."""
    yield from dict.fromkeys(context.reasons)
    for name, digests in context.digests.items():
        if len(digests) > 1:
            yield f"the checksum of {name} differs: {', '.join(sorted(digests))}"
    yield from work_checks.undeclared((sample.metric for sample in samples), experiment.metrics)
    yield from _mismatches(experiment, context, samples)
    headline = experiment.metrics[0]
    if not any(sample.metric == headline.name and sample.value is not None for sample in samples):
        yield f"no sample has a value of the headline metric {headline.name}"
    if context.may_lose_nodes:
        return
    shares: dict[str, list[float]] = {}
    for sample in samples:
        if (share := work_checks.credited_share(sample, headline, context.credited)) is not None:
            shares.setdefault(sample.arm, []).append(share)
    busy = [node.name for node in context.nodes if node.name not in context.idle]
    yield from work_checks.not_done(
        spec, experiment, busy=busy, work_by_node=context.work_by_node, total=context.total_work, shares=shares
    )


def _mismatches(experiment: Experiment[Any], context: LocalContext, samples: Sequence[Sample]) -> Iterator[str]:
    """Yield a reason for each unit, arm or node of a sample that is not declared."""
    units = {metric.name: metric.unit for metric in experiment.metrics}
    arms, nodes = [arm.name for arm in experiment.arms], [node.name for node in context.nodes]
    wrong = [
        f"a sample of {sample.metric} has the unit {sample.unit!r}, and the metric declares {units[sample.metric]!r}"
        for sample in samples
        if sample.metric in units and sample.unit != units[sample.metric]
    ]
    wrong += [
        f"a sample of {sample.metric} is of the arm {sample.arm}, and the experiment declares {', '.join(arms)}"
        for sample in samples
        if sample.arm not in arms
    ]
    wrong += [
        f"{arm}: work was credited to {node!r}, and the nodes are {', '.join(nodes)}"
        for arm, credit in _add_up(context).items()
        for node in credit
        if node not in nodes
    ]
    yield from dict.fromkeys(wrong)
