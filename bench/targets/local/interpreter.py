"""Finds a path of Python for Ray, which starts workers through a shell and quotes neither spaces nor quotes in that path."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from bench.targets.local.run_folders import is_plain

LINK = "python"


def link(run_folder: Path, executable: str = sys.executable) -> None:
    """Make a link in `run_folder` to the environment of `executable`, where a path of that, or of Ray, is not plain."""
    if not all(map(is_plain, (executable, *_ray_folders()))):
        (run_folder / LINK).symlink_to(_environment(executable), target_is_directory=True)


def path(run_folder: Path, executable: str = sys.executable) -> str:
    """The path of `executable` for the processes of nodes: by the link, where one was made."""
    linked = run_folder / LINK
    if not linked.is_symlink():
        return executable
    # Python takes the environment from the path that it is called by, so that Ray's own files have plain paths too.
    return str(linked / Path(executable).relative_to(_environment(executable)))


def _environment(executable: str) -> Path:
    return Path(executable).parent.parent


def _ray_folders() -> list[str]:
    found = find_spec("ray")
    return list(found.submodule_search_locations or ()) if found else []
