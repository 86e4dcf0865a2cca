"""Tests that type commands as a user does, and chains of them: once one has failed, the rest is skipped."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from person import Bench

CHAIN = "IS_A_CHAIN"  # set in a module whose tests build on each other, in order


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    module = item.getparent(pytest.Module)
    if report.failed and module is not None and getattr(module.obj, CHAIN, False):
        item.config.stash.setdefault(BROKEN, {}).setdefault(module.name, item.name)
    return report


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is left of a chain that has broken: its own failures would tell nothing, and take their time."""
    module = item.getparent(pytest.Module)
    broken = item.config.stash.get(BROKEN, {}).get(module.name) if module is not None else None
    if broken is not None:
        pytest.skip(f"builds on {broken}, which failed")


BROKEN = pytest.StashKey[dict[str, str]]()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    typed = Bench(tmp_path, environment)
    yield typed
    typed("down")
