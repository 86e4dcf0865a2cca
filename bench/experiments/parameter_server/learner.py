"""Computes gradients of a network whose weights and gradients each lie in one flat buffer, and makes its batches.

The *state* is all parameters, then the running statistics of batch normalisation; the *message* is the gradient of the
parameters, then the same statistics. Both are float32 and equally long.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.experiments.parameter_server import models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    Vector = NDArray[np.float32]
    Grey = NDArray[np.uint8]

MIDDLE, SPREAD = 128.0, 64.0  # grey values come to be about 0 and of size 1


class Batch(NamedTuple):
    """Images, float32 (n, 3, 32, 32), and their classes, int64."""

    images: Tensor
    classes: Tensor


class Learner:
    """One network, on so many threads. `state` and `message` are numpy's views of the very memory that torch uses."""

    def __init__(self, name: models.Name, seed: int, *, threads: int = 1) -> None:
        import torch

        torch.set_num_threads(threads)
        self.module = models.build(name, seed)
        parameters = list(self.module.parameters())
        statistics = [tensor for tensor in self.module.buffers() if tensor.is_floating_point()]
        tensors = [*parameters, *statistics]
        self.parameters = sum(tensor.numel() for tensor in parameters)
        self.shapes = [tuple(tensor.shape) for tensor in tensors]
        state = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        message = torch.zeros_like(state)
        start = 0
        for tensor in tensors:
            part = slice(start, start := start + tensor.numel())
            tensor.data = state[part].view(tensor.shape)
            if isinstance(tensor, torch.nn.Parameter):
                tensor.grad = message[part].view(tensor.shape)
        self.state: Vector = state.numpy()
        self.message: Vector = message.numpy()

    def compute(self, batch: Batch) -> float:
        """Gradient of the mean loss of `batch`, and the statistics, into `message`; gives the loss."""
        from torch.nn.functional import cross_entropy

        self.message[: self.parameters] = 0.0
        loss = cross_entropy(self.module(batch.images), batch.classes)
        loss.backward()  # type: ignore[no-untyped-call]
        self.message[self.parameters :] = self.state[self.parameters :]
        return float(loss.detach())

    def evaluate(self, state: Vector, images: Grey, classes: NDArray[np.int64]) -> tuple[float, float]:
        """Share of `images` that the network with `state` sees right, and their mean loss."""
        import torch
        from torch.nn.functional import cross_entropy

        self.state[:] = state
        self.module.eval()
        right, loss = 0, 0.0
        with torch.inference_mode():
            for begin in range(0, len(images), 1_000):
                batch = make_batch(images[begin : begin + 1_000], classes[begin : begin + 1_000])
                answers = self.module(batch.images)
                right += int((answers.argmax(1) == batch.classes).sum())
                loss += float(cross_entropy(answers, batch.classes, reduction="sum"))
        self.module.train()
        return right / len(images), loss / len(images)


class Batches:
    """Batches by number, from a set that is drawn anew for each epoch: the same number always gives the same batch."""

    def __init__(self, images: Grey, classes: NDArray[np.int64], *, size: int, seed: int) -> None:
        self._images = images
        self._classes = classes
        self._size = size
        self._seed = seed
        self._an_epoch = len(images) // size

    def take(self, number: int) -> Batch:
        """Batch `number`, from 0; a copy, so that nothing is written to where the images lie."""
        epoch, place = divmod(number, self._an_epoch)
        chosen = _shuffled(len(self._images), self._seed, epoch)[place * self._size : (place + 1) * self._size]
        return make_batch(self._images[chosen], self._classes[chosen])


def make_batch(images: Grey, classes: NDArray[Any]) -> Batch:
    """Grey values and classes as what a network takes."""
    import numpy as np
    import torch

    values = images.astype(np.float32)
    values -= MIDDLE
    values /= SPREAD
    return Batch(torch.from_numpy(values), torch.from_numpy(np.array(classes)))


@lru_cache(maxsize=2)
def _shuffled(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    import numpy as np

    return np.random.Generator(np.random.PCG64([seed, epoch])).permutation(count)
