"""A Ray of two CPUs, shared by the tests of this folder; all of them bear the mark `ray`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench.cluster.driver import refuse_large_functions
from bench.cluster.local_context import LocalContext
from bench.context import NodeSlot
from bench.runner import quiet_check

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.ray)


@pytest.fixture(scope="session")
def local_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[NodeSlot]]:
    """The one node, of two CPUs, of a Ray that ends with the tests."""
    import ray

    # Sockets lie below it, and a socket's path may have 107 bytes.
    home = Path(tmp_path_factory.mktemp("r", numbered=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ours = [name for name in os.environ if name.startswith("RAYMETER_")]
        for name in {*ours, "RAY_ADDRESS"} - {quiet_check.WAIT_VARIABLE}:  # which holds for all tests
            patch.delenv(name, raising=False)
        refuse_large_functions()  # as the driver of a run does
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=512 * 2**20,
            log_to_driver=False,
            _temp_dir=str(home),
        )
        yield [NodeSlot(name="head", node_id=ray.nodes()[0]["NodeID"], cpus=2, threads=2)]
        ray.shutdown()


@pytest.fixture
def context(local_ray: Sequence[NodeSlot], tmp_path: Path) -> LocalContext:
    return LocalContext(nodes=local_ray, folder=tmp_path)


@pytest.fixture
def two_halves(local_ray: Sequence[NodeSlot], tmp_path: Path) -> LocalContext:
    """The node as if it were two, of one CPU each."""
    (node,) = local_ray
    return LocalContext(
        nodes=[NodeSlot(name=name, node_id=node.node_id, cpus=1, threads=1) for name in ("head", "worker-1")],
        folder=tmp_path,
    )
