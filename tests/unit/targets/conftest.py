"""What the tests of targets share: a state folder of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.targets.local import namespaces


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test sees the deployments of whoever runs it."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def isolated() -> None:
    """Skip where nodes cannot have network namespaces."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if reason := namespaces.why_unavailable():
        pytest.skip(reason)
