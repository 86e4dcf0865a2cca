"""What the kernel counts, read from cgroup v1, v2 and neither."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import fields
from pathlib import Path

import pytest

from bench.cluster.probe.actor import difference
from bench.cluster.probe.counters import Cgroup, Counters, NodeReader, Processes, Switches, find_cgroup, read_network
from bench.model import NodeUsage

V1 = {
    "cpu/n/cpu.stat": "nr_periods 3076\nnr_throttled 34\nthrottled_time 5\n",
    "cpu/n/cpu.cfs_quota_us": "200000\n",
    "cpu/n/cpu.cfs_period_us": "100000\n",
    "cpuacct/n/cpuacct.usage": "2500000000\n",
    "memory/n/memory.usage_in_bytes": "1000\n",
    "memory/n/memory.stat": "cache 5\ntotal_inactive_file 300\npgmajfault 1\ntotal_pgmajfault 12\n",
    "memory/n/memory.limit_in_bytes": "4096\n",
}
V2 = {
    "cgroup.controllers": "cpu memory\n",
    "n/cpu.stat": "usage_usec 2500000\nnr_periods 3076\nnr_throttled 34\n",
    "n/cpu.max": "200000 100000\n",
    "n/memory.current": "1000\n",
    "n/memory.stat": "anon 5\ninactive_file 300\npgmajfault 12\n",
    "n/memory.max": "4096\n",
}


def a_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_both_versions_of_cgroups_say_the_same(tmp_path: Path, files: dict[str, str]) -> None:
    cgroup = find_cgroup({"RAYMETER_NODE_CGROUP": "n"}, a_tree(tmp_path, files))
    assert cgroup.cpu_seconds() == 2.5
    assert cgroup.throttling() == (3076, 34)
    assert cgroup.memory_bytes() == 700
    assert cgroup.memory_limit_bytes() == 4096
    assert cgroup.major_faults() == 12


def test_no_limit_is_none_and_not_a_number(tmp_path: Path) -> None:
    files = {**V1, "memory/n/memory.limit_in_bytes": "9223372036854771712\n"}
    assert Cgroup(1, "n", a_tree(tmp_path, files)).memory_limit_bytes() is None


def test_a_container_reads_the_root_of_what_it_sees(tmp_path: Path) -> None:
    a_tree(tmp_path, {name.replace("n/", "", 1): text for name, text in V2.items()})
    assert find_cgroup({}, tmp_path).cpu_seconds() == 2.5


def test_counters_that_are_missing_are_unknown_and_not_zero(tmp_path: Path) -> None:
    cgroup = find_cgroup({"RAYMETER_NODE_CGROUP": "n"}, tmp_path)
    assert (cgroup.cpu_seconds(), cgroup.throttling(), cgroup.memory_bytes()) == (None, (None, None), None)
    assert cgroup.major_faults() is None


def test_bytes_of_every_interface_but_loopback_are_counted(tmp_path: Path) -> None:
    head = "Inter-|   Receive |  Transmit\n face |bytes packets errs ...\n"
    columns = "{} 5 0 0 0 0 0 0 {} 6 0 0 0 0 0 0"
    a_tree(
        tmp_path,
        {
            "dev": head + f"    lo: {columns.format(999, 999)}\n  eth0: {columns.format(100, 200)}\n"
            f"eth1:{columns.format(10, 20)}\n",
            "snmp": "Ip: Forwarding\nIp: 1\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 7 0\n",
        },
    )
    assert read_network(tmp_path) == {
        "received_bytes": 110,
        "sent_bytes": 220,
        "received_packets": 10,
        "sent_packets": 12,
        "retransmits": 7,
    }


def test_on_loopback_no_bytes_are_counted_rather_than_wrong_ones() -> None:
    reader = NodeReader({"RAYMETER_NODE_CGROUP": "", "RAYMETER_LINK": "loopback, no bytes counted"})
    assert reader.counters().sent_bytes is None
    assert reader.moment(anew=True).sent_bytes is None


def test_only_the_processes_of_this_node_and_their_children_are_counted() -> None:
    marked, nowhere = frozenset({b"RAYMETER_NODE=of-this-test"}), Cgroup(0, "")
    command = ["/bin/sh", "-c", "/usr/bin/env -i /bin/sleep 30 & echo $!; wait"]
    with subprocess.Popen(
        command, env={"RAYMETER_NODE": "of-this-test"}, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as shell:
        try:
            assert shell.stdout
            child = shell.stdout.readline().strip()
            assert {path.name for path in Processes(nowhere, marked)} == {str(shell.pid), child}
            assert not list(Processes(nowhere, frozenset({b"RAYMETER_NODE=of-nobody"})))
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def test_a_node_is_counted_with_its_host_and_with_the_time_that_it_was_watched() -> None:
    read = NodeReader(
        {"RAYMETER_NODE_CGROUP": "", "RAYMETER_LINK": "loopback", "RAYMETER_NODE": "of-this-test"}
    ).counters
    before = read()
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    counted = difference(before, read())
    assert counted["watched_seconds"] >= 0.1
    assert counted["host_busy_seconds"] >= 0.05  # the kernel counts in ticks of 10 ms
    assert counted["major_faults"] is not None
    assert set(counted) <= {field.name for field in fields(NodeUsage)}


SWITCHES = "Name:\tray::IDLE\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n"


def in_folders(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> Processes:
    """The processes whose folders these are."""
    monkeypatch.setattr(Processes, "__iter__", lambda _self: iter(folders))
    return Processes(Cgroup(0, ""), frozenset())


def test_threads_that_wait_for_a_cpu_or_leave_it_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "7/task/7/schedstat": "5 2000000000 9\n",
        "7/task/7/status": SWITCHES.format(30, 4),
        "7/task/8/schedstat": "5 500000000 9\n",
        "7/task/8/status": SWITCHES.format(1, 2),
        "8/stat": "8 (x) S\n",
    }
    a_tree(tmp_path, files)
    counted = {"run_queue_wait_seconds": 2.5, "voluntary_switches": 31, "involuntary_switches": 6}
    assert in_folders(monkeypatch, tmp_path / "7", tmp_path / "8").scheduling({}) == counted
    assert set(in_folders(monkeypatch, tmp_path / "8").scheduling({}).values()) == {None}


def test_a_kernel_that_counts_no_switches_has_not_seen_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_tree(tmp_path, {"7/task/7/schedstat": "0 100 1\n", "7/task/7/status": SWITCHES.format(0, 0)})
    counted = in_folders(monkeypatch, tmp_path / "7").scheduling({})
    assert counted == {"run_queue_wait_seconds": 1e-7, "voluntary_switches": None, "involuntary_switches": None}


def test_a_thread_that_has_not_run_since_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for thread in "78":
        a_tree(tmp_path, {f"7/task/{thread}/schedstat": "5 0 9\n", f"7/task/{thread}/status": SWITCHES.format(10, 1)})
    here = in_folders(monkeypatch, tmp_path / "7")
    known: dict[str, Switches] = {}
    here.scheduling(known)
    for thread in "78":
        a_tree(tmp_path, {f"7/task/{thread}/status": SWITCHES.format(20, 5)})
    a_tree(tmp_path, {"7/task/8/schedstat": "6 0 10\n"})
    assert here.scheduling(known)["voluntary_switches"] == 30
    (tmp_path / "7/task/8/schedstat").unlink()
    assert here.scheduling(known)["voluntary_switches"] == 10
    assert len(known) == 1


def test_what_was_counted_is_the_difference_and_a_fall_is_unknown() -> None:
    counted = difference(
        Counters(cpu_seconds=1.0, sent_bytes=5, disk_read_bytes=9),
        Counters(cpu_seconds=3.5, sent_bytes=6, disk_read_bytes=4),
    )
    assert (counted["cpu_seconds"], counted["sent_bytes"], counted["disk_read_bytes"]) == (2.5, 1, None)
    assert counted["received_bytes"] is None
