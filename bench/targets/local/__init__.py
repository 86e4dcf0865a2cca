"""Declares the options of the target local: nodes are processes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from typer import Option

from bench import targets

PANEL = "Target local"


@dataclass(frozen=True, kw_only=True)
class Options(targets.Options):
    """Options of the target local."""

    isolation: Annotated[
        Literal["auto", "namespace", "loopback"],
        Option(
            "--isolation",
            metavar="NETWORK",
            rich_help_panel=PANEL,
            help="Network between the nodes: auto, namespace or loopback.",
        ),
    ] = "auto"
    monitoring: Annotated[
        bool,
        Option(
            "--monitoring", rich_help_panel=PANEL, help="Start Prometheus, which must be on PATH, beside the nodes."
        ),
    ] = False
