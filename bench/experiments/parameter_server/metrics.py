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
    "startup_seconds", "Until servers and workers have the network and the data, and one gradient is computed."
)
TO_TARGET = seconds(
    "time_to_target_seconds",
    "Until the accuracy on held-out images is first at the target; evaluation is off the clock.",
    means="time to target",
)
TO_TARGET_ON_CLOCK = seconds(
    "time_to_target_on_clock_seconds", "The same with the time that the evaluations until then took."
)
SAMPLES_TO_TARGET = count("samples_to_target", "samples", "Images until then.", means="samples to target")
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
    "Time to the target of one synchronous worker over this arm's: the product of the next two.",
    better="higher",
)
SPEED_UP_OF_RATE = ratio(
    "speed_up_of_rate",
    "x",
    "Samples per second until the target, over those of one synchronous worker.",
    better="higher",
)
SPEED_UP_OF_SAMPLES = ratio(
    "speed_up_of_samples", "x", "Samples to the target of one synchronous worker over this arm's.", better="higher"
)
SERVER_UPDATE = seconds(
    "server_update_seconds", "Averaging, applying and copying in the slowest shard, per iteration.", unit="s/iteration"
)
SERVER_SHARE = ratio(
    "server_share_of_iteration",
    "s/s",
    "CPU seconds of the busiest server's process, whatever for, by the seconds of the training.",
    better="lower",
)
BARRIER = seconds(
    "barrier_seconds",
    "A gradient's wait in the server for the others', per training: the mean of the workers, of all and of a node.",
)
TRAVEL = seconds(
    "travel_seconds",
    "From a gradient sent until the weights are in place, the barrier with it, per training: the mean of the workers.",
)
WIRE_PREDICTED = size(
    "wire_predicted_bytes_per_iteration",
    "B/iteration",
    "What must cross the first server's network interface: gradients and weights of the workers elsewhere.",
)
WIRE = size("wire_bytes_per_iteration", "B/iteration", "What crossed it, in and out.")
STALENESS_MEAN = size(
    "staleness_mean", "updates", "Updates between a gradient's weights and those that it was applied to."
)
REFUSED = count("refused_gradients", "gradients", "Gradients that came twice, or after the end.")
REPLACED = count("replaced_workers", "workers", "Workers that died, per training.")
LOST = seconds("lost_seconds", "From a worker's death until its successor was ready, per training.")
CROWDING = size(
    "workers_per_cpu",
    "workers/CPU",
    "Above 1 the workers share CPUs: what is measured then is scheduling.",
    means="workers per CPU",
    better=None,
)
WEIGHTS_APART = ratio(
    "weights_apart",
    "1",
    "Greatest difference of a parameter between synchronous workers and gloo's after one iteration, of its change.",
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
    "Evaluation off the clock.",
    better="higher",
    axis="seconds",
    means="accuracy by seconds",
)
ACCURACY_ON_CLOCK = size(
    "accuracy_by_seconds_on_clock", "%", "Evaluation on the clock.", better="higher", axis="seconds"
)
ACCURACY_BY_CPU = size(
    "accuracy_by_cpu_seconds",
    "%",
    "Of workers and the first server, or of the first process of the peer times its processes.",
    better="higher",
    axis="CPU seconds",
)
LOSS = size("loss_by_iterations", "nats", "On held-out images.", axis="iterations")
ITERATIONS = count("iterations_by_seconds", "iterations", "Updates done.", better="higher", axis="seconds")
STALENESS = ratio(
    "staleness_share",
    "gradients/gradient",
    "Histogram: of all gradients applied, those that were so many updates behind.",
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
