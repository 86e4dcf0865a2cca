"""Lists the points of a transfer sweep: how large a payload is, and how many are on their way at once."""

from __future__ import annotations

from dataclasses import dataclass

WORD_BYTES = 8
MOST_IN_FLIGHT_BYTES = 64 * 2**20  # fits an object store of 512 MiB several times: what is freed goes a little later
STREAM_STEP = 4
ROUNDS = 10  # of one pass, at most
PASS_BYTES = 16 * 2**20  # after which a pass has had enough rounds


@dataclass(frozen=True, kw_only=True)
class Point:
    """`streams` payloads of `size` bytes on their way at once."""

    size: int  # bytes, a multiple of 8
    streams: int

    def __str__(self) -> str:
        return f"{format_size(self.size)} x {self.streams}"

    @property
    def round_bytes(self) -> int:
        """Payload of one round: of all streams together."""
        return self.size * self.streams

    @property
    def rounds(self) -> int:
        """Rounds of one pass: many of small ones, one of the largest."""
        return max(1, min(ROUNDS, PASS_BYTES // self.round_bytes))


def sweep(*, smallest: int, largest: int, growth: int, most_streams: int) -> list[Point]:
    """All sizes by all numbers of streams, less those that would crowd an object store."""
    sizes = [smallest]
    while sizes[-1] * growth <= largest:
        sizes.append(sizes[-1] * growth)
    streams = [1]
    while streams[-1] * STREAM_STEP <= most_streams:
        streams.append(streams[-1] * STREAM_STEP)
    points = [Point(size=size, streams=number) for size in sizes for number in streams]
    return [point for point in points if point.streams == 1 or point.round_bytes <= MOST_IN_FLIGHT_BYTES]


def format_size(size: int) -> str:
    """A number of bytes with a binary unit: `64 KiB`."""
    for unit, power in (("MiB", 2**20), ("KiB", 2**10)):
        if size >= power:
            return f"{size / power:g} {unit}"
    return f"{size} B"
