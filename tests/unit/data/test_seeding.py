"""Downloaded files become a set when they are the pinned ones, and leave nothing behind when they are not."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sets import COUNTS, a_tar, cifar10_members, idx, mnist_files, pin, some_arrays

from bench.data import seeded, seeding
from bench.errors import BadInput, CannotWrite, DataMissing


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path / "data"))
    for name in seeded.COUNTS:
        monkeypatch.setitem(seeded.COUNTS, name, COUNTS)
    return tmp_path / "data"


def test_the_pins_are_those_that_keras_has() -> None:
    root = Path(pytest.importorskip("importlib.util").find_spec("keras").origin).parent / "src/datasets"  # not imported
    assert seeding.MNIST_NPZ["mnist.npz"] in (root / "mnist.py").read_text()
    assert seeding.CIFAR10_PYTHON["cifar-10-python.tar.gz"] in (root / "cifar10.py").read_text()


def test_idx_files_become_a_set_with_the_same_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = some_arrays((784,))
    pin(monkeypatch, "mnist", mnist_files(arrays), tmp_path / "d")
    path = seeding.seed("mnist", tmp_path / "d")
    assert path == seeded.find("mnist")
    assert path.name == f"mnist.{seeded.sha256_of(path)}.npz"
    for key, values in seeded.read("mnist").items():
        np.testing.assert_array_equal(values, arrays[key])


def test_both_downloads_of_one_set_give_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = some_arrays((784,))
    pin(monkeypatch, "mnist", mnist_files(arrays), tmp_path / "d")
    first = seeding.seed("mnist", tmp_path / "d")
    held = io.BytesIO()
    theirs = {f"{key[-1]}_{key[:-2]}": values for key, values in arrays.items()}
    np.savez_compressed(held, **{k: v.reshape(-1, 28, 28) if k[0] == "x" else v for k, v in theirs.items()})
    pin(monkeypatch, "mnist", {"mnist.npz": held.getvalue()}, tmp_path / "n")
    assert seeding.seed("mnist", tmp_path / "n" / "mnist.npz") == first

    colours = some_arrays((3, 32, 32))
    found = []
    for kind in ("binary", "python"):
        archive = {f"cifar-10-{kind}.tar.gz": a_tar(cifar10_members(colours, kind=kind))}
        pin(monkeypatch, "cifar10", archive, tmp_path / kind)
        found.append(seeding.seed("cifar10", tmp_path / kind))
    assert found[0] == found[1]
    for key, values in seeded.read("cifar10").items():
        np.testing.assert_array_equal(values, colours[key])


def test_a_file_with_another_checksum_is_refused_and_never_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(tarfile, "open", lambda *a, **k: opened.append(a))
    monkeypatch.setattr(pickle, "loads", lambda *a, **k: opened.append(a))
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"not the archive")
    with pytest.raises(DataMissing, match=r"its SHA-256 is .* is needed"):
        seeding.seed("cifar10", tmp_path)
    assert not opened
    assert not (tmp_path / "data").exists()


def test_a_file_too_large_to_be_the_right_one_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "mnist.npz").open("wb") as file:
        file.truncate(seeding.MOST_ORIGINAL_BYTES + 1)
    monkeypatch.setattr(seeded, "sha256_of", lambda _: pytest.fail("it was read"))
    with pytest.raises(DataMissing, match="not looked at"):
        seeding.seed("mnist", tmp_path / "mnist.npz")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_a_link_or_device_in_an_archive_is_refused(tmp_path: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("a/batch")
    link.type, link.linkname = kind, "/etc/passwd"
    (tmp_path / "x.tar.gz").write_bytes(a_tar({"a/batch": link}))
    with pytest.raises(DataMissing, match="no plain file"):
        list(seeding.read_members(tmp_path / "x.tar.gz", ["a/batch"]))


def test_what_would_lie_outside_the_folder_is_never_written(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(a_tar({"../escaped": b"out", "/tmp/escaped": b"out", "a/batch": b"in"}))
    before = sorted(tmp_path.rglob("*"))
    assert list(seeding.read_members(tmp_path / "x.tar.gz", ["a/batch"])) == [b"in"]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_huge_member_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(a_tar({"a/batch": bytes(seeding.MOST_MEMBER_BYTES + 1)}))
    assert archive.stat().st_size < 2**20
    with pytest.raises(DataMissing, match="no plain file of its size"):
        list(seeding.read_members(archive, ["a/batch"]))


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip",
        gzip.compress(b""),
        gzip.compress(bytes((0, 0, 8, 3)) + b"\xff" * 12),
        gzip.compress(bytes((0, 0, 13, 3)) + bytes(12)),
        gzip.compress(bytes(seeding.MOST_MEMBER_BYTES + 2)),
        idx(np.zeros((3, 4, 4), np.uint8))[:-9],
    ],
    ids=["no gzip", "empty", "more than there can be", "floats", "too large", "cut"],
)
def test_a_damaged_idx_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.gz").write_bytes(content)
    with pytest.raises(DataMissing, match="Download it again"):
        seeding.read_idx(tmp_path / "x.gz", 3)


def test_other_counts_than_the_set_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, "mnist", mnist_files(some_arrays((784,), (50, 20))), tmp_path / "d")
    with pytest.raises(DataMissing, match=r"hold \(50, 784\) images, and \(60, 784\)"):
        seeding.seed("mnist", tmp_path / "d")


def test_seeding_anew_takes_the_place_of_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    old = tmp_path / "data" / f"mnist.{'0' * 64}.npz"
    old.write_bytes(b"old")
    pin(monkeypatch, "mnist", mnist_files(some_arrays((784,))), tmp_path / "d")
    path = seeding.seed("mnist", tmp_path / "d")
    assert list((tmp_path / "data").iterdir()) == [path]


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path / "file" / "data"))
    pin(monkeypatch, "mnist", mnist_files(some_arrays((784,))), tmp_path / "d")
    with pytest.raises(CannotWrite, match="RAYMETER_DATA"):
        seeding.seed("mnist", tmp_path / "d")


def test_an_unknown_set_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Choose from: mnist, cifar10"):
        seeding.seed("imagenet", tmp_path)
    with pytest.raises(DataMissing, match="has no mnist in it"):
        seeding.seed("mnist", tmp_path)


def test_a_path_that_is_none_and_files_that_are_not_all_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"There is no .*/nowhere\."):
        seeding.seed("mnist", tmp_path / "nowhere")
    first, *others = seeding.MNIST_GZ
    (tmp_path / first).write_bytes(b"")
    with pytest.raises(DataMissing, match=f"has a part of mnist, and not {', '.join(others)}"):
        seeding.seed("mnist", tmp_path)


def test_made_up_files_of_the_right_names_and_shapes_are_refused_with_both_checksums(tmp_path: Path) -> None:
    arrays = some_arrays((784,))
    for file, content in mnist_files(arrays).items():
        (tmp_path / file).write_bytes(content)
    first, pinned = next(iter(seeding.MNIST_GZ.items()))
    with pytest.raises(DataMissing, match=f"SHA-256 is {seeded.sha256_of(tmp_path / first)}, and {pinned} is needed"):
        seeding.seed("mnist", tmp_path)

    theirs = {f"{key[-1]}_{key[:-2]}": values for key, values in arrays.items()}
    np.savez(tmp_path / "mnist.npz", **theirs)
    found = seeded.sha256_of(tmp_path / "mnist.npz")
    with pytest.raises(DataMissing, match=f"SHA-256 is {found}, and {seeding.MNIST_NPZ['mnist.npz']} is needed"):
        seeding.seed("mnist", tmp_path / "mnist.npz")
    assert not (tmp_path / "data").exists()
