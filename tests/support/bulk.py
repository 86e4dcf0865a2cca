"""A bulk transfer between two nodes by a plain socket, as the experiment network measures it."""

from __future__ import annotations

from statistics import median

from person import Bench

SIZE = 2**23
TRANSFER = (
    *("run", "network", "--topology", "multi", "--blocks", "1", "--arms", "tcp"),
    *("--set", f"smallest={SIZE}", "--set", f"largest={SIZE}", "--set", "most_streams=1"),
)


def bytes_per_second(bench: Bench, *words: str) -> tuple[str, float]:
    """The network between the nodes as the record names it, and what a socket brings through it."""
    code, out, err = bench(*TRANSFER, *words, minutes=10)
    assert code == 0, f"{out}\n{err}"
    (run,) = bench.runs()
    assert (run.status, run.reasons) == ("ok", ())
    assert run.facts is not None
    speeds = [
        sample.value
        for sample in run.samples
        if (sample.arm, sample.metric) == ("tcp", "goodput_bytes_per_second") and not sample.warmup and sample.value
    ]
    return run.facts.link, median(speeds)


def assert_limited(bench: Bench, network: str, *words: str) -> None:
    """A link of 100 Mbit/s carries no more than that, and without a limit it carries more than twice of what it did."""
    link, unlimited = bytes_per_second(bench, *words)
    assert link == network
    link, limited = bytes_per_second(bench, *words, "--link-rate", "100mbit")
    assert link == f"{network} at 100mbit"
    assert 0.5 < limited / (100e6 / 8) < 1.05  # on a quiet machine more than 0.9
    assert unlimited > 2 * limited
