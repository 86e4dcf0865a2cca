"""What the kernel counts for the whole machine, read from files like its own; what is not there is not zero."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from bench.machine.counters import CLOCK_TICKS, PAGE_BYTES, HostCounts, read_host

STAT = (
    "cpu  1000 200 300 99999 500 10 20 70 600 0\n"
    "cpu0 600 100 100 50000 300 5 10 50 300 0\n"
    "cpu1 400 100 200 49999 200 5 10 20 300 0\n"
    "intr 12345 0 0\n"
)
PRESSURE = "some avg10=1.00 avg60=2.00 avg300=3.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=77\n"


def a_proc(root: Path, *, pressure: bool = True) -> Path:
    (root / "stat").write_text(STAT)
    (root / "vmstat").write_text("nr_free_pages 5\npswpin 3\npswpout 4\npgmajfault 9\n")
    if pressure:
        (root / "pressure").mkdir()
        for what, total in (("cpu", 1_500_000), ("io", 2_000_000), ("memory", 500_000)):
            (root / "pressure" / what).write_text(PRESSURE.format(total))
    return root


def test_every_count_of_the_machine_is_read_in_the_unit_of_its_name(tmp_path: Path) -> None:
    assert read_host({0, 1}, a_proc(tmp_path)) == HostCounts(
        host_busy_seconds=1530 / CLOCK_TICKS,  # idle, iowait, steal and guests, which are in user, are left out
        steal_seconds=70 / CLOCK_TICKS,
        pressure_cpu_seconds=1.5,
        pressure_io_seconds=2.0,
        pressure_memory_seconds=0.5,
        swapped_bytes=7 * PAGE_BYTES,
    )


def test_steal_is_counted_on_the_cpus_that_the_node_may_run_on_alone(tmp_path: Path) -> None:
    assert read_host({1}, a_proc(tmp_path)).steal_seconds == 20 / CLOCK_TICKS
    assert read_host({1, 7}, tmp_path).steal_seconds is None


def test_a_kernel_without_pressure_information_says_none_and_the_rest_is_there(tmp_path: Path) -> None:
    found = read_host({0}, a_proc(tmp_path, pressure=False))
    assert (found.pressure_cpu_seconds, found.pressure_io_seconds, found.pressure_memory_seconds) == (None, None, None)
    assert found.steal_seconds == 50 / CLOCK_TICKS


def test_where_nothing_is_counted_all_is_unknown_and_nothing_is_zero(tmp_path: Path) -> None:
    found = read_host({0}, tmp_path)
    assert all(getattr(found, field.name) is None for field in fields(found))
