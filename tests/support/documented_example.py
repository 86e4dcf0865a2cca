"""The experiments that the documentation shows, as modules."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from repository import ROOT

from bench.experiments import Experiment


def experiment_in(page: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment[Any]:
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    module = ModuleType(f"shown_in_{page.stem.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, page.name, "exec"), module.__dict__)  # noqa: S102, it is our own text
    found = module.__dict__["EXPERIMENT"]
    assert isinstance(found, Experiment)
    return found


@pytest.fixture
def broadcast(monkeypatch: pytest.MonkeyPatch) -> Experiment[Any]:
    return experiment_in(ROOT / "docs" / "extending.md", monkeypatch)


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Experiment[Any]:
    return experiment_in(ROOT / "CONTRIBUTING.md", monkeypatch)
