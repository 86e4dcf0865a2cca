"""Generates Grafana's dashboards, which are committed as JSON and checked for drift."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tools.dashboards import experiment, live_run, nodes_and_network, overview, sessions

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders.dashboard import Dashboard

BOARDS: dict[str, Callable[[], Dashboard]] = {
    "overview": overview.build,
    "live-run": live_run.build,
    "nodes-and-network": nodes_and_network.build,
    "experiment": experiment.build,
    "sessions": sessions.build,
}
"""Builds each board of `bench.prometheus.boards.NAMES`."""


def generate() -> dict[str, str]:
    """Return name and content of every board's file."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    texts = {name: json.dumps(build().build(), cls=JSONEncoder) for name, build in BOARDS.items()}
    return {
        f"{name}.json": json.dumps(_in_sight(json.loads(text)), indent=2, sort_keys=True) + "\n"
        for name, text in texts.items()
    }


def _in_sight(value: Any) -> Any:
    """Return `value` without the SDK's setting that hides links and annotations in a menu."""
    if isinstance(value, dict):
        return {key: _in_sight(item) for key, item in value.items() if (key, item) != ("placement", "inControlsMenu")}
    return [_in_sight(item) for item in value] if isinstance(value, list) else value
