"""Names what a metric or an arm means to analysis and reports, which know no experiment, and the units that fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Meaning = Literal[
    "",  # nothing beyond its name, unit and help
    "end to end",
    "median latency",
    "payload",
    "wire bytes",
    "projection",
    "wait for the last worker",
    "left out",
    "time to target",
    "samples to target",
    "accuracy",
    "accuracy by seconds",
    "busy",
    "compute",
    "straggler",
    "serialise",
    "queue",
    "round trips in sequence",
    "goodput",
    "round trip",
    "recommended setting",
    "share at recommended settings",
    "median of all calls",
    "99th percentile of all calls",
    "timer step",
]

ArmMeaning = Literal["", "raw TCP", "actor call"]
"""What the arm that measures the network does: plain sockets, or the argument of an actor call."""

_SHARE = "%|1|[^/]+/[^/]+"
UNITS: Mapping[Meaning, str] = {
    "": ".*",
    "end to end": "s",  # all of the work, its start counted
    "median latency": "s",  # of one call
    "payload": "B/.+",  # that the work itself carries, for a unit of work
    "wire bytes": "B/.+",  # that all nodes sent, for a unit of work
    "projection": "h|s",  # of a longer work, at this rate: its arms are shown step by step
    "wait for the last worker": "s",  # by node too: the node that waited least held the others up
    "left out": ".+",  # of the work, since it failed: a caveat says how much
    "time to target": "s",  # of a training, missing where the target was not reached
    "samples to target": "samples",  # of a training: too few beside its reference are not credible
    "accuracy": _SHARE,
    "accuracy by seconds": _SHARE,  # a curve: how long a training was watched that did not reach its target
    "busy": "s",  # this one and the next five: parts of the time breakdown, and in no other table
    "compute": "s",
    "straggler": "s",
    "serialise": "s",
    "queue": "s",
    "round trips in sequence": "",
    "goodput": "B/s",  # between nodes, of the arms that measure the network
    "round trip": "s",
    "recommended setting": ".*",
    "share at recommended settings": _SHARE,  # that they reach of the best possible
    "median of all calls": "s",  # this one and the next two: of a self-check
    "99th percentile of all calls": "s",
    "timer step": "s",
}
"""A regular expression for the whole unit of a metric, by its meaning."""

SHARED: tuple[Meaning, ...] = ("", "accuracy", "projection", "recommended setting")
"""Meanings that several metrics of one experiment may have."""
