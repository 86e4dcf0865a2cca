"""Encodes a flat vector: as one object of many arrays, as one array, or as bytes that ride in the call itself.

By a connection of the processes' own (`direct`) it travels as the one array that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bench.experiments.parameter_server.connections import ANSWER, QUESTION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

Transport = Literal["objects", "flat", "inline", "sharded", "compressed", "direct"]

INLINE_BYTES = 90 * 1024  # Ray sends what is below 100 KiB in the call itself, and the rest through the object store
MOST_INLINE_BYTES = 4 * 2**20  # of all pieces of one call: Ray's own limit is 10 MB
CALL_BYTES = 800  # of a call and its answer, beside what they carry
ARRAY_BYTES = 150  # what names one array of an object
HALF_LIMIT = 65_504.0  # the greatest number in half precision


class Codec(Protocol):
    """A vector as the pieces of one message, each of which is one argument or one value returned."""

    pieces: int

    def encode(self, vector: Vector) -> list[Any]: ...

    def decode(self, pieces: Sequence[Any], out: Vector) -> None:
        """Write the vector into `out`: the one copy, for what comes from the object store is read-only."""
        ...

    def read(self, pieces: Sequence[Any], room: Vector) -> Vector:
        """The vector to look at and not to write to: where it came, or else in `room`."""
        ...


class Arrays:
    """One object with an array for each tensor, as the study had it."""

    pieces = 1

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        self._shapes = shapes
        ends = [0]
        for shape in shapes:
            ends.append(ends[-1] + prod(shape))
        self._parts = [slice(begin, end) for begin, end in pairwise(ends)]

    def encode(self, vector: Vector) -> list[Any]:
        return [[vector[part].reshape(shape) for part, shape in zip(self._parts, self._shapes, strict=True)]]

    def decode(self, pieces: Sequence[Any], out: Vector) -> None:
        for part, array in zip(self._parts, pieces[0], strict=True):
            out[part] = array.reshape(-1)

    def read(self, pieces: Sequence[Any], room: Vector) -> Vector:
        self.decode(pieces, room)
        return room


class Pieces:
    """Bytes, cut so that every piece travels in the call itself, past the object store; float32, or float16.

    What float16 loses is the sender's to make good. Bytes are what Ray passes on as they are: arrays it would pickle.
    A vector that has more than `most_bytes` goes whole, as an array: Ray lets it be read where it lies, and copies bytes.
    """

    def __init__(self, length: int, *, is_half: bool = False, most_bytes: int = MOST_INLINE_BYTES) -> None:
        import numpy as np

        self._dtype = np.dtype(np.float16 if is_half else np.float32)
        self._is_small = length * self._dtype.itemsize <= most_bytes
        step = INLINE_BYTES // self._dtype.itemsize if self._is_small else max(1, length)
        self._parts = [slice(start, min(start + step, length)) for start in range(0, length, step)]
        self.pieces = len(self._parts)

    def encode(self, vector: Vector) -> list[Any]:
        import numpy as np

        if self._dtype != vector.dtype:
            vector = np.clip(vector, -HALF_LIMIT, HALF_LIMIT).astype(self._dtype)
        return [vector[part].tobytes() for part in self._parts] if self._is_small else [vector]

    def decode(self, pieces: Sequence[Any], out: Vector) -> None:
        import numpy as np

        for part, piece in zip(self._parts, pieces, strict=True):
            out[part] = np.frombuffer(piece, self._dtype) if self._is_small else piece

    def read(self, pieces: Sequence[Any], room: Vector) -> Vector:
        if not self._is_small and self._dtype == room.dtype:
            whole: Vector = pieces[0]
            return whole
        self.decode(pieces, room)
        return room


def codec(transport: Transport, shapes: Sequence[tuple[int, ...]], length: int) -> Codec:
    """What turns `length` numbers, which are those of `shapes`, into a message."""
    if transport == "objects":
        return Arrays(shapes)
    if transport in ("flat", "direct"):
        return Pieces(length, most_bytes=0)
    return Pieces(length, is_half=transport == "compressed")


def parts(length: int, shards: int) -> list[slice]:
    """A vector's part for each shard, as equal as can be."""
    return [slice(length * shard // shards, length * (shard + 1) // shards) for shard in range(shards)]


def round_trip_bytes(transport: Transport, *, length: int, tensors: int) -> float:
    """What crosses between two nodes for one message of `length` numbers there, and one back."""
    beside = ANSWER.size + QUESTION.size if transport == "direct" else CALL_BYTES
    beside += 2 * ARRAY_BYTES * tensors if transport == "objects" else 0
    return 2.0 * length * (2 if transport == "compressed" else 4) + beside
