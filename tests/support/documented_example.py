"""The experiment that docs/extending.md shows, as a module."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest
from repository import ROOT

from bench.experiments import Experiment

PAGE = ROOT / "docs" / "extending.md"


@pytest.fixture
def broadcast(monkeypatch: pytest.MonkeyPatch) -> Experiment[Any]:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    module = ModuleType("broadcast_of_docs")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "extending.md", "exec"), module.__dict__)  # noqa: S102, it is our own text
    found = module.__dict__["EXPERIMENT"]
    assert isinstance(found, Experiment)
    return found
