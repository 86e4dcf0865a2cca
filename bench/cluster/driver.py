"""Drives one run inside the cluster: checks the nodes, starts the probes, runs the experiment and records its samples."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import params as parameters
from bench import stacks
from bench.cluster import clock_skew, incoming, memory_copy, profiling, work_checks
from bench.cluster.invocation import QUIET, QUOTA_PERIOD_SECONDS, Invocation, NodeProbe, look_at_clock
from bench.cluster.recorder import Recorder
from bench.counts import plural
from bench.data import seeded
from bench.errors import RunInvalid
from bench.experiments import Experiment, load
from bench.experiments.toolkit.faults import FaultInjector
from bench.identity import CALLERS_CODE, IMAGES, code_hash
from bench.machine.effective_cpus import effective_cpus, is_enough
from bench.model import Declared, Facts, NodeFacts, Spec, from_json
from bench.record.store import write_whole

PROFILE_TIMEOUT_SECONDS = 120.0
MOST_FUNCTION_BYTES = 2**20  # largest pickled remote function: a larger one contains data, copied to every worker


class Unfit(Exception):
    """The cluster does not fit the Spec. The text becomes the reason of the run's failure."""


def main(spec_text: str) -> int:
    """Do one run; return 0 if its record says ok, else 1."""
    spec = from_json(spec_text, Spec)
    folder = Path(os.environ["RAYMETER_RECORDS"]) / spec.session / "runs" / spec.folder
    os.environ[seeded.FOLDER_VARIABLE] = str(Path(os.environ["RAYMETER_RECORDS"]) / incoming.FOLDER)
    signal.signal(
        signal.SIGTERM, lambda number, _frame: sys.exit(128 + number)
    )  # until Ray sets a handler that does the same
    recorder = Recorder(folder, spec)
    (Path(os.environ["RAYMETER_RECORDS"]) / QUIET).unlink(missing_ok=True)  # left behind by a driver that was killed
    try:
        check_code("this driver", code_hash())
        experiment = load(spec.experiment)
        wanted = tuple(arm for arm in experiment.arms if spec.wants(arm))
        recorder.declare(Declared(metrics=experiment.metrics, arms=wanted))
        reasons = run(spec, experiment, recorder)
    except Unfit as error:
        recorder.close("failed", (str(error),))
        return 1
    except RunInvalid as error:
        recorder.close("invalid", (str(error),))
        return 1
    except SystemExit:  # Ray stops a job by SIGTERM to its driver, whose handler raises this
        recorder.close("stopped", ("its driver was stopped by SIGTERM",))
        raise
    except Exception as error:  # noqa: BLE001, whatever failed, the record must tell before the driver ends
        traceback.print_exc()
        is_memory = (
            isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__ or "out of memory" in str(error)
        )
        last_line = str(error).strip().splitlines()[-1:] or [""]
        reason = f"{type(error).__name__}: {last_line[0][:300]}"
        recorder.close("invalid" if is_memory else "failed", (f"memory ran out: {reason}" if is_memory else reason,))
        return 1
    recorder.close("invalid" if reasons else "ok", tuple(reasons))
    return 0


def run(spec: Spec, experiment: Experiment[Any], recorder: Recorder) -> list[str]:
    """Run the experiment; return the reasons why its samples are invalid, which are none if all is well."""
    import ray

    refuse_large_functions()
    connect(spec)
    params = experiment.params(**parameters.complete(experiment.params, spec.params))
    probes = start_probes(spec)
    invocation = Invocation(
        spec=spec,
        probes=probes,
        recorder=recorder,
        faults=planned_faults(spec, experiment, probes),
        # Probes and the recorder have used part of the CPU quota's current period, more of it before an interval with probes
        # than before one without: after this pause every interval begins with a full quota.
        pause_seconds=0.0 if effective_cpus().quota is None else QUOTA_PERIOD_SECONDS,
    )
    recorder.facts(collect_facts(spec, probes))
    invocation.measure_idle()
    before = _alive_nodes()
    end_profile = profile_driver(spec)
    shares: dict[str, list[float]] = {}
    headline = experiment.metrics[0]
    for sample in experiment.run(params, invocation):
        recorder.sample(sample)
        if (share := work_checks.credited_share(sample, headline, invocation.credited)) is not None:
            shares.setdefault(sample.arm, []).append(share)
    end_profile()
    recorder.timelines(invocation.timelines())
    missing_profiles = keep_profiles(spec, invocation.probes, recorder) if spec.profile_with else []
    reasons = [*invocation.reasons, *missing_profiles, *work_checks.undeclared(recorder.metrics, experiment.metrics)]
    if invocation.may_lose_nodes:
        ray.shutdown()
        return reasons
    reasons += [f"node {name} was lost during the run" for name in sorted(before.keys() - _alive_nodes().keys())]
    busy = [probe.slot.name for probe in invocation.probes if probe.slot.name not in invocation.idle_by_plan]
    reasons += work_checks.not_done(
        spec, experiment, busy=busy, work_by_node=invocation.work_by_node, total=invocation.total_work, shares=shares
    )
    ray.shutdown()
    return reasons


def planned_faults(spec: Spec, experiment: Experiment[Any], probes: list[NodeProbe]) -> FaultInjector | None:
    """Return the injector of the Spec's faults; None if it plans none."""
    if not spec.faults or experiment.tolerates is None:
        return None
    return FaultInjector(
        plan=spec.faults,
        workers=experiment.tolerates.workers,
        seed=spec.seed,
        attempt=spec.attempt,
        nodes=[probe.slot for probe in probes],
    )


def check_code(whose: str, code: str) -> None:
    """Raise Unfit unless `code` is that of the client that submitted the job: other code would be measured."""
    wanted = os.environ.get(CALLERS_CODE)
    if wanted is not None and code != wanted:
        raise Unfit(
            f"{whose} has the code {code}, and the client that submitted it has {wanted}: build the image anew with `task image`,"
            " or send the local code with --dev"
        )


def connect(spec: Spec) -> None:
    """Connect to the cluster that this job was submitted to. Never starts a Ray of its own."""
    import ray

    address = os.environ.get("RAY_ADDRESS")
    if not address:
        raise Unfit("RAY_ADDRESS is not set: this driver was not started as a Ray job, and starts no Ray of its own")
    environment = profiling.runtime_env(spec.profile_with, spec.folder) if spec.profile_with else None
    ray.init(address=address, log_to_driver=True, logging_level="WARNING", runtime_env=environment)


def refuse_large_functions() -> None:
    """Make Ray refuse large remote functions, about which it only warns: their data is copied instead of put into the object store."""
    from ray._private import ray_constants  # there is no public setting below 10 MB

    ray_constants.FUNCTION_SIZE_WARN_THRESHOLD = MOST_FUNCTION_BYTES
    ray_constants.FUNCTION_SIZE_ERROR_THRESHOLD = MOST_FUNCTION_BYTES


def start_probes(spec: Spec) -> list[NodeProbe]:
    """Start a probe on every node, and return them, the head's first. Raises Unfit if the nodes are not the topology's."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from bench.cluster.probe.actor import Probe
    from bench.context import NodeSlot

    alive = [node for node in ray.nodes() if node["Alive"]]
    check_resources(spec, [node["Resources"] for node in alive])
    own = {"runtime_env": profiling.NOT_PROFILED} if spec.profile_with else {}
    make = ray.remote(num_cpus=0, max_restarts=0, **own)(Probe)
    actors = [
        make.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote()
        for node in alive
    ]
    names: list[str] = ray.get([actor.name.remote() for actor in actors], timeout=60)
    if len(set(names)) != len(names):
        raise Unfit(f"two nodes have the same name: {', '.join(names)}")
    probes = [
        NodeProbe(
            actor=actor,
            slot=NodeSlot(
                name=name,
                node_id=node["NodeID"],
                cpus=int(node["Resources"]["CPU"]),
                threads=spec.topology.threads_per_node,
            ),
            address=node["NodeManagerAddress"],
            port=node["NodeManagerPort"],
            object_store_bytes=int(node["Resources"].get("object_store_memory", 0)),
        )
        for actor, name, node in zip(actors, names, alive, strict=True)
    ]
    if spec.profile_with:
        check_profiler(spec.profile_with, probes)
    return sorted(probes, key=lambda probe: (probe.slot.name != "head", probe.slot.name))


def check_profiler(profiler: str, probes: Sequence[NodeProbe]) -> None:
    """Raise Unfit if `profiler` cannot be used on a node."""
    import ray

    reasons = ray.get([probe.actor.why_no_profiler.remote(profiler) for probe in probes], timeout=60)
    for probe, reason in zip(probes, reasons, strict=True):
        if reason:
            raise Unfit(f"--profile-with {profiler}: on {probe.slot.name} {reason}")


def profile_driver(spec: Spec) -> Callable[[], None]:
    """Start profiling this process if the Spec asks for it; return the function that ends it."""
    if not spec.profile_with:
        return lambda: None
    return profiling.start(spec.profile_with, profiling.folder_of(spec.folder) / stacks.DRIVER)


def keep_profiles(spec: Spec, probes: Sequence[NodeProbe], recorder: Recorder) -> list[str]:
    """Write the profile of the driver, and one of each node's workers; return the reasons for those that are missing."""
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError

    driver_folder = profiling.folder_of(spec.folder) / stacks.DRIVER
    profiles = {stacks.DRIVER: profiling.read(spec.profile_with, driver_folder)}
    missing: list[str] = []
    if not profiles[stacks.DRIVER]:
        missing.append(f"{spec.profile_with} left no profile of the driver: {profiling.last_error(driver_folder)}")
    calls = [(probe, probe.actor.profile.remote(spec.profile_with, spec.folder)) for probe in probes]
    for probe, call in calls:
        try:
            profiles[probe.slot.name] = ray.get(call, timeout=PROFILE_TIMEOUT_SECONDS)
        except GetTimeoutError:
            missing.append(f"the profile of {probe.slot.name} was not read within {PROFILE_TIMEOUT_SECONDS:.0f} s")
        except RayActorError:
            continue  # the node was removed as a planned fault: `run` reports nodes that were lost otherwise
    for process, text in profiles.items():
        if text:
            write_whole(recorder.files / stacks.file_name(spec.profile_with, process), text.encode())
    return missing


def check_resources(spec: Spec, resources: list[Mapping[str, float]]) -> None:
    """Raise Unfit unless the nodes that registered have the number and the resources that the topology asks for."""
    topology = spec.topology
    if len(resources) != topology.nodes:
        found = plural(len(resources), "has", "have")
        raise Unfit(f"{topology.name} asks for {plural(topology.nodes, 'node')}, and {found} registered")
    expected = {
        "CPU": topology.cpus_per_node,
        "memory": topology.memory_bytes_per_node,
        "object_store_memory": topology.object_store_bytes_per_node,
    }
    for registered in resources:
        for name, amount in expected.items():
            # Ray subtracts the headers of the object store, and rounds: differences up to 1 % are ignored.
            if abs(registered.get(name, 0) - amount) > 0.01 * amount:
                raise Unfit(
                    f"a node of {topology.name} has {registered.get(name, 0):.0f} {name}, and {amount} was asked for"
                )


def collect_facts(spec: Spec, probes: list[NodeProbe]) -> Facts:
    """Collect the facts of every node. Raises Unfit if code, versions, clocks, threads, CPUs or shared memory are not as needed."""
    import ray

    nodes: list[NodeFacts] = ray.get(
        [
            probe.actor.facts.remote(cpus_granted=probe.slot.cpus, object_store_bytes=probe.object_store_bytes)
            for probe in probes
        ],
        timeout=60,
    )
    for node in nodes:
        check_code(node.node, node.code_hash)
        check_node(spec, node)
    check_versions(nodes)
    offsets = clock_offsets(probes)
    check_clocks(offsets)
    images: dict[str, str] = json.loads(os.environ.get(IMAGES, "{}"))  # by node, as the target started them
    return Facts(
        nodes=tuple(replace(node, image_digest=images.get(node.node, node.image_digest)) for node in nodes),
        cluster=ray._private.worker.global_worker.node.cluster_id.hex(),  # noqa: SLF001, there is no public way
        ray_config=_ray_config(),
        data={},
        link=os.environ.get("RAYMETER_LINK", "unknown"),
        same_host=len({node.boot_id for node in nodes}) == 1,
        profiler=spec.profile_with,
        clock=look_at_clock(),
        clock_offsets_seconds=offsets,
        copy_bytes_per_second=memory_copy.bytes_per_second(),
    )


def clock_offsets(probes: Sequence[NodeProbe]) -> dict[str, float]:
    """Return the seconds by which each node's clock is ahead of this driver's (negative: behind)."""
    import ray

    offsets = {}
    for probe in probes:
        before = time.time()
        there = ray.get(probe.actor.time.remote(), timeout=60)
        offsets[probe.slot.name] = round(clock_skew.offset(before, there, time.time()), 3)
    return offsets


def check_clocks(offsets: Mapping[str, float]) -> None:
    """Raise Unfit if a node's clock is too far from this driver's."""
    if wrong := list(clock_skew.too_far(offsets, whose="the driver's on the head")):
        raise Unfit(f"clocks are more than {clock_skew.MOST_SECONDS:g} s apart: {'; '.join(wrong)}. {clock_skew.FIX}")


def check_node(spec: Spec, node: NodeFacts) -> None:
    """Raise Unfit if a node's shared memory, native threads or usable CPUs are not what the topology says."""
    if node.shared_memory_bytes < spec.topology.object_store_bytes_per_node:
        raise Unfit(
            f"{node.node}: /dev/shm has {node.shared_memory_bytes} bytes, and the object store needs"
            f" {spec.topology.object_store_bytes_per_node}: it would lie on a disk"
        )
    wrong = {name: value for name, value in node.threads.items() if value != str(spec.topology.threads_per_node)}
    if wrong:
        raise Unfit(
            f"{node.node}: native threads are {wrong}, and the topology has {spec.topology.threads_per_node} a node"
        )
    if node.cpus_effective is not None and not is_enough(node.cpus_effective, node.cpus_granted):
        quota = "" if node.cpu_quota is None else f", CPU quota {node.cpu_quota:g}"
        raise Unfit(
            f"Ray on {node.node} was told {plural(node.cpus_granted, 'CPU')}, and {node.cpus_effective:g} can be used"
            f" (affinity {node.cpus_allowed}{quota}): lower --cpus, or raise the limit"
        )


def check_versions(nodes: Sequence[NodeFacts]) -> None:
    """Raise Unfit if the nodes have different versions of a package: their speeds could not be compared."""
    names = sorted({name for node in nodes for name in node.versions})
    by_name = {name: {node.node: node.versions.get(name, "none") for node in nodes} for name in names}
    mixed = [
        f"{name} is {', '.join(f'{version} on {node}' for node, version in versions.items())}"
        for name, versions in by_name.items()
        if len(set(versions.values())) > 1
    ]
    if mixed:
        raise Unfit(f"the nodes have different versions: {'; '.join(mixed)}. Run one image on all of them")


def _alive_nodes() -> dict[str, Any]:
    import ray

    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def _ray_config() -> dict[str, bool | int | float | str]:
    """Return Ray's effective configuration, as far as this process can read it."""
    import ray._raylet

    config = ray._raylet.Config  # noqa: SLF001, there is no public way

    values: dict[str, bool | int | float | str] = {}
    for name in dir(config):
        if name.startswith("_") or "REDIS" in name or name in ("initialize", "ray_cookie"):
            continue
        try:
            value = getattr(config, name)()
        except Exception:  # noqa: BLE001, S112, some need an argument, and a missing value must not fail the run
            continue
        is_plain = isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value))
        values[name] = value if is_plain else str(value)
    return values


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
