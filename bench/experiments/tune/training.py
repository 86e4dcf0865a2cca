"""Trains a dense network, 784 - hidden - 10, with TensorFlow: the same numbers wherever a trial is done.

TensorFlow is set up once a process. The graph leaves the size of the hidden layer open, so that it is traced once too,
and the trials that follow in the process cost their arithmetic.
"""

from __future__ import annotations

import math
import os
import random
import resource
import time
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data.images import CLASSES, Images
from bench.errors import RunInvalid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Weights = list[NDArray[np.float32]]

THREAD_ROOM = 1.25  # CPU seconds a second and thread, above which there are more threads than were asked for
THREAD_SECONDS = 1.0  # of a trial, from which on that can be told


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a search chooses."""

    lr: float
    momentum: float
    hidden: int

    def seed(self, run_seed: int) -> int:
        """What a trial of this configuration draws from: the same wherever and whenever it is done."""
        text = f"{run_seed}/{self.lr!r}/{self.momentum!r}/{self.hidden}"
        return int.from_bytes(sha256(text.encode()).digest()[:4], "big")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What is the same for all trials of a search."""

    batch: int
    iteration_samples: int
    max_iterations: int
    target: float
    judged_by: str  # "training" or "held-out": the accuracy that must reach the target
    threads: int
    seed: int  # of the run


@dataclass(frozen=True, kw_only=True)
class IterationReport:
    """What a trial says after an iteration."""

    iteration: int
    training_accuracy: float  # of the iteration's samples, each before it was learnt from
    held_out_accuracy: float
    loss: float | None  # None: it was no finite number, the training has diverged
    cpu_seconds: float  # of this iteration
    begin: float  # of this iteration, on the monotonic clock of its machine
    end: float
    peak_memory_bytes: int  # of its process, since the trial began
    setup_seconds: float  # that TensorFlow took in this process, before its first trial
    node: str = ""
    process: int = 0  # its id there

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    def accuracy(self, judged_by: str) -> float:
        """The accuracy that the target is set for. What has diverged has none, and reaches no target."""
        if self.loss is None:
            return 0.0
        return self.held_out_accuracy if judged_by == "held-out" else self.training_accuracy


class Training:
    """One trial at work in this process."""

    def __init__(self, config: Config, images: Images, settings: TrainingSettings) -> None:
        self._config, self._settings = config, settings
        self._setup_seconds = set_up(settings.threads)
        self._images = _tensors(images)
        self._random = seed_everything(config.seed(settings.seed))
        self._weights: Any = first_weights(config.hidden, self._random)
        self._velocities: Any = [0 * weights for weights in self._weights]
        self._order = _no_order()
        self._iteration = 0
        self._seconds = self._cpu_seconds = 0.0  # of this object's iterations
        forget_peak_memory()

    def iterate(self) -> IterationReport:
        """One iteration: as many samples as the settings say, then the held-out part."""
        begin, cpu = time.monotonic(), time.process_time()
        train, test = self._images
        learn, judge = _graphs()
        order = self._next_order(int(train[0].shape[0]))
        rates = [self._config.lr, self._config.momentum]
        self._weights, self._velocities, right, loss = learn(train, order, self._weights, self._velocities, rates)
        held_out = float(judge(test, self._weights))
        report = IterationReport(
            iteration=self._iteration + 1,
            training_accuracy=float(right) / order.size,
            held_out_accuracy=held_out,
            loss=float(loss) if math.isfinite(float(loss)) else None,
            cpu_seconds=time.process_time() - cpu,
            begin=begin,
            end=time.monotonic(),
            peak_memory_bytes=peak_memory_bytes(),
            setup_seconds=self._setup_seconds,
            process=os.getpid(),
        )
        self._iteration += 1
        self._seconds += report.seconds
        self._cpu_seconds += report.cpu_seconds
        check_threads(self._seconds, self._cpu_seconds, self._settings.threads)
        return report

    def is_done(self, report: IterationReport) -> bool:
        """Whether the target or the last iteration is reached."""
        return (
            report.accuracy(self._settings.judged_by) >= self._settings.target
            or report.iteration >= self._settings.max_iterations
        )

    def state(self) -> dict[str, Any]:
        """All that the next iteration depends on, as plain values."""
        return {
            "weights": [weights.numpy() for weights in map(_tensor, self._weights)],
            "velocities": [values.numpy() for values in map(_tensor, self._velocities)],
            "random": self._random.bit_generator.state,
            "order": self._order,
            "iteration": self._iteration,
        }

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave, here or elsewhere."""
        self._weights, self._velocities = state["weights"], state["velocities"]
        self._random.bit_generator.state = state["random"]
        self._order, self._iteration = state["order"], state["iteration"]

    def _next_order(self, count: int) -> NDArray[np.int64]:
        """The samples of one iteration, in batches: the set over and over, shuffled anew each time."""
        import numpy as np

        steps = max(1, self._settings.iteration_samples // self._settings.batch)
        needed = steps * self._settings.batch
        while len(self._order) < needed:
            self._order = np.concatenate([self._order, self._random.permutation(count)])
        now, self._order = self._order[:needed], self._order[needed:]
        return now.reshape(steps, self._settings.batch)


def train(config: Config, images: Images, settings: TrainingSettings) -> list[IterationReport]:
    """A whole trial, in this process."""
    training = Training(config, images, settings)
    reports = [training.iterate()]
    while not training.is_done(reports[-1]):
        reports.append(training.iterate())
    return reports


def check_threads(seconds: float, cpu_seconds: float, threads: int) -> None:
    """Raise RunInvalid where a trial's CPU seconds show that it ran on more than its threads."""
    if seconds >= THREAD_SECONDS and cpu_seconds > THREAD_ROOM * threads * seconds:
        raise RunInvalid(
            f"A trial used {cpu_seconds / seconds:.1f} CPUs, and TensorFlow was to have {threads} threads there."
        )


@lru_cache(maxsize=1)
def set_up(threads: int) -> float:
    """Import TensorFlow with so many threads, once a process; the seconds it took. Raises RunInvalid if it has others."""
    begin = time.monotonic()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    # No Keras is used here. This one is not installed; the other brings scikit-learn and matplotlib, half of the import.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import tensorflow as tf

    threading = tf.config.threading
    if threading.get_intra_op_parallelism_threads() != threads:
        threading.set_intra_op_parallelism_threads(threads)
        threading.set_inter_op_parallelism_threads(threads)
    tf.config.experimental.enable_op_determinism()
    found = threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()
    if found != (threads, threads):
        raise RunInvalid(f"TensorFlow has {found[0]} and {found[1]} threads here, not {threads}.")
    for graph in _graphs():
        graph.get_concrete_function()
    return time.monotonic() - begin


def seed_everything(seed: int) -> np.random.Generator:
    """Seed `random`, numpy and TensorFlow; gives the generator that a trial draws from."""
    import numpy as np
    import tensorflow as tf

    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002, what a library may draw from
    tf.random.set_seed(seed)
    return np.random.Generator(np.random.PCG64(seed))


def first_weights(hidden: int, random: np.random.Generator) -> Weights:
    """Glorot's uniform weights and no biases, as Keras begins."""
    import numpy as np

    found: Weights = []
    for rows, columns in ((784, hidden), (hidden, CLASSES)):
        limit = (6 / (rows + columns)) ** 0.5
        found += [random.uniform(-limit, limit, (rows, columns)).astype(np.float32), np.zeros(columns, np.float32)]
    return found


@lru_cache(maxsize=1)
def _graphs() -> tuple[Any, Any]:
    """The graphs of one iteration's learning, and of judging. They take hidden layers of any size."""
    import tensorflow as tf

    shapes = [tf.TensorShape(shape) for shape in ((784, None), (None,), (None, CLASSES), (CLASSES,))]
    weights_like = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    images_like = [tf.TensorSpec((None, 784), tf.uint8), tf.TensorSpec((None,), tf.int64)]
    order_like, rates_like = tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((2,), tf.float32)

    def scores(rows: Any, weights: Any) -> Any:
        hidden = tf.nn.relu(tf.cast(rows, tf.float32) / 255.0 @ weights[0] + weights[1])
        return hidden @ weights[2] + weights[3]

    @tf.function(input_signature=[images_like, order_like, weights_like, weights_like, rates_like])  # type: ignore[untyped-decorator]
    def learn(images: Any, order: Any, weights: Any, velocities: Any, rates: Any) -> Any:
        x, y = images
        steps = tf.shape(order)[0]

        def step(at: Any, weights: Any, velocities: Any, right: Any, total: Any) -> Any:
            rows, labels = tf.gather(x, order[at]), tf.gather(y, order[at])
            with tf.GradientTape() as tape:
                tape.watch(weights)
                found = scores(rows, weights)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, found))
            slopes = tape.gradient(loss, weights)
            velocities = [rates[1] * v - rates[0] * slope for v, slope in zip(velocities, slopes, strict=True)]
            weights = [w + v for w, v in zip(weights, velocities, strict=True)]
            right += tf.reduce_sum(tf.cast(tf.argmax(found, axis=1) == labels, tf.int64))
            return at + 1, weights, velocities, right, total + loss

        _, weights, velocities, right, total = tf.while_loop(
            lambda at, *_: at < steps,
            step,
            (tf.constant(0), weights, velocities, tf.constant(0, tf.int64), tf.constant(0.0)),
            shape_invariants=(tf.TensorShape(()), shapes, shapes, tf.TensorShape(()), tf.TensorShape(())),
            parallel_iterations=1,
        )
        return weights, velocities, right, total / tf.cast(steps, tf.float32)

    @tf.function(input_signature=[images_like, weights_like])  # type: ignore[untyped-decorator]
    def judge(images: Any, weights: Any) -> Any:
        x, y = images
        return tf.reduce_mean(tf.cast(tf.argmax(scores(x, weights), axis=1) == y, tf.float32))

    return learn, judge


def _tensors(images: Images) -> tuple[list[Any], list[Any]]:
    """Images as tensors, made once a process: a process trains on one set."""
    import tensorflow as tf

    place = images.train_x.__array_interface__["data"][0]
    if place not in _made:
        _made.clear()
        _made[place] = (
            [tf.constant(images.train_x), tf.constant(images.train_y)],
            [tf.constant(images.test_x), tf.constant(images.test_y)],
        )
    return _made[place]


_made: dict[int, tuple[list[Any], list[Any]]] = {}  # by the place of the images in memory


def _tensor(value: Any) -> Any:
    import tensorflow as tf

    return tf.convert_to_tensor(value)


def _no_order() -> NDArray[np.int64]:
    import numpy as np

    return np.zeros(0, dtype=np.int64)


def forget_peak_memory() -> None:
    """Let the peak of this process begin anew, where the kernel allows it: trials that share a process have their own."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory_bytes() -> int:
    """The most memory that this process had since `forget_peak_memory`, or ever, where the kernel has no such thing."""
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if os.uname().sysname == "Darwin" else peak * 1024
