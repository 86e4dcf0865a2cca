"""Whole sessions, typed as a person types them, on the real thing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from person import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    typed = Bench(tmp_path, environment)
    yield typed
    typed("down")
