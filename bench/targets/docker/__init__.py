"""Declares the options of the target docker: nodes are containers of a Docker engine."""

from __future__ import annotations

from dataclasses import dataclass

from bench.targets import ContainerOptions


@dataclass(frozen=True, kw_only=True)
class Options(ContainerOptions):
    """Options of the target docker."""
