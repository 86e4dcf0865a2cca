"""Networks, batches, messages and servers of the parameter server, each by itself."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import BadInput
from bench.experiments.parameter_server import checkpoints, models, wire
from bench.experiments.parameter_server.connections import KEY_BYTES, Connection, ShardListener
from bench.experiments.parameter_server.learner import Batches, Learner
from bench.experiments.parameter_server.server import OVER, Checkpoint, ParameterServer, TrainingPlan
from bench.experiments.parameter_server.worker import Shards

WAIT_SECONDS = 60.0


def plan(mode: str = "sync", **other: Any) -> TrainingPlan:
    given: dict[str, Any] = {
        "workers": 2,
        "begin": 0,
        "iterations": 3,
        "learning_rate": 0.5,
        "momentum": 0.0,
        "staleness_bound": -1,
        "evaluate_every": 1,
        "checkpoint_every": 0,
    }
    return TrainingPlan(mode=mode, **{**given, **other})


def server(length: int = 3, parameters: int = 2, **other: Any) -> ParameterServer:
    started = ParameterServer(transport="flat", shapes=[(length,)], length=length, parameters=parameters)
    started.begin(plan(**other), np.zeros(length, np.float32))
    return started


def numbers(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, np.float32)


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """What each of `calls` gives, all at once."""
    found: list[Any] = [None] * len(calls)

    def keep(number: int) -> None:
        found[number] = calls[number]()

    threads = [threading.Thread(target=keep, args=(number,), daemon=True) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()
    return found


# networks


@pytest.mark.parametrize(
    ("name", "parameters"),
    # the first by hand, 3·3·3·3 + 3 + 675·10 + 10; the others as published for CIFAR-10
    [("convolution", 6_844), ("lenet", 62_006), ("resnet18", 11_173_962), ("vgg16", 14_728_266)],
)
def test_networks_have_the_published_numbers_of_parameters(name: models.Name, parameters: int) -> None:
    module = models.build(name, 1)
    assert sum(tensor.numel() for tensor in module.parameters()) == parameters == models.PARAMETERS[name]
    statistics = sum(tensor.numel() for tensor in module.buffers() if tensor.is_floating_point())
    assert statistics == models.STATISTICS[name]
    assert len(list(module.parameters())) == models.TENSORS[name]


@pytest.mark.parametrize(
    ("name", "theirs", "first", "last"),
    # torchvision's numbers of parameters for ImageNet; what the two ends of theirs have; the middle is the same.
    [
        ("resnet18", 11_689_512, 64 * 3 * 7 * 7, 1_000 * 512 + 1_000),
        ("vgg16", 138_365_992, 64 * 3 * 3 * 3, (512 * 49 + 1) * 4_096 + (4_096 + 1) * 4_096 + (4_096 + 1) * 1_000),
    ],
)
def test_networks_are_torchvisions_between_their_first_and_last_layers(
    name: models.Name, theirs: int, first: int, last: int
) -> None:
    ours = [tensor.numel() for tensor in models.build(name, 1).parameters()]
    assert sum(ours) - ours[0] - 10 * 512 - 10 == theirs - first - last


@pytest.mark.parametrize(
    ("name", "shapes"),
    # torchvision's channels and halvings, from 32 x 32.
    [
        ("resnet18", [(64, 32), (64, 32), (128, 16), (128, 16), (256, 8), (256, 8), (512, 4), (512, 4)]),
        ("vgg16", [(64, 16), (128, 8), (256, 4), (512, 2), (512, 1)]),
    ],
)
def test_networks_narrow_their_images_as_torchvisions_do(name: models.Name, shapes: list[tuple[int, int]]) -> None:
    import torch
    from torch import nn

    found, images = [], torch.zeros(2, 3, 32, 32)
    for layer in models.build(name, 1):  # type: ignore[attr-defined]
        images = layer(images)
        if isinstance(layer, nn.MaxPool2d) or type(layer).__name__ == "Block":
            found.append(tuple(images.shape[1:3]))
    assert found == shapes


@pytest.mark.parametrize("name", models.NAMES)
def test_networks_give_ten_numbers_an_image(name: models.Name) -> None:
    import torch

    assert models.build(name, 1)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_the_same_seed_draws_the_same_weights_and_leaves_torch_alone() -> None:
    import torch

    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (Learner("convolution", seed).state for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert torch.equal(before, torch.get_rng_state())


# learning


def some_batches(count: int = 50, size: int = 10) -> Batches:
    generator = np.random.default_rng(3)
    images = generator.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    images.flags.writeable = False
    return Batches(images, np.arange(count) % 10, size=size, seed=1)


@pytest.mark.parametrize("name", ["convolution", "resnet18"])
def test_the_message_is_torchs_gradient_and_the_statistics(name: models.Name) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    batch = some_batches().take(0)
    learner = Learner(name, 1)
    twin = models.build(name, 1)
    cross_entropy(twin(batch.images), batch.classes).backward()  # type: ignore[no-untyped-call]
    learner.compute(batch)
    gradient = torch.cat([tensor.grad.reshape(-1) for tensor in twin.parameters() if tensor.grad is not None])
    assert np.allclose(learner.message[: learner.parameters], gradient.numpy(), atol=1e-6)
    statistics = [tensor.reshape(-1).numpy() for tensor in twin.buffers() if tensor.is_floating_point()]
    if statistics:
        assert np.allclose(learner.message[learner.parameters :], np.concatenate(statistics), atol=1e-6)


def test_a_gradient_is_not_added_to_the_one_before() -> None:
    learner = Learner("convolution", 1)
    batch = some_batches().take(0)
    learner.compute(batch)
    once = learner.message.copy()
    learner.compute(batch)
    assert np.array_equal(learner.message, once)


def test_writing_the_state_changes_the_network() -> None:
    learner = Learner("convolution", 1)
    batch = some_batches().take(0)
    before = learner.compute(batch)
    learner.state[:] = 0.0
    assert learner.compute(batch) == pytest.approx(np.log(10))
    assert before != pytest.approx(np.log(10), abs=1e-4)


def test_an_epoch_has_every_image_once_and_the_next_one_in_another_order() -> None:
    batches = some_batches(count=50, size=10)
    first, second = ([batches.take(5 * epoch + number) for number in range(5)] for epoch in (0, 1))
    sums = [[round(float(image.sum()), 1) for batch in epoch for image in batch.images] for epoch in (first, second)]
    assert sorted(sums[0]) == sorted(sums[1])
    assert sums[0] != sums[1]


FAULTS = """
import resource
import sys
from bench.experiments.parameter_server.memory import keep_freed_memory
import numpy as np
if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**22, np.float32) for _ in range(6)]
    del arrays
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted as Linux counts them")
def test_a_worker_gets_the_memory_of_its_last_step_back_without_the_kernel() -> None:
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], check=True, capture_output=True, text=True).stdout)
        for how in ("kept", "given back")
    )
    assert kept * 10 < given_back


# messages


@given(length=st.integers(1, 200_000), transport=st.sampled_from(get_args(wire.Transport)))
def test_what_is_decoded_is_what_was_encoded(length: int, transport: wire.Transport) -> None:
    vector = (np.arange(length) % 1_000).astype(np.float32)  # whole numbers, which half precision has too
    shapes = [(length // 2,), (1, length - length // 2)]
    form = wire.codec(transport, shapes, length)
    pieces = form.encode(vector)
    out = np.empty(length, np.float32)
    form.decode(pieces, out)
    assert len(pieces) == form.pieces
    assert np.array_equal(out, vector)


def test_pieces_stay_below_what_ray_sends_in_a_call() -> None:
    pieces = wire.codec("inline", [], 62_006).encode(np.zeros(62_006, np.float32))
    assert len(pieces) == 3
    assert max(len(piece) for piece in pieces) < 100 * 1024


@pytest.mark.parametrize("transport", ["inline", "flat"])
def test_a_large_vector_is_read_where_it_came_and_only_a_small_one_is_copied(transport: wire.Transport) -> None:
    vector = np.arange(wire.MOST_INLINE_BYTES // 4 + 1, dtype=np.float32)
    form = wire.codec(transport, [], len(vector))
    (piece,) = form.encode(vector)
    piece.flags.writeable = False
    room = np.zeros_like(vector)
    assert np.shares_memory(form.read([piece], room), vector)
    assert not room.any()
    small = wire.codec("inline", [], 3)
    assert small.read(small.encode(numbers(1, 2, 3)), room[:3]) is not None
    assert list(room[:3]) == [1, 2, 3]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gradients_that_are_read_only_are_applied(mode: str) -> None:
    one = server(mode=mode, workers=1, momentum=0.5)
    gradient = numbers(1, 2, 3)
    gradient.flags.writeable = False
    for version in range(2):
        _, state = one.push(0, version, 0.0, gradient)
    # Two steps at rate 0.5 with momentum 0.5: 0.5 (1 + 1.5) of the gradient; the last number is a statistic.
    assert list(state) == [-1.25, -2.5, 3]
    assert list(gradient) == [1, 2, 3]


def test_half_precision_takes_half_and_never_overflows() -> None:
    (piece,) = wire.codec("compressed", [], 2).encode(numbers(1e9, -1e9))
    assert len(piece) == 4
    assert np.isfinite(np.frombuffer(piece, np.float16)).all()


class Deaf:
    """A server that keeps what it is sent."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.push = self.pull = self

    def options(self, **_: Any) -> Deaf:
        return self

    def remote(self, *what: Any) -> None:
        self.kept.append(what)


def test_what_half_precision_loses_goes_with_the_next_gradient() -> None:
    learner = Learner("convolution", 1)
    server = Deaf()
    shards = Shards([server], (), learner, plan(workers=1), 0, "compressed")
    gradient = np.float32(1 / 3 + 1e-4)  # which half precision does not have
    for _ in range(64):
        learner.message[:] = gradient
        shards.push()
    form = wire.codec("compressed", learner.shapes, learner.parameters)
    total = np.zeros_like(learner.state)
    out = np.empty_like(total)
    for _, _, _, *pieces in server.kept:
        form.decode(pieces, out)
        total += out
    lost = abs(64 * float(np.float16(gradient)) - 64 * float(gradient))
    assert lost > 0.001
    assert np.abs(total - 64 * gradient).max() < lost / 10


@given(length=st.integers(0, 1_000), shards=st.integers(1, 50))
def test_shards_have_all_of_a_vector_once_and_as_equal_as_can_be(length: int, shards: int) -> None:
    parts = wire.parts(length, shards)
    assert [number for part in parts for number in range(length)[part]] == list(range(length))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_a_round_trip_is_the_vector_twice_and_a_call() -> None:
    assert wire.round_trip_bytes("flat", length=1_000, tensors=4) == 8_000 + wire.CALL_BYTES
    assert wire.round_trip_bytes("direct", length=1_000, tensors=4) == 8_000 + (8 + 8 + 8 + 1) + 8
    assert wire.round_trip_bytes("compressed", length=1_000, tensors=4) == 4_000 + wire.CALL_BYTES
    assert wire.round_trip_bytes("objects", length=1_000, tensors=4) > 8_000 + wire.CALL_BYTES


# connections past Ray's calls


def listening(shard: ParameterServer) -> ShardListener:
    return ShardListener("127.0.0.1", 3, pull=shard.pull, push=shard.push)


def test_by_connections_of_their_own_workers_get_what_calls_would_give() -> None:
    listener = listening(server(iterations=2))

    def work(rank: int) -> list[Any]:
        weights, versions = np.empty(3, np.float32), []
        with closing(Connection(listener.address)) as connection:
            connection.pull(rank, 0.0)
            versions.append(connection.take(None, weights))
            assert not weights.any()
            for version in range(2):
                gradient = numbers(1 + 2 * rank, 2, 10)
                connection.push(rank, version, 0.0, [gradient])
                gradient[:] = 99.0  # it has gone already
                versions.append(connection.take(None, weights))
        return [versions, weights.tolist()]

    # Twice 0.5 of the mean, 2; the last number is a statistic: the mean itself.
    assert in_threads(lambda: work(0), lambda: work(1)) == [[[0, 1, OVER], [-2.0, -2.0, 10.0]]] * 2


def test_the_successor_of_a_worker_that_died_at_the_barrier_sends_its_gradient_by_a_connection_of_its_own() -> None:
    shard = server(iterations=1)
    listener = listening(shard)

    def send(rank: int, gradient: Any) -> Any:
        weights = np.empty(3, np.float32)
        with closing(Connection(listener.address)) as connection:
            connection.push(rank, 0, 0.0, [gradient])
            return connection.take(None, weights), weights.tolist()

    with closing(Connection(listener.address)) as connection:
        connection.push(0, 0, 0.0, [numbers(1, 1, 1)])  # as its successor will
        deadline = monotonic() + WAIT_SECONDS
        while 0 not in shard._arrived:
            assert monotonic() < deadline
            sleep(0.001)
    assert (
        in_threads(lambda: send(0, numbers(1, 1, 1)), lambda: send(1, numbers(3, 3, 3)))
        == [(OVER, [-1.0, -1.0, 2.0])] * 2
    )
    assert dict(shard.counts().staleness) == {0: 2}


def test_who_does_not_know_the_key_is_hung_up_on() -> None:
    listener = listening(server())
    with (
        closing(Connection(listener.address._replace(key=bytes(KEY_BYTES)))) as connection,
        pytest.raises(ConnectionError),
    ):
        connection.take(None, np.empty(3, np.float32))


def test_a_worker_whose_server_fails_is_told_and_does_not_wait() -> None:
    def fail(*_: Any) -> Any:
        raise ConnectionResetError

    listener = ShardListener("127.0.0.1", 3, pull=fail, push=fail)
    with closing(Connection(listener.address)) as connection:
        connection.pull(0, 0.0)
        with pytest.raises(ConnectionError):
            connection.take(None, np.empty(3, np.float32))


# servers


def test_a_synchronous_step_waits_for_all_and_applies_the_mean() -> None:
    shard = server()
    answers = in_threads(
        lambda: shard.push(0, 0, 0.0, numbers(1, 2, 10)), lambda: shard.push(1, 0, 0.0, numbers(3, 4, 20))
    )
    for version, state in answers:
        assert version == 1
        assert state.tolist() == [-1.0, -1.5, 15.0]  # -0.5 x the mean; the last number is a statistic: the mean itself


def test_gradients_that_were_handed_in_are_unchanged_afterwards() -> None:
    shard = server(workers=1, momentum=0.9)
    gradient = numbers(1, 2, 3)
    gradient.flags.writeable = False
    shard.push(0, 0, 0.0, gradient)
    assert gradient.tolist() == [1, 2, 3]


def test_steps_with_momentum_are_those_of_torch() -> None:
    import torch
    from torch.optim.sgd import sgd  # the step of torch.optim.SGD, whose class takes seconds to import a compiler

    shard = server(length=2, workers=1, momentum=0.9, learning_rate=0.1, iterations=20)
    twin, state = torch.zeros(2), None
    velocity: list[torch.Tensor | None] = [None]
    for version in range(20):
        gradient = numbers(version, 1)
        options = {"weight_decay": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False}
        sgd([twin], [torch.tensor(gradient)], velocity, lr=0.1, momentum=0.9, **options)
        _, state = shard.push(0, version, 0.0, gradient)
    assert np.allclose(np.asarray(state), twin.numpy(), rtol=1e-5)


def test_the_last_step_says_that_it_is_over() -> None:
    shard = server(workers=1, iterations=2)
    versions = [shard.push(0, version, 0.0, numbers(0, 0, 0))[0] for version in range(2)]
    assert versions == [1, OVER]
    assert shard.pull(0, 0.0)[0] == OVER


def test_the_gradient_of_a_worker_that_was_given_up_is_not_counted_twice() -> None:
    shard = server(workers=1)
    shard.push(0, 0, 0.0, numbers(1, 1, 1))
    version, state = shard.push(0, 0, 0.0, numbers(1, 1, 1))
    assert version == 1
    assert state.tolist() == [-0.5, -0.5, 1.0]
    assert shard.counts().refused == 1


def test_an_asynchronous_step_applies_what_comes_and_counts_how_stale_it_was() -> None:
    shard = server(mode="async", iterations=3)
    assert [shard.pull(rank, 0.0)[0] for rank in range(2)] == [0, 0]
    assert shard.push(0, 0, 0.0, numbers(2, 0, 0))[0] == 1
    version, state = shard.push(1, 0, 0.0, numbers(2, 0, 0))
    # The third and last gradient is being made by the other: this worker need not make one that nobody wants.
    assert (version, state[0]) == (OVER, -2.0)
    assert shard.push(0, 1, 0.0, numbers(0, 0, 0))[0] == OVER
    shard.push(1, 2, 0.0, numbers(9, 9, 9))
    counts = shard.counts()
    assert dict(counts.staleness) == {0: 1, 1: 2}
    assert counts.refused == 1
    assert shard.state(len(shard.marks()) - 1)[0] == -2.0


def test_the_successor_of_a_worker_that_died_makes_the_gradient_that_was_owed() -> None:
    shard = server(mode="async", iterations=1)
    assert shard.pull(0, 0.0)[0] == 0
    assert shard.pull(1, 0.0)[0] == OVER
    assert shard.pull(0, 0.0)[0] == 0


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_no_worker_gets_farther_ahead_than_its_bound(bound: int) -> None:
    shard = server(mode="async", iterations=40, staleness_bound=bound)
    ahead: list[int] = []

    def work(rank: int) -> None:
        version = shard.pull(rank, 0.0)[0]
        while version != OVER:
            ahead.append(shard.clock(rank) - min(shard.clock(0), shard.clock(1)))
            version = shard.push(rank, version, 0.0, numbers(0, 0, 0))[0]

    in_threads(lambda: work(0), lambda: work(1))
    assert max(ahead) <= bound
    assert sum(shard.counts().staleness.values()) == 40


def test_a_fast_worker_stands_still_at_its_bound_until_the_slow_one_comes() -> None:
    shard = server(mode="async", iterations=40, staleness_bound=1)
    shard.push(0, 0, 0.0, numbers(0, 0, 0))
    ahead = threading.Thread(target=lambda: shard.push(0, 1, 0.0, numbers(0, 0, 0)), daemon=True)
    ahead.start()
    ahead.join(0.3)
    assert ahead.is_alive()
    shard.push(1, 0, 0.0, numbers(0, 0, 0))
    ahead.join(WAIT_SECONDS)
    assert not ahead.is_alive()


def test_going_on_from_a_checkpoint_gives_the_same_as_never_having_stopped() -> None:
    straight = server(workers=1, iterations=6, momentum=0.9, checkpoint_every=3)
    for version in range(6):
        last = straight.push(0, version, 0.0, numbers(version, 1, 2))
        if version == 2:
            kept = straight.checkpoint()
    assert kept.iteration == 3
    resumed = server()
    resumed.begin(plan(workers=1, begin=3, iterations=3, momentum=0.9), kept.state, kept.velocity)
    for version in range(3, 6):
        again = resumed.push(0, version, 0.0, numbers(version, 1, 2))
    assert np.array_equal(last[1], again[1])


# checkpoints


def test_a_checkpoint_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = checkpoints.write(tmp_path, "ray-sync-1", Checkpoint(20, numbers(1, 2, 3), numbers(4, 5)))
    found = checkpoints.read(path, length=3, parameters=2)
    assert (found.iteration, found.state.tolist(), found.velocity.tolist()) == (20, [1, 2, 3], [4, 5])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"no archive at all"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="is no checkpoint"):
        checkpoints.read(path, length=3, parameters=2)


def test_pickled_objects_in_a_checkpoint_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    np.savez(path, iteration=np.int64(1), state=np.array([{}], object), velocity=numbers(1))
    with pytest.raises(BadInput, match="is no checkpoint"):
        checkpoints.read(path, length=1, parameters=1)


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    path = checkpoints.write(tmp_path, "ray-sync-1", Checkpoint(20, numbers(1, 2, 3), numbers(4, 5)))
    with pytest.raises(BadInput, match="of another network: 3 numbers, and 6844 are needed"):
        checkpoints.read(path, length=6_844, parameters=6_844)
