"""Finds the control groups that limit this process: its own and their visible parents, of version 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path("/")


def folders(wanted: frozenset[str], root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """The folders of these controllers, with their kind: "cgroup" is version 1, "cgroup2" version 2. Files are read below `root`."""
    groups = _own_groups(root)
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind, options = before.split(), after.split()[:1], after.split()[-1:]
        if len(fields) < 5 or kind not in (["cgroup"], ["cgroup2"]):
            continue
        controllers = wanted & {*options[0].split(",")} if kind == ["cgroup"] else {""}
        mount_root, mount_point = PurePosixPath(fields[3]), root / fields[4].lstrip("/")
        for controller in controllers:
            yield from ((kind[0], folder) for folder in _upwards(groups.get(controller, "/"), mount_root, mount_point))


def _own_groups(root: Path) -> dict[str, str]:
    """This process's group by controller; that of cgroup v2 is under the empty name."""
    groups: dict[str, str] = {}
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        groups |= dict.fromkeys(controllers.split(","), path)
    return groups


def _upwards(path: str, mount_root: PurePosixPath, mount_point: Path) -> Iterator[Path]:
    """The folders from a group up to the mount's top. In containers a group may lie outside the mount, and the top stands for it."""
    below = PurePosixPath(path)
    parts = below.relative_to(mount_root).parts if below.is_relative_to(mount_root) else ()
    if ".." in parts:  # a group of another namespace
        parts = ()
    for depth in range(len(parts), -1, -1):
        yield mount_point.joinpath(*parts[:depth])


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
