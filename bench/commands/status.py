"""`bench status`: what is up, and what is left of what was."""

from __future__ import annotations

import typer

from bench import targets
from bench.commands import options as o


def command(target: o.TargetName = "auto", name: o.Appliance = "raymeter", context: o.Context = None) -> None:
    """Say what is up. Looks, and changes nothing.

    Example: bench status
    """
    options = targets.Options(name=name, context=context)
    names = targets.NAMES if target == "auto" else (target,)
    typer.echo("\n".join(line for each in names for line in _lines(each, options)))


def _lines(target: str, options: targets.Options) -> list[str]:
    standing = targets.create(target, options).status()
    if standing.cluster is None and not standing.leftovers:
        return [f"{target}: nothing is up"]
    if standing.cluster is None:
        return [f"{target}: nothing answers, and this is left (end it with `bench down`):"] + [
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
