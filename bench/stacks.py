"""What a profile is: stacks, and how much of the whole each had, as collapsed lines, `outer;inner 1234`, of one file.

Flame graphs are drawn from such lines, and https://speedscope.app opens them. Nothing in them is ever run: of a stranger's
profile no more is taken than names and whole numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

MOST_BYTES = 128 * 2**10  # of one file
LEFT_OUT = "(left out)"  # what the lightest stacks are added up to where a file would be larger
_LINE = re.compile(r"(.+) (\d{1,18})")
_FILE = re.compile(r"profile\.([a-z-]+)\.([A-Za-z0-9_-]+)\.folded")

Stacks = Mapping[tuple[str, ...], int]
"""By stack, the outermost frame first: microseconds, or bytes."""


@dataclass(frozen=True, kw_only=True)
class Profiler:
    """One that can be asked for: what it counts, in which unit, and what must be known to read it."""

    unit: str
    counts: str


PROFILERS = {
    "py-spy": Profiler(unit="us", counts="time on a CPU, of all threads, 100 looks a second"),
    "pyinstrument": Profiler(unit="us", counts="time that passed, waits too, of the main thread"),
    "memray": Profiler(unit="B", counts="memory that was held when the process held most"),
}
DRIVER = "driver"


def file_name(profiler: str, where: str) -> str:
    """Of the profile of the driver, or of the workers on the node `where`."""
    return f"profile.{profiler}.{where}.folded"


def read_name(name: str) -> tuple[str, str] | None:
    """The profiler, and whom it watched; None where the file is no profile."""
    match = _FILE.fullmatch(name)
    return (match[1], match[2]) if match and match[1] in PROFILERS else None


def parse(text: str) -> Counter[tuple[str, ...]]:
    """The stacks of a file. A line that is none is left out."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            found[tuple(match[1].split(";"))] += int(match[2])
    return found


def write(stacks: Stacks, most_bytes: int = MOST_BYTES) -> str:
    """Lines of at most `most_bytes`, the heaviest stack first; what has no room is added up, so that the sum stays."""
    lines, left, room = [], 0, most_bytes - 64  # for the line that says what was left out
    for stack, weight in sorted(stacks.items(), key=lambda item: (-item[1], item[0])):
        line = f"{';'.join(stack)} {weight}\n"
        room -= len(line.encode())
        if room < 0:
            left += weight
        elif weight:
            lines.append(line)
    return "".join(lines) + (f"{LEFT_OUT} {left}\n" if left else "")


def merged(several: Iterable[Stacks]) -> Counter[tuple[str, ...]]:
    """The stacks of several processes as those of one."""
    found: Counter[tuple[str, ...]] = Counter()
    for stacks in several:
        found.update(stacks)
    return found


def below(stacks: Stacks, function: str) -> Counter[tuple[str, ...]]:
    """Those stacks that `function` is in, from there on."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack, weight in stacks.items():
        if function in stack:
            found[stack[stack.index(function) :]] += weight
    return found


@dataclass
class Frame:
    """A function where it was called from: what it had with all that it called, and these."""

    name: str
    total: int = 0
    called: dict[str, Frame] = field(default_factory=dict)


def tree(stacks: Stacks) -> Frame:
    """All stacks as one tree, from a frame that stands for the whole."""
    whole = Frame("all", sum(stacks.values()))
    for stack, weight in stacks.items():
        frame = whole
        for name in stack:
            frame = frame.called.setdefault(name, Frame(name))
            frame.total += weight
    return whole


def by_function(stacks: Stacks) -> Iterator[tuple[str, int, int]]:
    """Each function with what it had itself and what it had with all that it called, the most of its own first."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, weight in stacks.items():
        own[stack[-1]] += weight
        whole.update(dict.fromkeys(stack, weight))
    for name, total in sorted(whole.items(), key=lambda item: (-own[item[0]], -item[1], item[0])):
        yield name, own[name], total
