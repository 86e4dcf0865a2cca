"""Lists the committed boards of Grafana, makes links to them, and says what a Grafana needs to show them.

`tools/dashboards` writes the boards.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bench.package_data import GRAFANA

FOLDER = GRAFANA / "dashboards"
NAMES = ("overview", "live-run", "nodes-and-network", "experiment", "sessions")
HOME = NAMES[0]  # Grafana opens with it
LIVE = "live-run"  # shows a session that is running
SIDE_BY_SIDE = "sessions"  # shows several sessions


def uid(name: str) -> str:
    """The identifier of the board in Grafana, which never changes."""
    return f"raymeter-{name}"


def load(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The committed boards, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def environment(prometheus_url: str, folder: str) -> dict[str, str]:
    """The variables of a Grafana that shows the boards in `folder` with the data of a Prometheus.

    The provisioning names the first two; the third makes Grafana open with HOME.
    """
    return {
        "RAYMETER_PROMETHEUS_URL": prometheus_url,
        "RAYMETER_DASHBOARDS": folder,
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": f"{folder}/{HOME}.json",
    }


def own_grafana(prometheus_url: str) -> dict[str, str]:
    """The variables with which a user's own Grafana on this machine shows the boards of this raymeter."""
    return {"GF_PATHS_PROVISIONING": str(GRAFANA / "provisioning"), **environment(prometheus_url, str(FOLDER))}


def link(grafana_url: str, name: str, *sessions: str, experiment: str, begin: float, end: float | None) -> str:
    """Address of a board that shows an experiment of one or several sessions, from `begin` to `end` in seconds of the wall clock.

    `end` is None while the session is running: the board then follows it.
    """
    query = {
        "var-session": sessions,
        "var-experiment": experiment,
        "from": int(1000 * begin),
        "to": "now" if end is None else int(1000 * end),
    }
    return f"{grafana_url.rstrip('/')}/d/{uid(name)}?{urlencode(query, doseq=True)}"
