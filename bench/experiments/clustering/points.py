"""What is clustered: the weights of a network, layer by layer, as vectors. Any job's can be made anywhere, and checked.

A layer's weights are drawn from a normal distribution of He's width, as they are before training; each vector is
`dimensions` weights that lie beside each other. ResNet-18's layers, by torchvision's names and shapes:
https://docs.pytorch.org/vision/stable/models/generated/torchvision.models.resnet18.html
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Weights of one layer: what goes in, what comes out, how wide its kernel is."""

    name: str
    inputs: int
    outputs: int
    kernel: int

    @property
    def weights(self) -> int:
        return self.inputs * self.outputs * self.kernel**2


def _blocks() -> Iterator[Layer]:
    inputs = 64
    for stage, width in enumerate((64, 128, 256, 512), start=1):
        for block in (0, 1):
            first = inputs if block == 0 else width
            yield Layer(name=f"layer{stage}.{block}.conv1", inputs=first, outputs=width, kernel=3)
            yield Layer(name=f"layer{stage}.{block}.conv2", inputs=width, outputs=width, kernel=3)
            if block == 0 and first != width:
                yield Layer(name=f"layer{stage}.{block}.downsample.0", inputs=first, outputs=width, kernel=1)
        inputs = width


RESNET18 = (
    Layer(name="conv1", inputs=3, outputs=64, kernel=7),
    *_blocks(),
    Layer(name="fc", inputs=512, outputs=1000, kernel=1),
)


def make(layer: Layer, job: int, *, points: int, dimensions: int, seed: int) -> Points:
    """The vectors of one job, shape (points, dimensions), float32: a function of these arguments and of nothing else."""
    import numpy as np

    place = RESNET18.index(layer)
    deviation = math.sqrt(2 / (layer.inputs * layer.kernel**2))
    drawn = np.random.Generator(np.random.Philox(key=[seed, (place << 48) | job]))
    return drawn.standard_normal((points, dimensions), dtype=np.float32) * np.float32(deviation)
