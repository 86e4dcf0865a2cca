"""Starts a small Ray for this process when it is first used, and shuts it down."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.context import NodeSlot
from bench.errors import TargetFailed
from bench.model import Topology
from bench.targets import node_names


@dataclass
class LocalRay:
    """A Ray of one node that is started on demand, or the running one at `address`."""

    topology: Topology
    settings: Mapping[str, str] = field(default_factory=dict)  # of Ray, named without the prefix RAY_
    address: str | None = None
    print_logs: bool = True  # of tasks and actors
    _folder: str = ""

    def start(self) -> None:
        """Start Ray, or connect to the running one at `address`. Does nothing if Ray is initialized."""
        import ray

        if ray.is_initialized():
            return
        common: dict[str, Any] = {"log_to_driver": self.print_logs, "logging_level": logging.WARNING}
        if self.address:
            try:
                ray.init(address=self.address, **common)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise TargetFailed(
                    f"No Ray answers at {self.address}: {error}.", "Give --address as `ray status` has it."
                ) from None
            return
        self._folder = tempfile.mkdtemp(prefix="bench-")  # short: it holds sockets, whose paths have at most 107 bytes
        os.environ |= {f"RAY_{name}": value for name, value in self.settings.items()}
        ray.init(
            num_cpus=self.topology.cpus_per_node,
            object_store_memory=self.topology.object_store_bytes_per_node,
            include_dashboard=False,
            _temp_dir=self._folder,
            **common,
        )

    def end(self) -> None:
        """Shut down the Ray that was started, and remove its files."""
        import ray

        ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def nodes(self) -> Sequence[NodeSlot]:
        """Return the nodes, the head first. Before Ray is started, the node returned starts it when its id is read."""
        if not self.address:
            return [_LazySlot(self)]
        import ray

        self.start()
        alive = sorted(
            (node for node in ray.nodes() if node["Alive"]),
            key=lambda node: "node:__internal_head__" not in node["Resources"],
        )
        names = node_names(_with_nodes(self.topology, len(alive)))
        return [
            NodeSlot(name=name, node_id=node["NodeID"], cpus=cpus, threads=cpus)
            for name, node in zip(names, alive, strict=True)
            for cpus in [int(node["Resources"].get("CPU", 0))]
        ]


class _LazySlot(NodeSlot):
    """The node of a Ray that is started when the node's id is read."""

    def __init__(self, ray: LocalRay) -> None:
        cpus = ray.topology.cpus_per_node
        for name, value in {"name": "head", "cpus": cpus, "threads": cpus, "_ray": ray}.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name != "node_id":
            raise AttributeError(name)
        import ray

        self._ray.start()
        return ray.nodes()[0]["NodeID"]

    def __reduce__(self) -> Any:
        return partial(NodeSlot, name=self.name, node_id=self.node_id, cpus=self.cpus, threads=self.threads), ()


def _with_nodes(topology: Topology, nodes: int) -> Topology:
    from dataclasses import replace

    return replace(topology, nodes=nodes)


@contextmanager
def started_on_use(ray_of_process: LocalRay) -> Iterator[LocalRay]:
    """Make Ray's first call start `ray_of_process`, in place of a Ray of the whole machine; shut it down at the end."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not ray_of_process.address:
        os.environ.pop("RAY_ADDRESS", None)
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault(
            "RAY_AUTH_TOKEN", secrets.token_hex(32)
        )  # otherwise Ray writes a token into the home folder
    from ray._private import auto_init_hook

    before = auto_init_hook.auto_init_ray
    auto_init_hook.auto_init_ray = ray_of_process.start  # there is no public hook
    try:
        yield ray_of_process
    finally:
        auto_init_hook.auto_init_ray = before
        ray_of_process.end()
