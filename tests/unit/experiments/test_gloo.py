"""Which interface an address belongs to, as gloo is told."""

from __future__ import annotations

import psutil
import pytest

from bench.experiments.toolkit.gloo import interface_of


def test_every_address_that_this_machine_lists_leads_to_its_interface() -> None:
    listed = [
        (name, entry.address)
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family.name in ("AF_INET", "AF_INET6")
    ]
    assert listed
    assert all(interface_of(address) == name for name, address in listed)


@pytest.mark.parametrize("address", ["127.0.0.2", "127.0.0.200", "127.254.1.9"])
def test_an_address_of_loopback_that_is_not_listed_leads_to_loopback(address: str) -> None:
    assert interface_of(address) == interface_of("127.0.0.1")


def test_an_address_that_this_machine_has_not_got_is_refused() -> None:
    with pytest.raises(OSError, match=r"no network interface has the address 203\.0\.113\.7"):
        interface_of("203.0.113.7")
