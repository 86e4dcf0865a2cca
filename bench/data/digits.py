"""Input vectors of 28 x 28 grey values: handwritten digits of MNIST, or random ones."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.errors import DataMissing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Source = Literal["mnist", "random"]

VECTORS = 5_000
PIXELS = 784
MNIST_FILE = Path(__file__).with_name("digits.csv.gz")  # digits.md beside it has source and license
MNIST_SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"


def vectors(source: Source, seed: int) -> NDArray[np.uint8]:
    """5,000 distinct vectors of 784 grey values, read-only; `seed` matters to the random ones alone."""
    return mnist() if source == "mnist" else random_vectors(seed)


def checksum(source: Source, seed: int) -> str:
    """SHA-256 of the file of `source`, or of the random vectors that `seed` makes."""
    return MNIST_SHA256 if source == "mnist" else sha256(random_vectors(seed).data).hexdigest()


@lru_cache(maxsize=2)
def random_vectors(seed: int) -> NDArray[np.uint8]:
    """Grey values that are evenly spread, the same ones for the same seed."""
    import numpy as np

    values = np.random.Generator(np.random.PCG64([seed, PIXELS])).integers(0, 256, (VECTORS, PIXELS), dtype=np.uint8)
    values.flags.writeable = False
    return values


def mnist(file: Path = MNIST_FILE) -> NDArray[np.uint8]:
    """The vectors of the MNIST digits, without their labels. Raises DataMissing."""
    return labelled(file)[0]


@lru_cache(maxsize=1)
def labelled(file: Path = MNIST_FILE) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The vectors of the MNIST digits, and the digit that each is, in order of these. Raises DataMissing."""
    import gzip
    import io

    import numpy as np

    try:
        packed = file.read_bytes()
    except OSError as error:
        raise _missing(f"cannot be read ({error.strerror})", file) from error
    found = sha256(packed).hexdigest()
    if found != MNIST_SHA256:
        raise _missing(f"has another SHA-256 ({found})", file)
    table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", dtype=np.uint8)
    values, labels = np.ascontiguousarray(table[:, :PIXELS]), np.ascontiguousarray(table[:, PIXELS])
    values.flags.writeable = labels.flags.writeable = False
    return values, labels


def _missing(what: str, file: Path) -> DataMissing:
    return DataMissing(
        f"MNIST: {file} {what}; SHA-256 {MNIST_SHA256} is needed.",
        "Restore it (git checkout bench/data), or use random inputs (--set data=random).",
    )
