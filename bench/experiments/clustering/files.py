"""A worker on each CPU that writes its vectors into a file of its node and reads them back, by its own clock.

The file has no name: whatever becomes of the worker, nothing of it is left.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from bench.context import NodeSlot
from bench.errors import DoesNotFit
from bench.experiments.clustering import formats, points
from bench.experiments.clustering.formats import Format
from bench.experiments.toolkit.placement import get_in_time, on

READY_SECONDS = 120.0
SLOWEST_BYTES_PER_SECOND = 100e3  # of vectors, by a worker that is alive
MOST_ON_DISK = 8  # bytes on the disk of one byte of vectors, at most: the text of a double has six


@dataclass(frozen=True, kw_only=True)
class Ready:
    """What a worker is like when it can begin."""

    sha256: str  # of its vectors
    free_bytes: int  # where its files go


@dataclass(frozen=True, kw_only=True)
class Written:
    """One file, written and on the disk."""

    seconds: float
    cpu_seconds: float
    calls: int  # of the operating system
    disk_bytes: int


@dataclass(frozen=True, kw_only=True)
class Read:
    """The same file, read."""

    seconds: float
    cpu_seconds: float
    calls: int
    from_disk_bytes: int | None  # and not out of memory; None: this system does not say
    is_right: bool  # to the last bit


class Counted(io.FileIO):
    """A file that counts how often the operating system is called to write or to read."""

    calls = 0

    def write(self, data: Any, /) -> int:
        self.calls += 1
        return super().write(data)

    def readinto(self, buffer: Any, /) -> int | None:
        self.calls += 1
        return super().readinto(buffer)

    def read(self, size: int | None = -1, /) -> bytes | Any:
        self.calls += 1
        return super().read(size)


class Worker:
    """The vectors of one CPU, and the file that was last made of them."""

    def __init__(self, *, number: int, shape: tuple[int, int], seed: int, folder: str) -> None:
        import pyarrow as pa

        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        layer = points.RESNET18[number % len(points.RESNET18)]
        self._vectors = points.make(layer, number, points=shape[0], dimensions=shape[1], seed=seed)
        self._folder = folder or tempfile.gettempdir()
        self._file = self._new_file()

    def ready(self) -> Ready:
        """Checksum of the vectors, and room for their files."""
        return Ready(
            sha256=hashlib.sha256(self._vectors.data).hexdigest(), free_bytes=shutil.disk_usage(self._folder).free
        )

    def write(self, format: Format, buffer_bytes: int) -> Written:
        """A new file, until the disk has it."""
        self._file.close()
        self._file = self._new_file()
        with Counted(self._file.fileno(), "wb", closefd=False) as raw:
            begin, cpu = monotonic(), process_time()
            formats.write(format, raw, self._vectors, buffer_bytes)
            os.fsync(self._file.fileno())
            return Written(
                seconds=monotonic() - begin,
                cpu_seconds=process_time() - cpu,
                calls=raw.calls,
                disk_bytes=os.fstat(self._file.fileno()).st_size,
            )

    def read(self, format: Format, buffer_bytes: int, *, is_cold: bool) -> Read:
        """The file that was written last. Checked when the clock has stopped."""
        import numpy as np

        os.lseek(self._file.fileno(), 0, os.SEEK_SET)
        if is_cold and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with Counted(self._file.fileno(), "rb", closefd=False) as raw:
            before = bytes_from_disk()
            begin, cpu = monotonic(), process_time()
            found = formats.read(format, raw, self._vectors.shape, buffer_bytes)
            seconds, cpu_seconds = monotonic() - begin, process_time() - cpu
            after = bytes_from_disk()
            return Read(
                seconds=seconds,
                cpu_seconds=cpu_seconds,
                calls=raw.calls,
                from_disk_bytes=None if before is None or after is None else after - before,
                is_right=np.array_equal(found.view(np.uint32), self._vectors.view(np.uint32)),
            )

    def close(self) -> None:
        """Give the room on the disk back."""
        self._file.close()

    def _new_file(self) -> Any:
        return tempfile.TemporaryFile(dir=self._folder, buffering=0)  # it is open as long as it is used


def bytes_from_disk(path: Path = Path("/proc/self/io")) -> int | None:
    """What this process has had read from a disk so far, by Linux's own count; None where it is not counted."""
    try:
        lines = dict(line.split(": ", 1) for line in path.read_text().splitlines())
        return int(lines["read_bytes"])
    except (OSError, KeyError, ValueError):
        return None


@dataclass(frozen=True)
class Workers:
    """One on each CPU."""

    actors: Sequence[Any]
    nodes: Sequence[NodeSlot]  # of each worker
    vector_bytes: int  # of each worker

    def ready(self) -> str:
        """Wait for all; a checksum of all vectors. Raises DoesNotFit where a node has no room for its files."""
        found: list[Ready] = self._all(
            lambda actor: actor.ready.remote(), READY_SECONDS, "Workers that make their vectors"
        )
        for node, worker in zip(self.nodes, found, strict=True):
            needed = MOST_ON_DISK * self.vector_bytes * node.cpus
            if worker.free_bytes < needed:
                raise DoesNotFit(
                    f"{node.name} has {worker.free_bytes / 2**20:.0f} MiB free for its files, and needs"
                    f" {needed / 2**20:.0f} MiB.",
                    "Lower kib, or name a folder that every node has with --set folder=PATH.",
                )
        return hashlib.sha256("".join(worker.sha256 for worker in found).encode()).hexdigest()

    def write_and_read(self, format: Format, buffer_bytes: int, *, is_cold: bool) -> list[tuple[Written, Read]]:
        """All workers write; when the disks have it, all read."""
        longest = 10.0 + self.vector_bytes / SLOWEST_BYTES_PER_SECOND
        written = self._all(lambda actor: actor.write.remote(format, buffer_bytes), longest, f"Writing {format}")
        read = self._all(
            lambda actor: actor.read.remote(format, buffer_bytes, is_cold=is_cold), longest, f"Reading {format}"
        )
        return list(zip(written, read, strict=True))

    def credit(self, _: object) -> dict[str, float]:
        """Bytes of vectors that each node wrote and read."""
        return {node.name: float(self.vector_bytes * node.cpus) for node in self.nodes}

    def close(self) -> None:
        """End the workers and their files."""
        import ray

        for actor in self.actors:
            ray.kill(actor)

    def _all(self, call: Callable[[Any], Any], seconds: float, what: str) -> list[Any]:
        return get_in_time([call(actor) for actor in self.actors], seconds, what)


def start(nodes: Sequence[NodeSlot], *, shape: tuple[int, int], seed: int, folder: str) -> Workers:
    """A worker on every CPU, with vectors of that shape; they are not ready yet."""
    import ray

    slots = [node for node in nodes for _ in range(node.cpus)]
    actors = [
        ray.remote(Worker)
        .options(num_cpus=0, scheduling_strategy=on(node))
        .remote(number=number, shape=shape, seed=seed, folder=folder)
        for number, node in enumerate(slots)
    ]
    return Workers(actors, slots, 4 * shape[0] * shape[1])
