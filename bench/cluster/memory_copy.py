"""Measures how fast one core of the driver's node copies memory, which bounds everything that moves bytes."""

from __future__ import annotations

from statistics import median
from time import monotonic

COPIED_BYTES = 64 * 2**20  # more than a core's share of any cache
COPIES = 5


def bytes_per_second(size: int = COPIED_BYTES, copies: int = COPIES) -> float:
    """Return the median rate of `copies` copies of `size` bytes each, after one copy that touches every page."""
    source, target = memoryview(bytearray(b"\x01") * size), memoryview(bytearray(size))
    seconds = [_seconds(source, target) for _ in range(copies + 1)]
    return size / median(seconds[1:])


def _seconds(source: memoryview, target: memoryview) -> float:
    begin = monotonic()
    target[:] = source
    return monotonic() - begin
