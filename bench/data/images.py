"""Images with labels, by the name of their set: what experiments learn from.

| name             | is                                                | to train on | held out | one image     |
|------------------|---------------------------------------------------|-------------|----------|---------------|
| `mnist`          | all of MNIST, seeded by the user                  | 60,000      | 10,000   | (784,)        |
| `mnist-small`    | real digits of MNIST that ship with raymeter      | 4,000       | 1,000    | (784,)        |
| `synthetic`      | one pattern a class, and noise, drawn from a seed | 10,000      | 2,000    | (784,)        |
| `cifar10`        | CIFAR-10, seeded by the user                      | 50,000      | 10,000   | (3, 32, 32)   |
| `mnist-small-32` | mnist-small in a black frame, on three channels   | 4,000       | 1,000    | (3, 32, 32)   |
| `synthetic-32`   | as synthetic, with colours                        | 10,000      | 2,000    | (3, 32, 32)   |

All have ten classes. Nothing here downloads anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, get_args

from bench.data import digits, seeded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Grey = NDArray[np.uint8]

Source = Literal["mnist", "mnist-small", "synthetic", "cifar10", "mnist-small-32", "synthetic-32"]
SOURCES: tuple[Source, ...] = get_args(Source)
Dtype = Literal["float32", "uint8"]

CLASSES = 10
HOLD_OUT = 5  # every fifth digit of mnist-small, which is sorted by class: each class has as many as the others
SYNTHETIC = {"synthetic": (1, 28, 28), "synthetic-32": (3, 32, 32)}
SYNTHETIC_COUNTS = (10_000, 2_000)
HELD_OUT: Mapping[str, int] = {
    **{name: held_out for name, (_, held_out) in seeded.COUNTS.items()},
    **dict.fromkeys(("mnist-small", "mnist-small-32"), 1_000),
    **dict.fromkeys(SYNTHETIC, SYNTHETIC_COUNTS[1]),
}
"""Images that none learns from, by set: known before one is loaded."""
COARSE = 4  # pixels on a side of one spot of a pattern
DARK, NOISE = 64.0, 40.0  # grey values
APART = 6.0  # how far a pattern is from the middle, in units of noise: an accuracy of 0.99 can be reached, not at once


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images and labels, to train on and held out, read-only.

    `train_x` and `test_x`: one image a row, of the shape that the set has; float32 from 0 to 1, or uint8 from 0 to 255.
    `train_y` and `test_y`: the classes, int64 from 0 to 9.
    """

    train_x: NDArray[Any]
    train_y: NDArray[np.int64]
    test_x: NDArray[Any]
    test_y: NDArray[np.int64]


def load(name: Source, seed: int, dtype: Dtype = "float32") -> Images:
    """The set `name`; `seed` matters to the synthetic ones alone. Raises DataMissing, with the command to type.

    As uint8 it takes a quarter of the memory: 184 MB of CIFAR-10, and 737 MB as float32.
    """
    import numpy as np

    arrays = _arrays(name, seed)
    found = Images(
        train_x=arrays["train_x"] if dtype == "uint8" else as_floats(arrays["train_x"]),
        train_y=arrays["train_y"].astype(np.int64),
        test_x=arrays["test_x"] if dtype == "uint8" else as_floats(arrays["test_x"]),
        test_y=arrays["test_y"].astype(np.int64),
    )
    for array in (found.train_x, found.train_y, found.test_x, found.test_y):
        array.flags.writeable = False
    return found


def as_floats(grey: Grey) -> NDArray[np.float32]:
    """Grey values 0 to 255 as float32 from 0 to 1."""
    import numpy as np

    return np.divide(grey, 255, dtype=np.float32)


def checksum(name: Source, seed: int) -> str:
    """What the record names the set by: SHA-256 of the file that it comes from, or of what `seed` makes of it.

    Raises DataMissing where it is not there.
    """
    if name in seeded.NAMES:
        return seeded.checksum(name)
    if name in SYNTHETIC:
        arrays = synthetic(SYNTHETIC[name], seed)
        return sha256(b"".join(arrays[key].tobytes() for key in seeded.ARRAYS)).hexdigest()
    return digits.MNIST_SHA256


def _arrays(name: Source, seed: int) -> dict[str, Grey]:
    if name in seeded.NAMES:
        return seeded.read(name)
    if name in SYNTHETIC:
        return synthetic(SYNTHETIC[name], seed)
    return _small(is_framed=name == "mnist-small-32")


@lru_cache(maxsize=2)
def synthetic(shape: tuple[int, int, int], seed: int) -> dict[str, Grey]:
    """Each image is its class's pattern of coarse spots, with noise; flat where there is one channel."""
    import numpy as np

    channels, height, width = shape
    contrast = APART * NOISE / math.sqrt(channels * height * width / 3)
    random = np.random.Generator(np.random.PCG64([seed, *shape]))
    spots = random.uniform(-1, 1, (CLASSES, channels, height // COARSE, width // COARSE))
    patterns = spots.repeat(COARSE, axis=2).repeat(COARSE, axis=3).astype(np.float32)
    found: dict[str, Grey] = {}
    for part, count in zip(("train", "test"), SYNTHETIC_COUNTS, strict=True):
        labels = random.permutation(np.arange(count) % CLASSES).astype(np.uint8)
        values = random.standard_normal((count, *shape), dtype=np.float32)
        values *= NOISE
        values += DARK + contrast * patterns[labels]
        grey = np.clip(values, 0, 255, out=values).astype(np.uint8)
        found[f"{part}_x"] = grey.reshape(count, -1) if channels == 1 else grey
        found[f"{part}_y"] = labels
    return found


def _small(*, is_framed: bool) -> dict[str, Grey]:
    """The digits that ship with raymeter, every fifth held out. Raises DataMissing."""
    import numpy as np

    grey, labels = digits.labelled()
    if is_framed:
        frame = np.pad(grey.reshape(-1, 1, 28, 28), ((0, 0), (0, 0), (2, 2), (2, 2)))
        grey = frame.repeat(3, axis=1)
    held_out = np.arange(len(labels)) % HOLD_OUT == HOLD_OUT - 1
    return {
        "train_x": grey[~held_out],
        "train_y": labels[~held_out],
        "test_x": grey[held_out],
        "test_y": labels[held_out],
    }
