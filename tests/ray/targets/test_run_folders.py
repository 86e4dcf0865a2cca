"""The folder of a run leaves room for the names of Ray's sockets."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from bench.targets.local import run_folders
from bench.targets.local.run_folders import SOCKET_BYTES


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, as only the system's own has one."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r") as folder:
        yield Path(folder)


def test_the_longest_name_of_rays_sockets_is_the_one_that_is_reckoned_with(short: Path) -> None:
    """A newer Ray may have a longer one: then every path of the greatest length would fail."""
    utils = import_module("ray.dashboard.utils")
    module = import_module("ray.dashboard.subprocesses.module").SubprocessModule
    names = ["plasma_store", "raylet", *(f"dash_{each.__name__}" for each in utils.get_all_modules(module))]
    longest = max(names, key=len)
    assert run_folders._BELOW.endswith(f"/sockets/{longest}")
    with socket.socket(socket.AF_UNIX) as listener:
        path = f"{short}/{'x' * 200}"[:SOCKET_BYTES]
        assert len(path) == SOCKET_BYTES
        with pytest.raises(OSError, match="too long"):
            listener.bind(f"{path}xx")
