"""Keeps the states of a training on a disk until they are evaluated, so that their number is not limited by memory.

They are written on the clock, which takes less than a thousandth of the ten iterations between two of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

from bench.errors import RunInvalid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

FLOAT_BYTES = 4
SPARE_BYTES = 2**30  # of the disk, that are left to others


class Snapshot(NamedTuple):
    """The state after so many iterations, and what it had taken until then."""

    iteration: int
    seconds: float
    cpu_seconds: float
    state: Vector


class Mark(NamedTuple):
    """A snapshot without its state."""

    iteration: int
    seconds: float
    cpu_seconds: float


class SnapshotFile:
    """The snapshots of one training, in a file without a name: it goes with its process."""

    def __init__(self, length: int, count: int) -> None:
        """Of `count` states of `length` numbers. Raises RunInvalid where the disk has no room for them."""
        self._state_bytes = length * FLOAT_BYTES
        folder = tempfile.gettempdir()
        needed, free = count * self._state_bytes, shutil.disk_usage(folder).free - SPARE_BYTES
        if needed > free:
            raise RunInvalid(
                f"{count} states for evaluation take {needed / 2**30:.1f} GiB, and {folder} has {max(free, 0) / 2**30:.1f} GiB"
                " free beside a spare GiB.",
                "Raise evaluate_every, or set TMPDIR to a folder on a larger disk.",
            )
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, it is closed with this
        self.marks: list[Mark] = []

    def add(self, mark: Mark, state: Vector) -> None:
        """Append one."""
        data, written = state.data.cast("B"), 0
        while written < len(data):
            written += self._file.write(data[written:])
        self.marks.append(mark)

    def state(self, number: int) -> Vector:
        """The state of a mark, by its number."""
        import numpy as np

        self._file.seek(number * self._state_bytes)
        found = np.frombuffer(self._file.read(self._state_bytes), dtype=np.float32)
        self._file.seek(0, 2)
        return found

    def close(self) -> None:
        """Give the room on the disk back."""
        self._file.close()


@dataclass(frozen=True)
class Snapshots(Sequence[Snapshot]):
    """Those of one training, each fetched when it is asked for."""

    marks: Sequence[Mark]
    state: Callable[[int], Vector]

    def __len__(self) -> int:
        return len(self.marks)

    def __getitem__(self, number: int) -> Snapshot:  # type: ignore[override]  # of slices there is no use
        at = range(len(self.marks))[number]
        return Snapshot(*self.marks[at], self.state(at))

    def __iter__(self) -> Iterator[Snapshot]:
        return (self[number] for number in range(len(self)))


def count_of(iterations: int, evaluate_every: int) -> int:
    """How many states a training keeps: one every so many iterations, and the last."""
    return -(-iterations // evaluate_every) + 1
