"""The boards of Grafana: generated here, committed as JSON, and checked for drift."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import Dashboard

FOLDER = Path(__file__).parents[2] / "grafana/dashboards"

_MODULES = {
    "side-by-side": "bench.dashboards.side_by_side",
    "live-run": "bench.dashboards.live_run",
    "nodes-and-network": "bench.dashboards.nodes_and_network",
    "experiment": "bench.dashboards.experiment",
}
NAMES = tuple(_MODULES)


def uid(name: str) -> str:
    """What Grafana knows the board by, for ever."""
    return f"raymeter-{name}"


def generate() -> dict[str, str]:
    """File name and content of every board."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    boards: dict[str, Callable[[], Dashboard]] = {name: import_module(path).build for name, path in _MODULES.items()}
    texts = {name: json.dumps(build().build(), cls=JSONEncoder) for name, build in boards.items()}
    return {
        f"{name}.json": json.dumps(_in_sight(json.loads(text)), indent=2, sort_keys=True) + "\n"
        for name, text in texts.items()
    }


def _in_sight(value: Any) -> Any:
    """`value` without the SDK's wish that links and annotations be in a menu of their own."""
    if isinstance(value, dict):
        return {key: _in_sight(each) for key, each in value.items() if (key, each) != ("placement", "inControlsMenu")}
    return [_in_sight(each) for each in value] if isinstance(value, list) else value


def load(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The committed boards, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def link(grafana_url: str, name: str, *, session: str, experiment: str, begin: float, end: float) -> str:
    """Where a board shows an experiment of a session, from `begin` to `end` in seconds of the wall clock."""
    query = {
        "var-session": session,
        "var-experiment": experiment,
        "from": int(1000 * begin),
        "to": int(1000 * end),
    }
    return f"{grafana_url.rstrip('/')}/d/{uid(name)}?{urlencode(query)}"
