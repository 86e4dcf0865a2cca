"""`bench up`: stand a topology up and leave it."""

from __future__ import annotations

import typer

from bench import options as o
from bench.commands.status import plain
from bench.errors import BadInput
from bench.planning import plan
from bench.planning.plan import Wish
from bench.targets import NOTHING_IS_UP, Options, Standing, choose
from bench.terminal.answers import say_json
from bench.terminal.output import say


@o.asking_target
def command(
    *,
    topology: o.TopologyName = "multi",
    nodes: o.Nodes = 2,
    cpus: o.Cpus = None,
    memory_mib: o.MemoryMib = 4096,
    object_store_mib: o.ObjectStoreMib = 1024,
    target: o.TargetName = "auto",
    force: o.Force = False,
    as_json: o.AsJson = False,
    options: Options,
) -> None:
    """Stand a topology up and leave it there, for `bench run` and for you to look at. Refused while a session runs on it.

    Example: bench up --target local --topology multi --link-rate 1gbit
    """
    if topology == "both":
        raise BadInput("--topology both: one stands at a time.", "Say single or multi; `bench run` takes both in turn.")
    wish = Wish(
        experiments=(),
        topology=topology,
        nodes=nodes,
        cpus=cpus,
        memory_mib=memory_mib,
        object_store_mib=object_store_mib,
    )
    choice = choose(target, options)
    if choice.why == NOTHING_IS_UP:
        from bench.targets import autodetection

        choice = autodetection.find(options)
    chosen = choice.target
    (shape,) = plan.topologies(wish)
    chosen.check(shape)
    say(choice.describe())
    with o.changing(chosen.name, choice.options.name, force=force):
        standing = chosen.status()
        cluster = standing.cluster
        if cluster is None or cluster.topology != shape or standing.options not in (None, choice.options):
            cluster = chosen.up(shape)
        else:
            say("It stands already and answers, so nothing was changed; `bench down` ends it.")
    if as_json:
        say_json("up", plain(chosen.name, Standing(cluster=cluster, options=choice.options)))
        return
    typer.echo(f"{shape.name} is up on {chosen.name}: {', '.join(cluster.nodes)}, joined by {cluster.link}.")
    typer.echo(f"Dashboard {cluster.dashboard_url}, metrics {cluster.exporter_url}/metrics")
    if cluster.prometheus_url:
        typer.echo(f"Prometheus {cluster.prometheus_url}, Grafana {cluster.grafana_url or 'is not up'}")
