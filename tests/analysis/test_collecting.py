from __future__ import annotations

import gc

import pytest

from bench.analysis.collecting import paused


@paused()
def fail() -> None:
    raise KeyError("is on" if gc.isenabled() else "is off")


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_is_afterwards_as_it_was_before(was_on):
    before = gc.isenabled()
    (gc.enable if was_on else gc.disable)()
    try:
        with pytest.raises(KeyError, match="is off"):
            fail()
        assert gc.isenabled() == was_on
    finally:
        (gc.enable if before else gc.disable)()
