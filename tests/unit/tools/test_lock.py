"""The stand-in for PyTorch's index, by which uv.lock is renewed where that index is not reached."""

from __future__ import annotations

import tomllib
import urllib.request

from repository import ROOT

from tools import lock

TEXT = (ROOT / "uv.lock").read_text()
WHEELS = [
    wheel
    for package in tomllib.loads(TEXT)["package"]
    if package["source"].get("registry") == lock.INDEX
    for wheel in package["wheels"]
]


def test_the_stand_in_lists_each_locked_wheel_with_its_hash_and_serves_its_metadata() -> None:
    assert len(WHEELS) == 6
    with lock.stand_in(lock.pages(TEXT)) as address:
        listed = urllib.request.urlopen(f"{address}/torch/").read().decode()
        for wheel in WHEELS:
            path = wheel["url"].removeprefix(lock.INDEX)
            assert f"{path}#{wheel['hash'].replace(':', '=')}" in listed
            metadata = urllib.request.urlopen(f"{address}{path}.metadata").read().decode()
            assert "\nName: torch\n" in metadata
            assert f"\nVersion: {path.split('-')[1].replace('%2B', '+')}\n" in metadata
