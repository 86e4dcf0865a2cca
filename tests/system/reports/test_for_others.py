"""Prometheus reads the OpenMetrics of a report."""

from __future__ import annotations

import subprocess

import pytest
from made_up import made_up

from bench import analysis
from bench.reports import render


def rendered(format, change=lambda runs: runs, **shape):
    session, runs = made_up(**shape)
    runs = change(runs)
    report = analysis.build(session, runs)
    return report, runs, render(format, report, runs)


@pytest.mark.promtool
def test_prometheus_makes_blocks_of_it(tmp_path):
    _, _, text = rendered("openmetrics", cells=1)
    (tmp_path / "session.om").write_text(text)
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", tmp_path / "session.om", tmp_path / "data"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    assert list((tmp_path / "data").glob("*/meta.json"))
