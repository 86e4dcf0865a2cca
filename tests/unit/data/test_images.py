"""Sets of images have the shapes that they are said to have, and a checksum that changes with what is in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_sets import a_seeded_mnist

from bench.data import digits, images, seeded
from bench.errors import DataMissing


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("mnist-small", (784,), (4_000, 1_000)),
        ("synthetic", (784,), (10_000, 2_000)),
        ("mnist-small-32", (3, 32, 32), (4_000, 1_000)),
        ("synthetic-32", (3, 32, 32), (10_000, 2_000)),
    ],
)
def test_sets_have_the_shapes_of_their_table(
    name: images.Source, shape: tuple[int, ...], counts: tuple[int, int]
) -> None:
    found = images.load(name, 1)
    assert found.train_x.shape == (counts[0], *shape)
    assert found.test_x.shape == (counts[1], *shape)
    assert len(found.test_x) == images.HELD_OUT[name]
    assert (found.train_x.dtype, found.train_y.dtype) == (np.float32, np.int64)
    assert 0 <= found.train_x.min() < found.train_x.max() <= 1
    for labels in (found.train_y, found.test_y):  # every class as often as the others
        assert len(set(np.bincount(labels, minlength=10).tolist())) == 1
    for array in (found.train_x, found.train_y, found.test_x, found.test_y):
        assert not array.flags.writeable


def test_every_set_says_how_many_it_holds_out() -> None:
    assert images.HELD_OUT.keys() == set(images.SOURCES)


def test_grey_values_as_they_are_take_a_quarter_of_the_memory() -> None:
    grey, floats = images.load("mnist-small", 1, "uint8"), images.load("mnist-small", 1)
    assert grey.train_x.nbytes * 4 == floats.train_x.nbytes
    np.testing.assert_array_equal(images.as_floats(grey.train_x), floats.train_x)


def test_digits_have_their_own_labels_and_none_is_in_both_parts() -> None:
    found = images.load("mnist-small", 1, "uint8")
    table = {row.tobytes(): label for row, label in zip(*digits.labelled(), strict=True)}
    for rows, labels in ((found.train_x, found.train_y), (found.test_x, found.test_y)):
        assert [table.pop(row.tobytes()) for row in rows] == labels.tolist()
    assert not table


def test_the_framed_digits_are_the_same_digits_on_three_channels() -> None:
    framed, flat = images.load("mnist-small-32", 1), images.load("mnist-small", 1)
    for channel in range(3):
        inside = framed.train_x[:, channel, 2:30, 2:30].reshape(4_000, -1)
        np.testing.assert_array_equal(inside, flat.train_x)
    assert framed.train_x.sum() == pytest.approx(3 * flat.train_x.sum(), rel=1e-4)


def test_synthetic_images_come_from_the_seed_alone() -> None:
    first = images.load("synthetic", 5)
    checksum = images.checksum("synthetic", 5)
    images.synthetic.cache_clear()
    np.testing.assert_array_equal(first.train_x, images.load("synthetic", 5).train_x)
    assert images.checksum("synthetic", 5) == checksum != images.checksum("synthetic", 6)


@pytest.mark.parametrize("name", ["synthetic", "synthetic-32"])
def test_synthetic_classes_can_be_told_apart_and_not_without_learning(name: images.Source) -> None:
    found = images.load(name, 1)
    rows, held_out = (part.reshape(len(part), -1) for part in (found.train_x, found.test_x))
    means = np.stack([rows[found.train_y == label].mean(axis=0) for label in range(10)])
    nearest = ((held_out[:, None, :50] - means[:, :50]) ** 2).sum(axis=2).argmin(axis=1)
    scores = held_out @ means.T - 0.5 * (means**2).sum(axis=1)
    assert (scores.argmax(axis=1) == found.test_y).mean() > 0.99
    assert (nearest == found.test_y).mean() < 0.9


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_set_that_is_not_seeded_is_said_with_the_command_to_type(
    name: images.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path / "none"))
    for ask in (images.checksum, images.load):
        with pytest.raises(DataMissing, match=f"Type: bench data seed {name} PATH") as caught:
            ask(name, 1)  # type: ignore[operator]
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 9


def test_a_seeded_set_is_read_and_named_by_the_checksum_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_seeded_mnist(tmp_path, monkeypatch)
    found = images.load("mnist", 1)
    assert images.checksum("mnist", 1) == seeded.sha256_of(path)
    assert (found.train_x.dtype, found.train_x.shape, found.train_y.dtype) == (np.float32, (60, 784), np.int64)


def test_a_seeded_set_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_seeded_mnist(tmp_path, monkeypatch)
    content = bytearray(path.read_bytes())
    content[-200] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataMissing, match="another SHA-256"):
        images.load("mnist", 1)


def test_two_sets_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_seeded_mnist(tmp_path, monkeypatch)
    path.with_name(f"mnist.{'0' * 64}.npz").write_bytes(b"")
    with pytest.raises(DataMissing, match="There are 2 sets called mnist"):
        images.checksum("mnist", 1)
