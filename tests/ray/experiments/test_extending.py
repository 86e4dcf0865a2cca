"""The experiment that docs/extending.md shows measures what it says."""

from __future__ import annotations

from typing import Any

import pytest


def test_its_goodput_counts_every_reader(broadcast: Any, context: Any) -> None:
    samples = list(broadcast.run(broadcast.params(object_kib=64, readers=3), context))
    values = {sample.metric: sample.value for sample in samples}
    read_bytes = values["goodput_bytes_per_second"] * values["broadcast_seconds"]
    assert read_bytes == pytest.approx(3 * 64 * 1024)
    assert all(credit == {"head": 3} for credit in context.credits["ray"])
