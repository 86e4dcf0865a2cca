"""Inside: what the kernel has counted for the node that this process is on, in cgroup v1 and v2 and without."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from bench.machine.counters import CLOCK_TICKS, PAGE_BYTES, HostCounts, read_host

CGROUP_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class Counters(HostCounts):
    """Cumulative counts of one node and of its host. None: it cannot be counted here."""

    watched_seconds: float | None = None  # the clock itself: what is counted is counted from one reading to the next
    cpu_seconds: float | None = None
    run_queue_wait_seconds: float | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    major_faults: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    received_packets: int | None = None
    sent_packets: int | None = None
    retransmits: int | None = None
    periods: int | None = None
    throttled_periods: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes: int | None = None


@dataclass(frozen=True)
class Cgroup:
    """A node's control group: which of its files say what. `kind` is 1 or 2; 0 where there is none of its own."""

    kind: int
    path: str  # below the root, without a slash in front
    root: Path = CGROUP_ROOT

    def read(self, controller: str, name: str) -> str | None:
        """A file of the group, None where the kernel has none."""
        if not self.kind:
            return None
        folder = self.root / controller / self.path if self.kind == 1 else self.root / self.path
        try:
            return (folder / name).read_text()
        except OSError:
            return None

    def cpu_seconds(self) -> float | None:
        if self.kind == 1:
            text = self.read("cpuacct", "cpuacct.usage")
            return int(text) / 1e9 if text else None
        used = _fields(self.read("cpu", "cpu.stat")).get("usage_usec")
        return None if used is None else used / 1e6

    def throttling(self) -> tuple[int | None, int | None]:
        """Scheduler periods so far, and those in which the quota ran out."""
        stat = _fields(self.read("cpu", "cpu.stat"))
        return stat.get("nr_periods"), stat.get("nr_throttled")

    def memory_bytes(self) -> int | None:
        """Memory in use, shared memory with it, file cache that could be dropped without it."""
        used = self.read("memory", "memory.usage_in_bytes" if self.kind == 1 else "memory.current")
        if not used:
            return None
        stat = _fields(self.read("memory", "memory.stat"))
        return int(used) - stat.get("total_inactive_file" if self.kind == 1 else "inactive_file", 0)

    def major_faults(self) -> int | None:
        """Page faults that had to wait for a disk."""
        return _fields(self.read("memory", "memory.stat")).get("total_pgmajfault" if self.kind == 1 else "pgmajfault")

    def memory_limit_bytes(self) -> int | None:
        text = self.read("memory", "memory.limit_in_bytes" if self.kind == 1 else "memory.max")
        limit = int(text) if text and text.strip() != "max" else None
        return limit if limit is not None and limit < 2**60 else None


def find_cgroup(environment: Mapping[str, str], root: Path = CGROUP_ROOT) -> Cgroup:
    """The node's own group: the one that the target names, or a container's, which is the root of what it sees."""
    kind = 2 if (root / "cgroup.controllers").exists() else 1 if (root / "cpu").is_dir() else 0
    named = environment.get("RAYMETER_NODE_CGROUP")
    if named is None:
        return Cgroup(kind, "", root)
    return Cgroup(kind if named else 0, named, root)


def read_bytes(proc: Path = Path("/proc/self/net")) -> dict[str, int]:
    """Bytes and packets in and out of every interface but loopback."""
    totals = dict.fromkeys(("received_bytes", "received_packets", "sent_bytes", "sent_packets"), 0)
    for line in (proc / "dev").read_text().splitlines()[2:]:
        interface, _, rest = line.partition(":")
        if interface.strip() == "lo":
            continue
        columns = rest.split()
        for name, column in zip(totals, (0, 1, 8, 9), strict=True):
            totals[name] += int(columns[column])
    return totals


def read_network(proc: Path = Path("/proc/self/net")) -> dict[str, int]:
    """The same, and TCP segments sent again."""
    names, values = [line.split()[1:] for line in (proc / "snmp").read_text().splitlines() if line.startswith("Tcp:")]
    return {**read_bytes(proc), "retransmits": int(values[names.index("RetransSegs")])}


@dataclass(frozen=True, slots=True)
class Switches:
    """How often a thread was given a CPU, and left one: because it waited for something, or had to."""

    runs: int
    voluntary: int
    involuntary: int


@dataclass(frozen=True)
class Processes:
    """The processes of a node: those of its control group, of its container, or that carry its name and their children."""

    cgroup: Cgroup
    marks: frozenset[bytes]  # of the environment; empty: every process that can be seen
    listed: tuple[Path, ...] | None = None  # these, whichever came or went since; None: they are looked for each time

    def __iter__(self) -> Iterator[Path]:
        if self.listed is not None:
            return iter(self.listed)
        if self.cgroup.path:
            ids = (self.cgroup.read("cpu", "cgroup.procs") or "").split()
        else:
            ids = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
            ids = sorted(self._marked(ids)) if self.marks else ids
        return iter([Path("/proc") / number for number in ids])

    def now(self) -> Processes:
        """Those that live now: to look for them takes longer than to read them."""
        return replace(self, listed=tuple(self))

    def _marked(self, ids: list[str]) -> set[str]:
        """Those that carry the marks, and their descendants: a process that renames itself shows no environment."""
        children: dict[str, list[str]] = {}
        marked = []
        for number in ids:
            stat = _text(Path("/proc") / number / "stat").rpartition(")")[2].split()
            if stat:
                children.setdefault(stat[1], []).append(number)
            if self.marks.issubset(_bytes(Path("/proc") / number / "environ").split(b"\0")):
                marked.append(number)
        found: set[str] = set()
        while marked:
            number = marked.pop()
            if number not in found:
                found.add(number)
                marked += children.get(number, [])
        return found

    def disk_bytes(self) -> tuple[int, int]:
        """Bytes read from and written to disks by those that live."""
        read = written = 0
        for path in self:
            found = _fields(_text(path / "io"), separator=":")
            read += found.get("read_bytes", 0)
            written += found.get("write_bytes", 0)
        return read, written

    def cpu_seconds(self) -> float:
        """CPU time of those that live and of their children that have ended."""
        ticks = 0
        for path in self:
            stat = _text(path / "stat").rpartition(")")[2].split()
            ticks += sum(int(field) for field in stat[11:15])
        return ticks / CLOCK_TICKS

    def major_faults(self) -> int:
        """Page faults that had to wait for a disk, of those that live and of their children that have ended."""
        stats = [_text(path / "stat").rpartition(")")[2].split() for path in self]
        return sum(int(stat[9]) + int(stat[10]) for stat in stats if stat)

    def scheduling(self, known: dict[str, Switches]) -> dict[str, float | int | None]:
        """How long the threads that live were fit to run and had no CPU, and how often they left one; None where the kernel does not say.

        `known` is what was read of each thread before: a thread that has not run since is not read again.
        """
        waits = [0]
        found: dict[str, Switches] = {}
        for path in self:
            for thread, wait, runs in _schedstats(f"{path}/task"):
                waits.append(wait)
                before = known.get(thread)
                found[thread] = before if before and before.runs == runs else _switches(thread, runs)
        known.clear()
        known.update(found)
        counted = any(
            each.voluntary or each.involuntary for each in found.values()
        )  # some kernels say 0 of all threads
        return {
            "run_queue_wait_seconds": sum(waits) / 1e9 if found else None,
            "voluntary_switches": sum(each.voluntary for each in found.values()) if counted else None,
            "involuntary_switches": sum(each.involuntary for each in found.values()) if counted else None,
        }

    def memory_bytes(self) -> int:
        """Their resident memory, shared pages counted once to each: an upper bound."""
        pages = [_text(path / "statm").split() for path in self]  # nothing, of one that has ended since
        return sum(int(fields[1]) for fields in pages if fields) * PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Moment:
    """What is read of a node many times a second. Counts are cumulative; None: it cannot be counted here."""

    at: float  # on the monotonic clock
    unsure_seconds: float  # that the counts may be older or newer: who reads them may have to wait for a CPU
    memory_bytes: int
    cpu_seconds: float | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None


class NodeReader:
    """Reads the counters of the node that this process is on."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._cgroup = find_cgroup(environment)
        is_container = "RAYMETER_NODE_CGROUP" not in environment
        marks = () if is_container else ("RAYMETER_DEPLOYMENT", "RAYMETER_NODE")
        self._processes = Processes(
            self._cgroup, frozenset(f"{name}={environment.get(name, '')}".encode() for name in marks)
        )
        self._counts_bytes = not environment.get("RAYMETER_LINK", "").startswith("loopback")
        self._has_cgroup = self._cgroup.cpu_seconds() is not None
        self._known: dict[str, Switches] = {}
        self._recent = self._processes  # those that `moment` reads
        self._earlier_cpu_seconds = (
            0.0  # of processes that it read before, less what others had used when they were found
        )

    def counters(self) -> Counters:
        """All of them."""
        read_bytes, written_bytes = self._processes.disk_bytes()
        periods, throttled = self._cgroup.throttling() if self._has_cgroup else (None, None)
        faults = self._cgroup.major_faults()
        return Counters(
            **vars(read_host(os.sched_getaffinity(0))),
            watched_seconds=monotonic(),
            cpu_seconds=self._cgroup.cpu_seconds() if self._has_cgroup else self._processes.cpu_seconds(),
            major_faults=self._processes.major_faults() if faults is None else faults,
            periods=periods,
            throttled_periods=throttled,
            disk_read_bytes=read_bytes,
            disk_written_bytes=written_bytes,
            **self._processes.scheduling(self._known),  # type: ignore[arg-type]  # each field has what its kind is
            **(read_network() if self._counts_bytes else {}),
        )

    def memory_bytes(self) -> int:
        """Memory in use."""
        return self._memory_bytes(self._processes)

    def disk_bytes(self) -> tuple[int, int]:
        """Bytes read from and written to disks, by the processes that `moment` read last."""
        return self._recent.disk_bytes()

    def moment(self, *, anew: bool) -> Moment:
        """The few that tell how busy the node is. `anew`: where processes are read, look for new ones first."""
        if not self._has_cgroup and anew:
            last, self._recent = self._recent, self._processes.now()
            self._earlier_cpu_seconds += last.cpu_seconds() - self._recent.cpu_seconds()
        begin = monotonic()
        cpu_seconds = (
            self._cgroup.cpu_seconds() if self._has_cgroup else self._earlier_cpu_seconds + self._recent.cpu_seconds()
        )
        network = read_bytes() if self._counts_bytes else {}
        unsure_seconds = (monotonic() - begin) / 2
        return Moment(
            at=begin + unsure_seconds,
            unsure_seconds=unsure_seconds,
            memory_bytes=self._memory_bytes(self._recent),
            cpu_seconds=cpu_seconds,
            received_bytes=network.get("received_bytes"),
            sent_bytes=network.get("sent_bytes"),
        )

    def _memory_bytes(self, processes: Processes) -> int:
        used = self._cgroup.memory_bytes() if self._has_cgroup else None
        return processes.memory_bytes() if used is None else used


def _fields(text: str | None, separator: str | None = None) -> dict[str, int]:
    """`name value` lines as a dict."""
    pairs = (line.split(separator) for line in (text or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].strip().isdigit()}


def _schedstats(folder: str) -> Iterator[tuple[str, int, int]]:
    """Of each thread below `folder`, of which there are hundreds: its own, its nanoseconds in the run queue, its turns on a CPU."""
    try:
        threads = os.listdir(folder)  # noqa: PTH208, a Path for each would take ten times as long
    except OSError:
        return
    for thread in threads:
        fields = _bytes(f"{folder}/{thread}/schedstat").split()
        if fields:
            yield f"{folder}/{thread}", int(fields[1]), int(fields[2])


def _switches(thread: str, runs: int) -> Switches:
    counted = {}
    for line in _bytes(f"{thread}/status").rsplit(b"\n", 3):  # they are its last lines
        name, _, number = line.partition(b"ctxt_switches:")
        if number:
            counted[name] = int(number)
    return Switches(runs, counted.get(b"voluntary_", 0), counted.get(b"nonvoluntary_", 0))


def _text(path: Path) -> str:
    """A file of /proc; empty if its process has ended."""
    try:
        return path.read_text(errors="replace")  # the name of a process may end within a character
    except OSError:
        return ""


def _bytes(path: Path | str) -> bytes:
    """A file of /proc that need not be text; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123, see above
            return file.read()
    except OSError:
        return b""
