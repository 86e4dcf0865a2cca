"""Lists the committed boards of Grafana, and makes links to them. `tools/dashboards` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

FOLDER = Path(__file__).parents[2] / "grafana/dashboards"
NAMES = ("side-by-side", "live-run", "nodes-and-network", "experiment")


def uid(name: str) -> str:
    """The identifier of the board in Grafana, which never changes."""
    return f"raymeter-{name}"


def load(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The committed boards, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def link(grafana_url: str, name: str, *, session: str, experiment: str, begin: float, end: float) -> str:
    """Address of a board that shows an experiment of a session, from `begin` to `end` in seconds of the wall clock."""
    query = {
        "var-session": session,
        "var-experiment": experiment,
        "from": int(1000 * begin),
        "to": int(1000 * end),
    }
    return f"{grafana_url.rstrip('/')}/d/{uid(name)}?{urlencode(query)}"
