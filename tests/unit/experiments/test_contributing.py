"""The experiment that CONTRIBUTING shows works as it stands there."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest
from repository import ROOT

from bench import params as parameters
from bench.experiments import Experiment

TEXT = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Experiment[Any]:
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    module = ModuleType("echo_of_contributing")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)  # noqa: S102, it is our own text
    found = module.__dict__["EXPERIMENT"]
    assert isinstance(found, Experiment)
    return found


def test_it_declares_what_the_command_line_needs(echo: Experiment[Any]) -> None:
    assert set(parameters.declared(echo.params)) == {"calls"}
    assert echo.profiles["tiny"].grids == ({"calls": (100,)},)
    assert echo.guess_pass_seconds(echo.params(calls=10)) > 0


@pytest.mark.ray
def test_it_measures_and_credits_the_nodes_that_did_the_work(echo: Experiment[Any], context: Any) -> None:
    samples = list(echo.run(echo.params(calls=20), context))
    assert all(sample.value and sample.value > 0 for sample in samples)
    assert samples
    assert context.credits["ray"]
    assert all(credit == {"head": 20} for credit in context.credits["ray"])
