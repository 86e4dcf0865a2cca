"""Measures Ray on one node and on several. In Python, `bench.load` reads a session as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.frames import Frames


def load(session: str | Path = "latest", out: str | Path = "results") -> Frames:
    """Return the data frames of a session. Raises BadInput if there is no such session.

    `session`: its id or the beginning of it, a folder, a capsule, or "latest". `out`: the folder that holds the sessions.
    """
    from bench import frames

    return frames.load(str(session), Path(out))
