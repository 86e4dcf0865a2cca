"""The experiment that CONTRIBUTING shows works as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import params as parameters
from bench.experiments import Experiment

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    module = ModuleType("echo_of_contributing")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)  # noqa: S102, it is our own text
    return module  # type: ignore[return-value]


def test_it_declares_what_the_command_line_needs(echo: Experiment) -> None:
    assert set(parameters.declared(echo.Params)) == {"calls"}
    assert echo.PROFILES["tiny"].grids == ({"calls": (100,)},)
    assert echo.guess_pass_seconds(echo.Params(calls=10)) > 0


@pytest.mark.ray
def test_it_measures_and_credits_the_nodes_that_did_the_work(echo: Experiment, context: Any) -> None:
    samples = list(echo.run(echo.Params(calls=20), context))
    assert all(sample.value and sample.value > 0 for sample in samples)
    assert samples
    assert context.credits["ray"]
    assert all(credit == {"head": 20} for credit in context.credits["ray"])
