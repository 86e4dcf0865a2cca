"""Compares code and package versions of this machine with those that a session was measured with."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from bench import identity
from bench.model import NodeFacts, Run

CODE, KERNEL = "raymeter code", "kernel"  # the names that reports use


def since(runs: Sequence[Run], *, is_local: bool) -> list[str]:
    """Return what differs from the nodes of `runs`, like `ray was 2.9.0 and is 2.9.1`. `is_local`: the nodes are this machine.

    Other nodes have the versions of their image, of which only the code is known here.
    """
    nodes = [node for run in runs if run.facts for node in run.facts.nodes]
    return list(_differences(map(_of_node, nodes), _now if is_local else {CODE: identity.code_hash()}.get))


def _of_node(node: NodeFacts) -> Mapping[str, str]:
    return {CODE: node.code_hash, **node.versions, KERNEL: node.kernel}


def _now(name: str) -> str | None:
    """Return the version of `name` on this machine; None if it has none."""
    known: dict[str, Callable[[], str]] = {
        CODE: identity.code_hash,
        KERNEL: platform.release,
        "python": platform.python_version,
    }
    try:
        return known[name]() if name in known else version(name)
    except PackageNotFoundError:
        return "not installed"


def _differences(nodes: Iterable[Mapping[str, str]], now: Callable[[str], str | None]) -> Iterator[str]:
    """Yield a sentence for each name that `now` knows and whose earlier values differ from the present one."""
    earlier: dict[str, dict[str, None]] = {}
    for node in nodes:
        for name, value in node.items():
            earlier.setdefault(name, {})[value] = None
    for name, values in earlier.items():
        present = now(name)
        if present is not None and set(values) != {present}:
            yield f"{name} was {' or '.join(values)} and is {present}"
