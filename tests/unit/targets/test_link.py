"""The rate of a node's link, and the command that sets it."""

from __future__ import annotations

import pytest

from bench.errors import BadInput
from bench.options import TARGETS
from bench.targets import create, link


@pytest.mark.parametrize(("text", "bits"), [("1gbit", 1e9), ("100mbit", 1e8), ("2.5gbit", 2.5e9), ("1500kbit", 1.5e6)])
def test_a_rate_is_read(text: str, bits: float) -> None:
    assert link.bits_per_second(text) == bits


@pytest.mark.parametrize("text", ["", "fast", "1", "1gb", "-1gbit", "1 gbit", "0mbit", "1kbit", "1e3mbit", "999gbit"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="must be a rate"):
        link.bits_per_second(text)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_refuses_what_is_no_rate(target: str) -> None:
    with pytest.raises(BadInput, match="--link-rate must be a rate from 1mbit to 100gbit, got 'fast'"):
        create(target, {"link_rate": "fast"})


def test_the_network_of_a_record_has_the_rate_of_its_links() -> None:
    assert link.describe("pod network", None) == "pod network"
    assert link.describe("pod network", "100mbit") == "pod network at 100mbit"


@pytest.mark.parametrize(("rate", "bytes_per_second"), [("1mbit", 125e3), ("100mbit", 12.5e6), ("10gbit", 1.25e9)])
def test_a_link_holds_a_frame_and_little_more_than_its_rate_carries_in_a_tick(
    rate: str, bytes_per_second: float
) -> None:
    command = link.shaping_command(rate)
    numbers = dict(zip(command[-6::2], command[-5::2], strict=True))
    assert numbers["rate"] == rate
    assert int(numbers["burst"]) == pytest.approx(max(bytes_per_second * 0.004, 16384))
    assert int(numbers["limit"]) > int(numbers["burst"])
