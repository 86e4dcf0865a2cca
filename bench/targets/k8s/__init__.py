"""Declares the options of the target k8s: nodes are pods, which KubeRay starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from bench.targets import ContainerOptions

PANEL = "Target k8s"


@dataclass(frozen=True, kw_only=True)
class Options(ContainerOptions):
    """Options of the target k8s."""

    context: Annotated[
        str | None,
        Option(
            metavar="CONTEXT",
            rich_help_panel=PANEL,
            help="kubectl context to use. [default: one of kind or minikube]",
        ),
    ] = None
    load_with: Annotated[
        str | None,
        Option(metavar="COMMAND", rich_help_panel=PANEL, help="Command that loads {image} onto the Kubernetes nodes."),
    ] = None
    operator_manifests: Annotated[
        str | None,
        Option(
            metavar="FOLDER",
            rich_help_panel=PANEL,
            help="Copy of KubeRay's config/default. [default: download it]",
        ),
    ] = None
