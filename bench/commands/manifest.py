"""`bench manifest`: an experiment as a RayJob."""

from __future__ import annotations

import secrets

import typer
import yaml

from bench import options as o
from bench.errors import BadInput
from bench.planning import plan
from bench.planning.plan import Wish
from bench.runner import rayjob
from bench.targets import Options
from bench.terminal.answers import say_json

Experiment = typer.Argument(metavar="EXPERIMENT", help="What to measure; see `bench list`.")


def command(
    experiment: str = Experiment,
    profile: o.Profile = "tiny",
    sets: o.Set = [],  # noqa: B006, typer reads it and never changes it
    topology: o.TopologyName = "multi",
    nodes: o.Nodes = 2,
    cpus: o.Cpus = None,
    memory_mib: o.MemoryMib = 4096,
    object_store_mib: o.ObjectStoreMib = 1024,
    seed: o.Seed = 1,
    name: o.Appliance = "raymeter",
    image: o.Image = None,
    as_json: o.AsJson = False,
) -> None:
    """Print a RayJob that runs an experiment in Kubernetes by itself, once; KubeRay's operator must be there.

    Its record is on the head, in /records, until the RayJob is deleted.

    Example: bench manifest inference --topology multi | kubectl apply --server-side -f -
    """
    from bench.targets.k8s.target import K8sTarget

    if topology == "both":
        raise BadInput("--topology both: a RayJob has one cluster.", "Say single or multi.")
    wish = Wish(
        experiments=(experiment,),
        profile=profile,
        sets=tuple(sets),
        topology=topology,
        nodes=nodes,
        cpus=cpus,
        memory_mib=memory_mib,
        object_store_mib=object_store_mib,
        blocks=1,
        seed=seed,
        target="k8s",
        command=o.typed_command(),
    )
    session = plan.make(wish)
    specs = rayjob.specs_of(session, topology)
    rendered = K8sTarget(Options(name=name, image=image)).render(specs[0].topology)
    job_name = f"{experiment.replace('_', '-')}-{topology}-{session.id[-4:]}"
    objects = rayjob.rayjob(rendered, specs, name=job_name, token=secrets.token_hex(32))
    if as_json:
        say_json("manifest", objects)
        return
    typer.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)
