"""Print a Kubernetes RayJob for an experiment.

The RayJob runs the experiment once by itself; KubeRay's operator must be installed. The record is in /records of the
head until the RayJob is deleted.

Example: bench manifest inference --topology multi | kubectl apply --server-side -f -
"""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec
import typer
import yaml

from bench import options as o
from bench.errors import BadInput
from bench.planning import plan
from bench.runner import rayjob
from bench.targets import Given
from bench.targets.k8s import Options
from bench.terminal.answers import say_json
from bench.terminal.asking import typed_command

Experiment = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="What to measure; see `bench list`.")]
PodOptions = Annotated[Given, o.OfTargets(only=("name", "link_rate", "image"))]
ONE_CLUSTER = o.ClusterOptions(topology="multi")
WORKLOAD = o.Workload()


def command(
    experiment: Experiment,
    given: PodOptions,
    workload: o.Workload = WORKLOAD,
    shape: o.ClusterOptions = ONE_CLUSTER,
    as_json: o.AsJson = False,
) -> None:
    from bench.targets.k8s.target import K8sTarget

    if shape.topology == "both":
        raise BadInput("--topology both: a RayJob has one cluster.", "Use single or multi.")
    request = o.RunRequest(
        **vars(workload), **vars(shape), experiments=(experiment,), blocks=1, target="k8s", command=typed_command()
    )
    session = plan.make(request)
    specs = rayjob.specs_of(session, shape.topology)
    rendered = K8sTarget(msgspec.convert(dict(given), Options)).render(specs[0].topology)
    job_name = f"{experiment.replace('_', '-')}-{shape.topology}-{session.id[-4:]}"
    objects = rayjob.rayjob(rendered, specs, name=job_name, token=secrets.token_hex(32))
    if as_json:
        say_json("manifest", objects)
        return
    typer.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)
