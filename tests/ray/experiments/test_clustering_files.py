"""Files of vectors on a real Ray: every arm writes and reads the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from bench.errors import DoesNotFit
from bench.experiments import clustering_files as experiment
from bench.experiments.clustering import files
from bench.experiments.clustering_files import ARMS, BUFFERS, Params


@pytest.mark.timeout(180)
def test_a_real_run_measures_every_format_through_every_buffer(two_halves: Any, tmp_path: Path) -> None:
    two_halves.passes = 1
    found = list(experiment.run(Params(kib=64, folder=str(tmp_path)), two_halves))
    assert two_halves.reasons == []
    rates = {(each.arm, each.point) for each in found if each.metric == "read_bytes_per_second" and each.value}
    assert rates == {(arm.name, point) for arm in ARMS for point in ("", *BUFFERS)}
    assert two_halves.credits["binary"] == [{"head": 65_536.0, "worker-1": 65_536.0}] * len(BUFFERS)
    assert len(two_halves.digests) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_node_without_room_is_told_before_anything_is_written(
    two_halves: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_ON_DISK", 10**15)
    with pytest.raises(DoesNotFit, match=r"head has .* MiB free for its files, and needs"):
        list(experiment.run(Params(kib=64, folder=tempfile.gettempdir()), two_halves))
