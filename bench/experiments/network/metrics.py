"""Declares what is measured of transfers, and computes it: goodput, percentiles, CPU, the share of raw TCP, parts of the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from bench.context import Measured
from bench.experiments.network.arms import SOCKETS
from bench.experiments.network.points import Point
from bench.experiments.network.transports import Burst
from bench.meanings import Meaning
from bench.metrics import count, rate, ratio, seconds, size
from bench.model import Interval, Metric, Sample

GOODPUT = rate(
    "goodput_bytes_per_second",
    "B/s",
    "Payload that arrived, was acknowledged and was checked, per second; without a point: the largest payload,"
    " one at a time.",
    means="goodput",
)
FIRST = seconds(
    "first_transfer_seconds",
    "The first payload of the largest size: connections are opened and pages touched.",
)
SHARES = (50, 90, 99)


def _percentile(what: str, share: int, help: str, means: Meaning = "") -> Metric:
    """`means`: of the median."""
    middle = "" if share == 50 else f"_p{share}"
    return seconds(
        f"{what}{middle}_seconds",
        f"{help}, {share}th percentile.",
        means="" if middle else means,
        distribution=what.replace("_", " "),
        percentile=float(share),
    )


ROUND_TRIP = {
    share: _percentile(
        "round_trip", share, "Time from the first byte sent until the last acknowledgement", "round trip"
    )
    for share in SHARES
}
ONE_WAY = {
    share: _percentile("one_way", share, "Time from the first byte sent until the last one arrived, on one clock")
    for share in SHARES
}
HALF = {
    share: _percentile("half_round_trip", share, "Half of the round trip, for nodes without a common clock")
    for share in SHARES
}
SENDER_CPU, RECEIVER_CPU = (
    seconds(
        f"{side}_cpu_seconds_per_gigabyte",
        f"CPU time of the {side}'s process and its raylet, without checks; a shared raylet counts for the sender.",
        unit="s/GB",
    )
    for side in ("sender", "receiver")
)
SHARE_OF_TCP = ratio(
    "share_of_raw_tcp",
    "1",
    "Goodput relative to that of our own sockets at the same point, in the same turn.",
    better="higher",
)
PARTS = {
    part: ratio(f"{part}_share_of_transfer", "1", help, better=None)
    for part, help in {
        "copy": "Share of put and get: serialising and copying into the object store.",
        "raw_tcp": "Share of put and get between nodes: the time of raw TCP for the same bytes.",
        "call": "Share of put and get: the actor call that notifies the receiver.",
        "unaccounted": "Share of put and get that the other parts do not explain.",
    }.items()
}
BEST_SIZE = size(
    "recommended_object_bytes",
    "B",
    "The smallest object that reaches 90 % of the best goodput of put and get in this run.",
    means="recommended setting",
    better=None,
)
BEST_STREAMS = count(
    "recommended_streams",
    "objects",
    "The fewest objects of that size in flight that reach it.",
    means="recommended setting",
    better=None,
)
BEST_SHARE = ratio(
    "recommended_share_of_raw_tcp",
    "1",
    "Median share of raw TCP that put and get reach with the recommended size and streams, between nodes.",
    better="higher",
    means="share at recommended settings",
)
CHUNK = size(
    "chunk_bytes",
    "B",
    "RAY_object_manager_default_chunk_size of this run, in which objects travel between nodes.",
    means="recommended setting",
    better=None,
)
METRICS = (
    *(GOODPUT, FIRST, *ROUND_TRIP.values(), *ONE_WAY.values(), *HALF.values()),
    *(SENDER_CPU, RECEIVER_CPU, SHARE_OF_TCP, *PARTS.values(), BEST_SIZE, BEST_STREAMS, BEST_SHARE, CHUNK),
)

_SOCKETS = frozenset(arm.name for arm in SOCKETS)
NEAR_BEST = 0.9
MOST_SHARE = 1.05  # of raw TCP between two nodes: above it the harness is at fault, or the machine was busy
GIGABYTE = 1e9

Passes = Measured[Burst]
Key = tuple[str, Point]  # an arm's name, and a point


def goodput(passes: Passes) -> float:
    """Payload bytes per second on the clock, over all passes of a sample."""
    return sum(one.bytes for one in passes.results) / sum(sum(one.seconds) for one in passes.results)


def round_seconds(passes: Passes) -> float:
    """Mean seconds of a round."""
    every = [seconds for one in passes.results for seconds in one.seconds]
    return sum(every) / len(every)


def problem_of(passes: Passes) -> str | None:
    """What was wrong with a payload; None: nothing."""
    return next((one.problem for one in passes.results if one.problem), None)


def samples(passes: Passes, *, is_headline: bool) -> Iterator[Sample]:
    """The values of one arm at one point in one turn."""
    if problem := problem_of(passes):
        yield passes.missing(GOODPUT, problem)
        return
    speed = passes.sample(GOODPUT, goodput(passes))
    yield speed
    if is_headline:
        yield replace(speed, point="")
    gigabytes = sum(one.bytes for one in passes.results) / GIGABYTE
    for metric, used in (
        (SENDER_CPU, [one.sender_cpu_seconds for one in passes.results]),
        (RECEIVER_CPU, [one.receiver_cpu_seconds for one in passes.results]),
    ):
        counted = [seconds for seconds in used if seconds is not None]
        if counted:
            yield passes.sample(metric, sum(counted) / gigabytes)


@dataclass(kw_only=True)
class RunTotals:
    """What the turns of one run say together."""

    is_between_nodes: bool
    smallest: Point
    kept: dict[Key, list[Passes]] = field(default_factory=dict)  # warm-ups left out
    sockets: dict[Point, float] = field(default_factory=dict)  # the most that a socket did, warm-ups with them

    def turn(self, done: Mapping[Key, Passes], *, is_warmup: bool) -> Iterator[Sample]:
        """The arms beside each other inside one turn."""
        yield from shares_of_tcp(done)
        yield from self._parts(done)
        for (arm, point), passes in done.items():
            if arm in _SOCKETS:
                self.sockets[point] = max(goodput(passes), self.sockets.get(point, 0.0))
            if not is_warmup:
                self.kept.setdefault((arm, point), []).append(passes)

    def of(self, arm: str) -> dict[Point, list[Passes]]:
        """What one arm did, by point."""
        return {point: passes for (name, point), passes in self.kept.items() if name == arm}

    def too_fast(self) -> list[str]:
        """A reason for each of Ray's transports that beat the socket it goes through: that is a fault of the harness.

        The best turn of each is compared, for a busy machine only makes slower; and the best of all transports that are
        sockets, for one that was held up is no measure of the link. Inside a node Ray shares memory and uses none.
        """
        best = {key: max(goodput(passes) for passes in timed) for key, timed in self.kept.items()}
        return [
            f"{arm} at {point} reached {speed / self.sockets[point]:.2f} of raw TCP: nothing is faster than its socket"
            for (arm, point), speed in best.items()
            if self.is_between_nodes and has_share(arm) and arm.startswith("ray-") and point in self.sockets
            if speed > MOST_SHARE * self.sockets[point]
        ]

    def _parts(self, done: Mapping[Key, Passes]) -> Iterator[Sample]:
        call = done.get(("ray-call", self.smallest))
        for (arm, point), passes in done.items():
            raw = done.get(("tcp", point))
            if arm != "ray-put-get" or call is None or raw is None:
                continue
            copies = [seconds for one in passes.results for seconds in one.copy_seconds]
            shares = parts(
                whole=round_seconds(passes),
                copy=sum(copies) / len(copies),
                raw_tcp=round_seconds(raw) if self.is_between_nodes else None,
                call=round_seconds(call),
            )
            for part, metric in PARTS.items():
                if part in shares:
                    yield passes.sample(metric, shares[part])
                else:
                    yield passes.missing(metric, "inside one node objects do not go by TCP")


def has_share(arm: str) -> bool:
    """Whether `arm` can be set beside raw TCP: a broadcast goes to several at once."""
    return arm not in ("tcp", "ray-broadcast")


def shares_of_tcp(done: Mapping[Key, Passes]) -> Iterator[Sample]:
    """Each arm's goodput by that of raw TCP."""
    for (arm, point), passes in done.items():
        raw = done.get(("tcp", point))
        if raw is not None and has_share(arm):
            yield passes.sample(SHARE_OF_TCP, goodput(passes) / goodput(raw))


def parts(*, whole: float, copy: float, raw_tcp: float | None, call: float) -> dict[str, float]:
    """Shares of `whole` seconds, which add up to 1. Without `raw_tcp` no byte crossed a network.

    The unaccounted share is negative where parts overlap: with several objects on their way one is put while another
    travels.
    """
    known = {"copy": copy, "raw_tcp": raw_tcp, "call": call}
    shares = {part: seconds / whole for part, seconds in known.items() if seconds is not None}
    return {**shares, "unaccounted": 1.0 - sum(shares.values())}


def percentiles(timed: Sequence[Passes], *, is_one_clock: bool) -> Iterator[Sample]:
    """Over all rounds of an invocation at one point: percentiles of samples must not be averaged."""
    bursts = [one for passes in timed for one in passes.results]
    whole = replace(timed[-1], interval=Interval(timed[0].interval.begin, timed[-1].interval.end))
    trips = [seconds for one in bursts for seconds in one.seconds]
    yield from _percentiles(whole, ROUND_TRIP, trips)
    there = [seconds for one in bursts for seconds in one.one_way_seconds]
    if not is_one_clock:
        yield from _percentiles(whole, HALF, [seconds / 2 for seconds in trips])
        yield from _missing(whole, ONE_WAY, "the two ends share no clock: see half of the round trip")
        return
    yield from _missing(whole, HALF, "the two ends share a clock: see one way")
    if min(there, default=0.0) < 0:
        yield from _missing(whole, ONE_WAY, "a payload came before it was sent: the two clocks are not one")
    elif there:
        yield from _percentiles(whole, ONE_WAY, there)


def _missing(whole: Passes, metrics: Mapping[int, Metric], reason: str) -> Iterator[Sample]:
    return (whole.missing(metric, reason) for metric in metrics.values())


def _percentiles(whole: Passes, metrics: Mapping[int, Metric], seconds: Sequence[float]) -> Iterator[Sample]:
    import numpy as np

    for share, metric in metrics.items():
        needed = 1 if share == 50 else 1000 // (100 - share)
        if len(seconds) < needed:
            yield whole.missing(metric, f"{len(seconds)} rounds; p{share} needs {needed}")
        else:  # one that was measured, not one between two
            yield whole.sample(metric, float(np.percentile(seconds, share, method="inverted_cdf")))


def recommended(speeds: Mapping[Point, Sequence[float]]) -> Point:
    """The least size that reaches NEAR_BEST of the best goodput, with the fewest streams that do."""
    middle = {point: median(found) for point, found in speeds.items()}
    good = [point for point, speed in middle.items() if speed >= NEAR_BEST * max(middle.values())]
    return min(good, key=lambda point: (point.size, point.streams))


def settings(
    timed: Mapping[Point, Sequence[Passes]], sockets: Mapping[Point, Sequence[Passes]], chunk_bytes: int
) -> Iterator[Sample]:
    """The settings that this run speaks for; `sockets` are raw TCP's passes, none where no byte goes between nodes."""
    if timed:
        best = recommended({point: [goodput(one) for one in found] for point, found in timed.items()})
        last = replace(timed[best][-1], point="")
        yield last.sample(BEST_SIZE, best.size)
        yield last.sample(BEST_STREAMS, best.streams)
        raw = dict(zip((one.turn for one in sockets.get(best, ())), map(goodput, sockets.get(best, ())), strict=True))
        shares = [goodput(one) / raw[one.turn] for one in timed[best] if one.turn in raw]
        if shares:
            yield last.sample(BEST_SHARE, median(shares))
        else:
            yield last.missing(BEST_SHARE, "inside one node objects do not go by TCP")
        yield last.sample(CHUNK, chunk_bytes)
