"""Start a cluster and leave it running.

`bench run` uses it, and you can open its dashboards. Refused while a session runs on the deployment.

Example: bench up --target local --topology multi --link-rate 1gbit
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import typer

from bench import options as o
from bench.errors import BadInput
from bench.planning import plan
from bench.prometheus import boards
from bench.runner import session_lock
from bench.targets import Choice, Cluster, Given, TargetStatus, choose, public
from bench.terminal.answers import say_json
from bench.terminal.asking import typed_command
from bench.terminal.output import say
from bench.terminal.steps import StepDisplay

ONE_CLUSTER = o.ClusterOptions(topology="multi")


def command(
    *,
    shape: o.ClusterOptions = ONE_CLUSTER,
    target: o.TargetName = "auto",
    force: o.Force = False,
    as_json: o.AsJson = False,
    given: o.TargetOptions,
) -> None:
    if shape.topology == "both":
        raise BadInput(
            "--topology both: one deployment runs one topology.", "Use single or multi; `bench run` runs both in turn."
        )
    choice = choose(target, given, otherwise=_detected)
    chosen = choice.target
    (topology,) = plan.topologies(shape)
    with StepDisplay() as display:
        chosen.check(topology, display.steps)
    if chosen_for := choice.describe():
        say(chosen_for)
    with session_lock.changing(chosen.name, choice.options.name, typed_command(), force=force) as unheld:
        if unheld:
            say(f"{unheld} --force ignores it.")
        target_status = chosen.status()
        cluster = target_status.cluster
        if cluster is None or cluster.topology != topology or target_status.options not in (None, choice.options):
            with StepDisplay() as display:
                cluster = chosen.up(topology, steps=display.steps)
        else:
            say("It is already running with these options; nothing was changed. `bench down` stops it.")
    if as_json:
        say_json("up", public(chosen.name, TargetStatus(cluster=cluster, options=choice.options)))
        return
    typer.echo(f"{topology.name} runs on {chosen.name}: {', '.join(cluster.nodes)}, network {cluster.link}.")
    typer.echo(f"Dashboard {cluster.dashboard_url}, metrics {cluster.exporter_url}/metrics")
    for line in _monitoring(cluster):
        typer.echo(line)


def _monitoring(cluster: Cluster) -> Iterator[str]:
    if cluster.prometheus_url and cluster.grafana_url:
        yield f"Prometheus {cluster.prometheus_url}, Grafana {cluster.grafana_url}"
    elif cluster.prometheus_url:
        yield f"Prometheus {cluster.prometheus_url}. A Grafana on this machine shows its dashboards if it is started with:"
        for name, value in boards.own_grafana(cluster.prometheus_url).items():
            yield f"  {name}={shlex.quote(value)}"


def _detected(given: Given) -> Choice:
    from bench.targets import autodetection

    return autodetection.find(given)
