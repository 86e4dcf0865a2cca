"""Finds a path of Python without spaces or quotes: Ray starts workers through a shell and does not quote it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from bench.targets.local.run_folders import is_plain

LINK = "python"


def link(run_folder: Path, executable: str = sys.executable) -> None:
    """Make a link in `run_folder` to the environment of `executable`, if its path or Ray's needs quoting."""
    if not all(map(is_plain, (executable, *_ray_folders()))):
        (run_folder / LINK).symlink_to(_environment(executable), target_is_directory=True)


def path(run_folder: Path, executable: str = sys.executable) -> str:
    """The path of `executable` for the processes of nodes, through the link if there is one."""
    linked = run_folder / LINK
    if not linked.is_symlink():
        return executable
    # Python derives its environment from the path that it is started by, so Ray's files get plain paths, too.
    return str(linked / Path(executable).relative_to(_environment(executable)))


def _environment(executable: str) -> Path:
    return Path(executable).parent.parent


def _ray_folders() -> list[str]:
    spec = find_spec("ray")
    return list(spec.submodule_search_locations or ()) if spec else []
