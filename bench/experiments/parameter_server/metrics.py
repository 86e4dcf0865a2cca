"""What is measured of a training, and the arms that it is measured of."""

from __future__ import annotations

from bench.experiments.toolkit import parts
from bench.model import Arm, Metric

THROUGHPUT = Metric(
    name="throughput_samples_per_second",
    unit="samples/s",
    better="higher",
    kind="rate",
    help="Images whose gradients were applied, per second; evaluation is off the clock.",
)
STARTUP = Metric(
    name="startup_seconds",
    unit="s",
    better="lower",
    kind="time",
    help="Until servers and workers have the network and the data, and one gradient is computed.",
)
TO_TARGET = Metric(
    name="time_to_target_seconds",
    unit="s",
    better="lower",
    kind="time",
    help="Until the accuracy on held-out images is first at the target; evaluation is off the clock.",
)
TO_TARGET_ON_CLOCK = Metric(
    name="time_to_target_on_clock_seconds",
    unit="s",
    better="lower",
    kind="time",
    help="The same with the time that the evaluations until then took.",
)
SAMPLES_TO_TARGET = Metric(
    name="samples_to_target",
    unit="samples",
    better="lower",
    kind="count",
    help="Images until then.",
)
ACCURACY = Metric(
    name="final_accuracy",
    unit="%",
    better="higher",
    kind="size",
    help="Of held-out images seen right at the end, per cent.",
)
SPEED_UP = Metric(
    name="speed_up_to_target",
    unit="x",
    better="higher",
    kind="ratio",
    help="Time to the target of one synchronous worker over this arm's: the product of the next two.",
)
SPEED_UP_OF_RATE = Metric(
    name="speed_up_of_rate",
    unit="x",
    better="higher",
    kind="ratio",
    help="Samples per second until the target, over those of one synchronous worker.",
)
SPEED_UP_OF_SAMPLES = Metric(
    name="speed_up_of_samples",
    unit="x",
    better="higher",
    kind="ratio",
    help="Samples to the target of one synchronous worker over this arm's.",
)
SERVER_UPDATE = Metric(
    name="server_update_seconds",
    unit="s/iteration",
    better="lower",
    kind="time",
    help="Averaging, applying and copying in the slowest shard, per iteration.",
)
SERVER_SHARE = Metric(
    name="server_share_of_iteration",
    unit="s/s",
    better="lower",
    kind="ratio",
    help="CPU seconds of the busiest server's process, whatever for, by the seconds of the training.",
)
BARRIER = Metric(
    name="barrier_seconds",
    unit="s",
    better="lower",
    kind="time",
    help="A gradient's wait in the server for the others', per training: the mean of the workers, of all and of a node.",
)
TRAVEL = Metric(
    name="travel_seconds",
    unit="s",
    better="lower",
    kind="time",
    help="From a gradient sent until the weights are in place, the barrier with it, per training: the mean of the workers.",
)
WIRE_PREDICTED = Metric(
    name="wire_predicted_bytes_per_iteration",
    unit="B/iteration",
    better="lower",
    kind="size",
    help="What must cross the first server's network interface: gradients and weights of the workers elsewhere.",
)
WIRE = Metric(
    name="wire_bytes_per_iteration",
    unit="B/iteration",
    better="lower",
    kind="size",
    help="What crossed it, in and out, whatever for.",
)
STALENESS_MEAN = Metric(
    name="staleness_mean",
    unit="updates",
    better="lower",
    kind="size",
    help="Updates between a gradient's weights and those that it was applied to.",
)
REFUSED = Metric(
    name="refused_gradients",
    unit="gradients",
    better="lower",
    kind="count",
    help="Those that came twice, or when all was done.",
)
REPLACED = Metric(
    name="replaced_workers", unit="workers", better="lower", kind="count", help="Workers that died, per training."
)
LOST = Metric(
    name="lost_seconds",
    unit="s",
    better="lower",
    kind="time",
    help="From a worker's death until its successor was ready, per training.",
)
CROWDING = Metric(
    name="workers_per_cpu",
    unit="workers/CPU",
    better="lower",
    kind="size",
    help="Above 1 the workers share CPUs: what is measured then is scheduling.",
)
WEIGHTS_APART = Metric(
    name="weights_apart",
    unit="",
    better="lower",
    kind="size",
    help="Greatest difference of a parameter between synchronous workers and gloo's after one iteration, of its change.",
)

ACCURACY_BY_ITERATIONS = Metric(
    name="accuracy_by_iterations",
    unit="%",
    better="higher",
    kind="size",
    axis="iterations",
    help="Accuracy on held-out images; an asynchronous iteration is one gradient.",
)
ACCURACY_BY_SECONDS = Metric(
    name="accuracy_by_seconds", unit="%", better="higher", kind="size", axis="seconds", help="Evaluation off the clock."
)
ACCURACY_ON_CLOCK = Metric(
    name="accuracy_by_seconds_on_clock",
    unit="%",
    better="higher",
    kind="size",
    axis="seconds",
    help="Evaluation on the clock.",
)
ACCURACY_BY_CPU = Metric(
    name="accuracy_by_cpu_seconds",
    unit="%",
    better="higher",
    kind="size",
    axis="CPU seconds",
    help="Of workers and the first server, or of the first process of the peer times its processes.",
)
LOSS = Metric(
    name="loss_by_iterations", unit="nats", better="lower", kind="size", axis="iterations", help="On held-out images."
)
ITERATIONS = Metric(
    name="iterations_by_seconds", unit="iterations", better="higher", kind="count", axis="seconds", help="Updates done."
)
STALENESS = Metric(
    name="staleness_share",
    unit="gradients/gradient",
    better="lower",
    kind="ratio",
    axis="updates behind",
    help="Histogram: of all gradients applied, those that were so many updates behind.",
)

METRICS = (
    THROUGHPUT,
    TO_TARGET,
    TO_TARGET_ON_CLOCK,
    SAMPLES_TO_TARGET,
    ACCURACY,
    SPEED_UP,
    SPEED_UP_OF_RATE,
    SPEED_UP_OF_SAMPLES,
    SERVER_UPDATE,
    SERVER_SHARE,
    BARRIER,
    TRAVEL,
    WIRE_PREDICTED,
    WIRE,
    STALENESS_MEAN,
    REFUSED,
    REPLACED,
    LOST,
    CROWDING,
    WEIGHTS_APART,
    STARTUP,
    *parts.WORK_METRICS,
    parts.ROUND_TRIPS,
    ACCURACY_BY_ITERATIONS,
    ACCURACY_BY_SECONDS,
    ACCURACY_ON_CLOCK,
    ACCURACY_BY_CPU,
    LOSS,
    ITERATIONS,
    STALENESS,
)

SYNC = Arm(
    name="ray-sync", help="The server averages one gradient of each worker.", role="subject", reference="ddp-gloo"
)
ASYNC = Arm(
    name="ray-async",
    help="The server applies each gradient as it comes: not deterministic.",
    reference="torch-one-thread",
    repeatable=False,
)
ONE_WORKER = Arm(
    name="ray-one-worker",
    help="As ray-sync, with a single worker: the base of the speed-ups.",
    reference="torch-one-thread",
    scales=False,
)
ONE_THREAD = Arm(
    name="torch-one-thread", help="torch in one process of the first worker's node, on one thread.", scales=False
)
ALL_THREADS = Arm(name="torch-all-threads", help="The same on all threads of that node.", scales=False)
GLOO = Arm(name="ddp-gloo", help="torch's DistributedDataParallel over gloo, a process in the place of each worker.")
UNWATCHED = Arm(name="ray-unwatched", help="As ray-sync, while raymeter does not watch.", role="control", probed=False)
ARMS = (SYNC, ASYNC, ONE_WORKER, ONE_THREAD, ALL_THREADS, GLOO, UNWATCHED)
