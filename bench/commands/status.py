"""Print what is running.

Changes nothing.

Example: bench status
"""

from __future__ import annotations

import typer

from bench import options as o
from bench import targets
from bench.terminal.answers import say_json


def command(deployment: o.DeploymentOptions, target: o.TargetName = "auto", as_json: o.AsJson = False) -> None:
    names = targets.NAMES if target == "auto" else (target,)
    found, troubles = targets.ask_each(names, deployment, lambda each: each.status())
    if as_json:
        say_json("status", [targets.public(each, standing) for each, standing in found.items()])
    elif found:
        typer.echo("\n".join(line for each, standing in found.items() for line in _lines(each, standing)))
    targets.raise_all(troubles)


def _lines(target: str, standing: targets.Standing) -> list[str]:
    if standing.cluster is None and not standing.leftovers:
        return [f"{target}: nothing is up{f'. {standing.lack}' if standing.lack else ''}"]
    if standing.cluster is None:
        why = f" ({standing.lack})" if standing.lack else ""
        return [f"{target}: nothing answers{why}, and this is left (end it with `bench down`):"] + [
            f"  {leftover}" for leftover in standing.leftovers
        ]
    cluster = standing.cluster
    return [
        f"{target}: {cluster.topology.name} is up: {', '.join(cluster.nodes)}, joined by {cluster.link}",
        f"  dashboard {cluster.dashboard_url}",
        f"  metrics   {cluster.exporter_url}/metrics",
        *([f"  Prometheus {cluster.prometheus_url}"] if cluster.prometheus_url else []),
        *([f"  Grafana   {cluster.grafana_url}"] if cluster.grafana_url else []),
    ]
