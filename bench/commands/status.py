"""Print what is running.

With Grafana it has a link to the dashboards of the newest session. Changes nothing.

Example: bench status
"""

from __future__ import annotations

import typer

from bench import options as o
from bench import targets
from bench.runner import dashboards
from bench.terminal.answers import say_json


def command(deployment: o.DeploymentOptions, target: o.TargetName = "auto", as_json: o.AsJson = False) -> None:
    names = targets.NAMES if target == "auto" else (target,)
    statuses, troubles = targets.ask_each(names, deployment, lambda target: target.status())
    if as_json:
        say_json("status", [_public(name, target_status) for name, target_status in statuses.items()])
    elif statuses:
        typer.echo("\n".join(line for name, target_status in statuses.items() for line in _lines(name, target_status)))
    targets.raise_all(troubles)


def _public(target: str, target_status: targets.TargetStatus) -> dict[str, object]:
    """The status as JSON shows it, with the newest session that has dashboards, the link to them, and that to all sessions."""
    cluster = target_status.cluster
    session, link = dashboards.of_newest(cluster) if cluster else ("", "")
    several = dashboards.side_by_side(cluster) if cluster else ""
    links = {"session": session, "dashboards": link, "sessions_side_by_side": several}
    return {**targets.public(target, target_status), **{name: text or None for name, text in links.items()}}


def _lines(target: str, target_status: targets.TargetStatus) -> list[str]:
    if target_status.cluster is None and not target_status.remains:
        return [f"{target}: nothing is up{f'. {target_status.not_ready}' if target_status.not_ready else ''}"]
    if target_status.cluster is None:
        reason = f" ({target_status.not_ready})" if target_status.not_ready else ""
        return [f"{target}: nothing answers{reason}, and this is left (end it with `bench down`):"] + [
            f"  {remainder}" for remainder in target_status.remains
        ]
    cluster = target_status.cluster
    session, link = dashboards.of_newest(cluster)
    several = dashboards.side_by_side(cluster)
    return [
        f"{target}: {cluster.topology.name} is up: {', '.join(cluster.nodes)}, joined by {cluster.link}",
        f"  dashboard {cluster.dashboard_url}",
        f"  metrics   {cluster.exporter_url}/metrics",
        *([f"  Prometheus {cluster.prometheus_url}"] if cluster.prometheus_url else []),
        *([f"  Grafana   {cluster.grafana_url}"] if cluster.grafana_url else []),
        *([f"  session {session}: {link}"] if link else []),
        *([f"  sessions side by side: {several}"] if several else []),
    ]
