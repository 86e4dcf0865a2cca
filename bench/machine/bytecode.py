"""Finds whether Python compiles a package at every start of a process, because it may keep no bytecode."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source, find_spec
from pathlib import Path

SETTING = "bytecode"
NOT_KEPT = "not kept"
FIX = "Unset PYTHONDONTWRITEBYTECODE, or compile the packages once by `python -m compileall`."


def setting() -> dict[str, str]:
    """The setting `bytecode` of a node on which none of Ray's is kept; nothing elsewhere."""
    return {SETTING: NOT_KEPT} if is_compiled_at_every_start() else {}


def is_compiled_at_every_start(package: str = "ray") -> bool:
    """Whether `package` has no bytecode, and Python may keep none when it is imported."""
    spec = find_spec(package)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return False
    cached = Path(cache_from_source(spec.origin))
    return not cached.exists() and (sys.dont_write_bytecode or not os.access(_nearest(cached.parent), os.W_OK))


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())
