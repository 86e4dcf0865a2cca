"""Clustering-files: write and read times of formats for vectors.

It varies format, compression and buffer.

Text against float32 as it is, compressed or not, against what one would pick today. Every worker has one CPU, vectors of its
own and a file of its node; what is read is compared with what was written, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal, cast

from msgspec import Meta

from bench.context import Context, Measured
from bench.errors import DoesNotFit
from bench.experiments import Experiment, Profile
from bench.experiments.clustering import files
from bench.experiments.clustering.files import Read, Written
from bench.experiments.clustering.formats import Format
from bench.metrics import count, rate, ratio, seconds
from bench.model import Arm, Sample, Topology

BUFFERS = {"8 KiB": 2**13, "64 KiB": 2**16, "1 MiB": 2**20, "64 MiB": 2**26}
HEADLINE = "1 MiB"
READ = rate(
    "read_bytes_per_second",
    "B/s",
    "Bytes of vectors read per second of the slowest worker; without a point: buffers of 1 MiB.",
)
WRITE = rate("write_bytes_per_second", "B/s", "Bytes of vectors written per second, until the disk has them.")
SIZE = ratio("disk_bytes_per_byte", "B/B", "Bytes of the file per byte of its vectors.", better="lower")
READ_CPU, WRITE_CPU = (
    seconds(
        f"{what}_cpu_seconds_per_gigabyte",
        f"CPU time of the workers to {what} a gigabyte of vectors, with the operating system's.",
        unit="s/GB",
    )
    for what in ("read", "write")
)
READ_CALLS, WRITE_CALLS = (
    count(
        f"{what}_calls_per_megabyte",
        "calls/MB",
        f"System calls to {what} a megabyte of vectors.",
    )
    for what in ("read", "write")
)
METRICS = (READ, WRITE, SIZE, READ_CPU, WRITE_CPU, READ_CALLS, WRITE_CALLS)

BINARY = Arm(name="binary", help="float32 as it is in memory.", role="subject")
ARMS = (
    BINARY,
    Arm(name="text", help="Decimal digits, as many as a float32 needs."),
    Arm(name="text-double", help="Decimal digits of the float32 as a double, as the study wrote them."),
    Arm(name="zlib", help="float32, compressed by zlib."),
    Arm(name="lz4", help="float32, compressed by lz4."),
    Arm(name="zstd", help="float32, compressed by zstd."),
    Arm(name="parquet", help="Parquet, one column of lists, compressed by zstd."),
    Arm(name="arrow", help="Arrow stream of record batches, one column of lists."),
)
SECONDS_PER_MEBIBYTE = {"text": 0.1, "text-double": 0.25, "zlib": 0.04}  # of one CPU, to write and read
OTHER_SECONDS_PER_MEBIBYTE = 0.01
SHARE_OF_MEMORY = 0.5
COLD_SHARE = 0.5  # of a file that must come from the disk for its read to count as cold


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    kib: Annotated[
        int, Meta(ge=64, le=2**20, description="Vectors of each CPU, in one file.", extra={"unit": "KIB", "size": True})
    ] = 64 * 1024
    dimensions: Annotated[int, Meta(ge=1, le=4096, description="Values of one vector.", extra={"unit": "VALUES"})] = 16
    cache: Annotated[
        Literal["warm", "cold"],
        Meta(description="warm: files may still be in memory; cold: they are dropped from it first, which is checked."),
    ] = "warm"
    folder: Annotated[
        str,
        Meta(description="Folder of the files on every node; empty: its temporary folder.", extra={"unit": "FOLDER"}),
    ] = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Of the vectors of one worker."""
        return self.kib * 256 // self.dimensions, self.dimensions


PROFILES = {
    "tiny": Profile(
        help="1 MiB in every format through every buffer, in memory.",
        grids=({"kib": (1024,)},),
        blocks=6,
        warmups=1,
        samples=1,
        sample_seconds=0.1,
    ),
    "lab": Profile(
        help="16 MiB, in memory and from the disk.",
        grids=({"kib": (16 * 1024,), "cache": ("warm", "cold")},),
        blocks=6,
        warmups=1,
        samples=1,
        sample_seconds=0.5,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="128 MiB, one part of the study, in memory and from the disk.",
        grids=({"kib": (128 * 1024,), "cache": ("warm", "cold")},),
        blocks=12,
        warmups=1,
        samples=3,
        sample_seconds=0.5,
        deadline_seconds=6 * 3600.0,
    ),
}


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """Every format through every buffer, on all CPUs at once."""
    mebibytes = params.kib / 1024
    return {
        arm.name: (0.02 + mebibytes * SECONDS_PER_MEBIBYTE.get(arm.name, OTHER_SECONDS_PER_MEBIBYTE),) * len(BUFFERS)
        for arm in ARMS
    }


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where vectors, what is read of them and the largest buffers take more memory than they may."""
    needed = topology.cpus_per_node * (3 * 1024 * params.kib + 2 * max(BUFFERS.values()))
    if needed > SHARE_OF_MEMORY * topology.memory_bytes_per_node:
        raise DoesNotFit(
            f"Files of {params.kib} KiB need {needed / 2**20:.0f} MiB on each node of {topology.name}, and half of its"
            f" memory is {SHARE_OF_MEMORY * topology.memory_bytes_per_node / 2**20:.0f} MiB.",
            "Lower kib, or give the nodes more with --memory-mib.",
        )


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: in each turn every format, through every buffer."""
    with ExitStack() as exits:
        workers = files.start(context.nodes, shape=params.shape, seed=context.seed, folder=params.folder)
        exits.callback(workers.close)
        count = f"{len(workers.actors)} x {params.kib} KiB of {params.dimensions} values"
        context.same_everywhere(f"clustering-files: vectors, {count}", workers.ready())
        for turn in context.turns():
            for buffer, buffer_bytes in BUFFERS.items():
                for arm in turn.order(ARMS):
                    work = partial(
                        workers.write_and_read,
                        cast(Format, arm.name),
                        buffer_bytes,
                        is_cold=params.cache == "cold",
                    )
                    timed = turn.measure(arm, work, workers.credit, point=buffer)
                    yield from samples(timed, params, context)


def samples(timed: Measured[list[tuple[Written, Read]]], params: Params, context: Context) -> Iterator[Sample]:
    """What one format through one buffer came to; all of it missing where something else was read than was written."""
    every = [each for results in timed.results for each in results]
    wrong = sum(not read.is_right for _, read in every)
    if wrong:
        reason = f"{timed.arm}: {wrong} of {len(every)} files gave other vectors than were written"
        context.invalid(reason)
        found = [timed.missing(metric, reason) for metric in METRICS]
    else:
        found = list(_figures(timed, params))
    yield from found
    if timed.point == HEADLINE:
        yield from (replace(each, point="") for each in found)


def _figures(timed: Measured[list[tuple[Written, Read]]], params: Params) -> Iterator[Sample]:
    every = [each for results in timed.results for each in results]
    vector_bytes = 4 * params.shape[0] * params.shape[1] * len(every)
    disk_bytes = sum(written.disk_bytes for written, _ in every)
    reason = still_warm([read for _, read in every], disk_bytes) if params.cache == "cold" else None
    if reason is None:
        yield timed.sample(READ, vector_bytes / sum(max(read.seconds for _, read in each) for each in timed.results))
    else:
        yield timed.missing(READ, reason)
    yield timed.sample(WRITE, vector_bytes / sum(max(written.seconds for written, _ in each) for each in timed.results))
    yield timed.sample(SIZE, disk_bytes / vector_bytes)
    yield timed.sample(READ_CPU, sum(read.cpu_seconds for _, read in every) / vector_bytes * 1e9)
    yield timed.sample(WRITE_CPU, sum(written.cpu_seconds for written, _ in every) / vector_bytes * 1e9)
    yield timed.sample(READ_CALLS, sum(read.calls for _, read in every) / vector_bytes * 1e6)
    yield timed.sample(WRITE_CALLS, sum(written.calls for written, _ in every) / vector_bytes * 1e6)


def still_warm(reads: Sequence[Read], disk_bytes: int) -> str | None:
    """Why reads that should be cold were not, or cannot be known to be; None: they were."""
    if any(read.from_disk_bytes is None for read in reads):
        return "this system does not say what came from a disk, so it is not known whether the read was cold"
    came = sum(read.from_disk_bytes or 0 for read in reads)
    if came < COLD_SHARE * disk_bytes:
        return (
            f"the page cache kept the files: {came} of {disk_bytes} bytes came from a disk"
            " (a file system that lies in memory has no other place for them)"
        )
    return None


EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    run=run,
    check_fits=check_fits,
)
