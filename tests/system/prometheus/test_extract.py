"""Prometheus reads an extract of a run."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from typing import Any

import pytest
from builders import a_sample, a_spec

from bench.prometheus import extract

SPEC = a_spec()

OF_RUN = {"session": SPEC.session, "run": SPEC.folder, "cluster": "c"}

SAMPLES = (a_sample(1.0, turn=1), a_sample(2.5, turn=2))

SHOWN = {**OF_RUN, "__name__": "bench_sample_value", "metric": SAMPLES[0].metric, "arm": SAMPLES[0].arm}


def as_shown(**changes: Any) -> dict[Any, Any]:
    count = {**OF_RUN, "__name__": "bench_run_samples"}
    points = {"value": [(10.0, 1.0), (12.0, 2.5)], "count": [(10.0, 1.0), (12.0, 2.0)], **changes}
    return {tuple(sorted(SHOWN.items())): points["value"], tuple(sorted(count.items())): points["count"]}


@pytest.mark.promtool
def test_prometheus_makes_blocks_of_an_extract(tmp_path: Path) -> None:
    more = {
        (("__name__", "ray_tasks"), ("Name", 'a "b" \\ c'), ("State", "RUNNING")): [(10.0, 1.0), (12.5, float("nan"))]
    }
    _, file = extract.packed({**as_shown(), **more}, every=1)
    (tmp_path / "one.om").write_bytes(gzip.decompress(file))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", tmp_path / "one.om", tmp_path / "data"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    assert list((tmp_path / "data").glob("*/meta.json"))
