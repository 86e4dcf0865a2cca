"""The experiment that CONTRIBUTING shows works as it stands there."""

from __future__ import annotations

from typing import Any

from bench import params as parameters
from bench.experiments import Experiment


def test_it_declares_what_the_command_line_needs(echo: Experiment[Any]) -> None:
    assert set(parameters.declared(echo.params)) == {"calls"}
    assert echo.profiles["tiny"].grids == ({"calls": (100,)},)
    assert echo.guess_pass_seconds(echo.params(calls=10)) == {"ray": (0.01,)}
