"""The peers do the same work on the same nodes, with the threads that they say, and leave no process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import psutil
import pytest

from bench.context import NodeSlot
from bench.errors import RunInvalid
from bench.experiments.inference import mlp
from bench.experiments.inference.peers import InferencePeers, start_peers

pytestmark = pytest.mark.timeout(60)

INPUTS = 5_050


@pytest.fixture(scope="module")
def peers(local_ray: Sequence[NodeSlot]) -> Iterator[InferencePeers]:
    """On one node as if it were two, of one CPU each."""
    nodes = [replace(local_ray[0], name=name, cpus=1, threads=1) for name in ("head", "worker-1")]
    started = start_peers(
        nodes, mlp.make_layers(7, "float64"), mlp.make_vectors("mnist", 7, "float64"), inputs=INPUTS, batch=100
    )
    started.ready()
    yield started
    started.processes.close()


@pytest.mark.parametrize("way", ["one_by_one", "all_cpus", "pool"])
def test_every_peer_gives_the_same_answers(peers: InferencePeers, way: str) -> None:
    layers, vectors = mlp.make_layers(7, "float64"), mlp.make_vectors("mnist", 7, "float64")
    expected = mlp.answer_all(layers, vectors, 0, INPUTS, 1_000)
    assert getattr(peers, way)() == expected
    assert getattr(peers, way)() == expected  # a peer has nothing left over from the time before


def test_the_base_case_is_not_spread_and_the_others_are(peers: InferencePeers) -> None:
    assert peers.all_on_first == {"head": 5_050.0, "worker-1": 0.0}
    assert peers.spread == {"head": 2_525.0, "worker-1": 2_525.0}


def test_peers_use_the_threads_of_their_node(local_ray: Sequence[NodeSlot]) -> None:
    layers, vectors = mlp.make_layers(7, "float32"), mlp.make_vectors("mnist", 7, "float32")
    peers = start_peers(local_ray, layers, vectors, inputs=10, batch=1)
    assert peers.ready() == [{"numpy-one-by-one": [1], "numpy-all-cpus": [1, 1], "pool": [1, 1]}]
    other = replace(peers, shares=[(replace(local_ray[0], threads=3), (0, 10))])
    with pytest.raises(RunInvalid, match="The peers on head have native threads"):
        other.ready()
    peers.processes.close()


def test_a_pool_that_is_not_measured_is_not_started(local_ray: Sequence[NodeSlot]) -> None:
    layers, vectors = mlp.make_layers(7, "float32"), mlp.make_vectors("mnist", 7, "float32")
    peers = start_peers(local_ray, layers, vectors, inputs=10, batch=1, has_pool=False)
    assert peers.ready() == [{"numpy-one-by-one": [1], "numpy-all-cpus": [1, 1], "pool": []}]
    assert peers.all_cpus() == mlp.answer_all(layers, vectors, 0, 10, 10)
    peers.processes.close()


def test_the_pool_ends_with_its_peer_process(local_ray: Sequence[NodeSlot]) -> None:
    import ray

    layers, vectors = mlp.make_layers(7, "float32"), mlp.make_vectors("mnist", 7, "float32")
    peers = start_peers(local_ray, layers, vectors, inputs=10, batch=1)
    peers.ready()
    processes = [psutil.Process(pid) for pid in ray.get(peers.processes.actors[0].processes.remote(), timeout=30)]
    assert len(processes) == 2
    peers.processes.close()
    deadline = time.monotonic() + 20
    while any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes):
        assert time.monotonic() < deadline, "a process of the pool is still there"
        time.sleep(0.1)
