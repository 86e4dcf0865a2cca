"""A copy of memory is timed, and what is copied is all of it."""

from __future__ import annotations

import pytest

from bench.cluster import memory_copy


def test_the_rate_is_that_of_the_middle_copy_and_the_first_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([9.0, 0.5, 0.25, 1.0])
    monkeypatch.setattr(memory_copy, "_seconds", lambda _source, _target: next(seconds))
    assert memory_copy.bytes_per_second(1000, copies=3) == 2000.0


def test_every_byte_is_copied() -> None:
    source, target = memoryview(b"\x01" * 1000), memoryview(bytearray(1000))
    assert memory_copy._seconds(source, target) >= 0
    assert target == source
