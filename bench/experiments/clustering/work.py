"""What a worker does with a part: its jobs one after another, each tried a few times, and what came of them.

A job's result has a digest, and those of all jobs add up to the same whatever the order: what is lost, done twice or wrong
shows. Its number squared is added up too, for that sum is known beforehand without doing any job.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.errors import RunInvalid
from bench.experiments.clustering import kernels, points
from bench.experiments.clustering.inputs import Input, open_input
from bench.experiments.clustering.split import Part
from bench.record.files import replace_whole

if TYPE_CHECKING:
    from bench.experiments.clustering.points import Points

Kind = Literal["kmeans", "spin", "sleep", "empty"]

TRIES = 3  # of one job
MODULUS = 2**64
ERROR_BYTES = 2_000


@dataclass(frozen=True, kw_only=True)
class Given:
    """The user's own file, of which job n takes the n-th range of vectors."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        return Path(self.path).name


@dataclass(frozen=True, kw_only=True)
class Job:
    """What every job is: the same for all, but for its number."""

    kind: Kind
    seconds: float  # of one that spins or sleeps
    kernel: kernels.Kernel
    points: int
    dimensions: int
    clusters: int
    iterations: int
    seed: int
    failing: tuple[int, ...] = ()  # jobs that fail at every try, for a trial of what becomes of them
    given: Given | None = None  # None: vectors are made from the seed

    @property
    def bytes(self) -> int:
        """Of its input."""
        return 4 * self.points * self.dimensions if self.kind == "kmeans" else 0

    def layer(self, part: Part) -> str:
        """What a part's vectors are of."""
        return self.given.name if self.given else part.of.name


def describe_work(job: Job, jobs: int, jobs_per_part: int, layers: str = "") -> str:
    """The name of a whole work: equal for two works whose parts are the same."""
    of = f" of {layers}" if layers else ""
    return f"{jobs} jobs{of}, {jobs_per_part} a part, {sha256(repr(job).encode()).hexdigest()[:16]}"


@dataclass(frozen=True, kw_only=True)
class Aside:
    """A job that failed at every try: all that it takes to try it by oneself."""

    job: int
    layer: str
    error: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a part."""

    part: int
    jobs: int  # done; those set aside are not among them
    squares: int  # sum of (number + 1)^2 over the jobs done, modulo 2^64
    digest: int  # sum of the jobs' digests, modulo 2^64
    results: bytes  # of each job in order: its inertia, float64, NaN if it failed; of jobs that have none: nothing
    busy_seconds: float  # on the clock
    cpu_seconds: float
    worker: str = ""
    node: str = ""
    read_bytes: int = 0
    pulled_bytes: int = 0
    written_bytes: int = 0
    aside: tuple[Aside, ...] = ()


def perform(job: Job, part: Part, vectors: Callable[[int], Points], *, say: Callable[[str], None]) -> Outcome:
    """Do the jobs of `part`. `vectors` gives a job's input by its number; `say` writes to the log."""
    import numpy as np

    began, cpu_began = time.perf_counter(), time.thread_time()
    done = squares = digest = 0
    inertias: list[float] = []
    aside: list[Aside] = []
    for number in range(part.first, part.first + part.jobs):
        try:
            found, inertia = _once(job, number, vectors)
        except Exception as error:  # noqa: BLE001, a job may raise what it likes: the others are done all the same
            again = _try_again(job, number, vectors, error, say=say)
            if isinstance(again, str):
                aside.append(Aside(job=number, layer=job.layer(part), error=again))
                inertias += [math.nan] if job.kind == "kmeans" else []  # so that the others stand in their places
                continue
            found, inertia = again
        done += 1
        squares += (number + 1) ** 2
        digest += found
        if inertia is not None:
            inertias.append(inertia)
    return Outcome(
        part=part.number,
        jobs=done,
        squares=squares % MODULUS,
        digest=digest % MODULUS,
        results=np.asarray(inertias, dtype="<f8").tobytes(),
        busy_seconds=time.perf_counter() - began,
        cpu_seconds=time.thread_time() - cpu_began,
        aside=tuple(aside),
    )


Result = tuple[int, float | None]  # its digest, its inertia


def _once(job: Job, number: int, vectors: Callable[[int], Points]) -> Result:
    if number in job.failing:
        raise RuntimeError(f"job {number} fails by plan")
    return _ONE[job.kind](job, number, vectors)


def _try_again(
    job: Job, number: int, vectors: Callable[[int], Points], error: Exception, *, say: Callable[[str], None]
) -> Result | str:
    """The other tries of a job that has failed: what it came to, or what went wrong at last."""
    for attempt in range(2, TRIES + 2):
        say(f"job {number} failed at try {attempt - 1} of {TRIES}: {type(error).__name__}: {error}")
        if attempt > TRIES:
            break
        try:
            return _once(job, number, vectors)
        except Exception as again:  # noqa: BLE001, as above
            error = again
    return "".join(traceback.format_exception(error))[-ERROR_BYTES:]


def _kmeans(job: Job, number: int, vectors: Callable[[int], Points]) -> Result:
    found = kernels.cluster(job.kernel, vectors(number), clusters=job.clusters, iterations=job.iterations)
    said = number.to_bytes(8, "little") + found.labels.tobytes()
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "little"), found.inertia


def _spin(job: Job, number: int, _: Callable[[int], Points]) -> Result:
    """So much of a CPU: on a busy machine it lasts longer, as work does."""
    until = time.thread_time() + job.seconds
    while time.thread_time() < until:
        pass
    return mixed(number), None


def _sleep(job: Job, number: int, _: Callable[[int], Points]) -> Result:
    time.sleep(job.seconds)
    return mixed(number), None


def _empty(_: Job, number: int, __: Callable[[int], Points]) -> Result:
    return mixed(number), None


_ONE: dict[Kind, Callable[[Job, int, Callable[[int], Points]], Result]] = {
    "kmeans": _kmeans,
    "spin": _spin,
    "sleep": _sleep,
    "empty": _empty,
}


def mixed(number: int) -> int:
    """A digest of a job that computes nothing: the cube of its number, so that sums of squares and of these differ."""
    return (number + 1) ** 3 % MODULUS


def sums_of(spans: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    """Sums of the squares and of the cubes of the numbers of all jobs in `spans`, as `split.spans` has them, modulo 2^64."""
    bounds = [(first, stop) for _, first, stop in spans]
    return (
        sum(squares_of(stop) - squares_of(first) for first, stop in bounds) % MODULUS,
        sum(cubes_of(stop) - cubes_of(first) for first, stop in bounds) % MODULUS,
    )


def squares_of(jobs: int) -> int:
    """Sum of n^2 for n from 1 to `jobs`, modulo 2^64, in closed form."""
    return jobs * (jobs + 1) * (2 * jobs + 1) // 6 % MODULUS


def cubes_of(jobs: int) -> int:
    """Sum of n^3 for n from 1 to `jobs`, modulo 2^64, in closed form."""
    return (jobs * (jobs + 1) // 2) ** 2 % MODULUS


def vectors_of(job: Job, part: Part, folder: Path | None) -> Callable[[int], Points]:
    """A job's vectors by its number: of this node's copy of the file that was given, of those in `folder`, or made here."""
    if job.given:
        return opened(job.given, job.points, job.dimensions).read
    if folder is None or not job.bytes:
        return lambda number: points.make(part.of, number, points=job.points, dimensions=job.dimensions, seed=job.seed)
    block = read_block(folder, job, part)
    return lambda number: block[number - part.first]


def write_block(folder: Path, job: Job, part: Part) -> int:
    """Put the vectors of a part into a file of their own, for `read_block`; the bytes."""
    make = vectors_of(job, part, None)
    block = _block(part, make)
    replace_whole(_input_path(folder, part), block.tobytes(), is_lasting=False)
    return block.nbytes


def read_block(folder: Path, job: Job, part: Part) -> Points:
    """The vectors of a part, shape (jobs, points, dimensions). Raises RunInvalid where the file has not all of them."""
    import numpy as np

    if job.given:
        return _block(part, vectors_of(job, part, None))
    path = _input_path(folder, part)
    block = np.fromfile(path, dtype="<f4")
    if block.nbytes != part.jobs * job.bytes:
        raise RunInvalid(f"{path.name} has {block.nbytes} bytes, and {part.jobs * job.bytes} were written.")
    shaped: Points = block.reshape(part.jobs, job.points, job.dimensions)
    return shaped


def _block(part: Part, vectors: Callable[[int], Points]) -> Points:
    import numpy as np

    return np.stack([vectors(number) for number in range(part.first, part.first + part.jobs)])


@cache
def opened(given: Given, points: int, dimensions: int) -> Input:
    """A process opens the file once; whether it is the one that was meant is found out once a node."""
    return open_input(given.path, points, dimensions, sha256=given.sha256)


def warm_up(job: Job) -> None:
    """Do one small job, so that all is imported; from then on this process uses one native thread."""
    one_thread()
    part = Part(number=0, layer=0, first=0, jobs=1)
    small = replace(job, seconds=0.0, points=max(64, job.clusters), failing=(), given=None)
    perform(small, part, vectors_of(small, part, None), say=lambda _: None)


@cache
def one_thread() -> None:
    """Let native libraries use one thread in this process: with two, sums are added in another order."""
    import sklearn.cluster  # noqa: F401, limits hold only for libraries that are loaded
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def _input_path(folder: Path, part: Part) -> Path:
    return folder / f"input-{part.number:08d}"
