"""Declares what is measured of a training."""

from __future__ import annotations

from bench.experiments.toolkit import parts
from bench.metrics import count, rate, ratio, seconds, size

THROUGHPUT = rate(
    "throughput_samples_per_second",
    "samples/s",
    "Images whose gradients were applied, per second; evaluation is off the clock.",
)
STARTUP = seconds(
    "startup_seconds", "Time until servers and workers have network and data, and one gradient is computed."
)
TO_TARGET = seconds(
    "time_to_target_seconds",
    "Time until the accuracy on held-out images reaches the target; evaluation is off the clock.",
    means="time to target",
)
TO_TARGET_ON_CLOCK = seconds("time_to_target_on_clock_seconds", "Time to the target, with the time of the evaluations.")
SAMPLES_TO_TARGET = count("samples_to_target", "samples", "Images used until the target.", means="samples to target")
ACCURACY = size(
    "final_accuracy",
    "%",
    "Held-out images classified correctly at the end, per cent.",
    better="higher",
    means="accuracy",
)
SPEED_UP = ratio(
    "speed_up_to_target",
    "x",
    "Speed-up to the target against one synchronous worker: the product of the next two.",
    better="higher",
)
SPEED_UP_OF_RATE = ratio(
    "speed_up_of_rate",
    "x",
    "Samples per second until the target, relative to one synchronous worker.",
    better="higher",
)
SPEED_UP_OF_SAMPLES = ratio(
    "speed_up_of_samples",
    "x",
    "Samples to the target of one synchronous worker, divided by this arm's.",
    better="higher",
)
SERVER_UPDATE = seconds(
    "server_update_seconds", "Time to average, apply and copy in the slowest shard, per iteration.", unit="s/iteration"
)
SERVER_SHARE = ratio(
    "server_share_of_iteration",
    "s/s",
    "All CPU seconds of the busiest server process, divided by the seconds of the training.",
    better="lower",
)
BARRIER = seconds(
    "barrier_seconds",
    "Time that gradients wait in the server for the others, per training: the mean of all workers, and of a node's.",
    is_total=True,
)
TRAVEL = seconds(
    "travel_seconds",
    "Time from sending gradients until new weights are in place, with the barrier, per training: the mean of the workers.",
    is_total=True,
)
WIRE_PREDICTED = size(
    "wire_predicted_bytes_per_iteration",
    "B/iteration",
    "Bytes that must cross the first server's interface: gradients and weights of workers on other nodes.",
)
WIRE = size("wire_bytes_per_iteration", "B/iteration", "Bytes counted at the first server's interface, in and out.")
STALENESS_MEAN = size(
    "staleness_mean", "updates", "Updates between the weights of a gradient and those that it was applied to: the mean."
)
REFUSED = count("refused_gradients", "gradients", "Gradients that arrived twice, or after the end.")
REPLACED = count("replaced_workers", "workers", "Workers that died, per training.")
LOST = seconds("lost_seconds", "Time from the loss of a worker until its replacement was ready, per training.")
CROWDING = size(
    "workers_per_cpu",
    "workers/CPU",
    "Workers per CPU; above 1 they share CPUs, and the run measures scheduling.",
    better=None,
)
WEIGHTS_APART = ratio(
    "weights_apart",
    "1",
    "Largest difference of a parameter between ray-sync and gloo after one iteration, relative to its change.",
    better="lower",
)

ACCURACY_BY_ITERATIONS = size(
    "accuracy_by_iterations",
    "%",
    "Accuracy on held-out images; an asynchronous iteration is one gradient.",
    better="higher",
    axis="iterations",
)
ACCURACY_BY_SECONDS = size(
    "accuracy_by_seconds",
    "%",
    "Accuracy on held-out images, evaluation off the clock.",
    better="higher",
    axis="seconds",
    means="accuracy by seconds",
)
ACCURACY_ON_CLOCK = size(
    "accuracy_by_seconds_on_clock",
    "%",
    "Accuracy on held-out images, evaluation on the clock.",
    better="higher",
    axis="seconds",
)
ACCURACY_BY_CPU = size(
    "accuracy_by_cpu_seconds",
    "%",
    "Accuracy by CPU seconds of workers and first server, or of the peer's first process times its processes.",
    better="higher",
    axis="CPU seconds",
)
LOSS = size("loss_by_iterations", "nats", "Loss on held-out images.", axis="iterations")
ITERATIONS = count("iterations_by_seconds", "iterations", "Updates of the weights.", better="higher", axis="seconds")
STALENESS = ratio(
    "staleness_share",
    "gradients/gradient",
    "Histogram: share of the applied gradients by how many updates old their weights were.",
    better=None,
    axis="updates behind",
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
