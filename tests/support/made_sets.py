"""Small stand-ins for downloaded data sets: the same formats, and pins of their own."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from bench.data import seeded, seeding

COUNTS = (60, 20)


def some_arrays(shape: tuple[int, ...], counts: tuple[int, int] = COUNTS) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {
        key: random.integers(
            0, 256 if key.endswith("x") else 10, (count, *(shape if key.endswith("x") else ())), np.uint8
        )
        for part, count in zip(("train", "test"), counts, strict=True)
        for key in (f"{part}_x", f"{part}_y")
    }


def pin(monkeypatch: pytest.MonkeyPatch, name: str, files: Mapping[str, bytes], folder: Path) -> None:
    """Write `files`, and let their checksums be the ones that the set `name` is known by."""
    folder.mkdir(exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    pins = {file: seeded.sha256_of(folder / file) for file in files}
    monkeypatch.setitem(seeding.ORIGINALS, name, (pins,))


def idx(values: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, values.ndim)) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    return gzip.compress(header + values.tobytes())


def mnist_files(arrays: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {
        f"{theirs}-{kind}": idx(arrays[key].reshape(-1, 28, 28) if key.endswith("x") else arrays[key])
        for ours, theirs in (("train", "train"), ("test", "t10k"))
        for key, kind in ((f"{ours}_x", "images-idx3-ubyte.gz"), (f"{ours}_y", "labels-idx1-ubyte.gz"))
    }


def a_tar(members: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return held.getvalue()


def cifar10_members(arrays: Mapping[str, np.ndarray], *, kind: str) -> dict[str, bytes]:
    parts = [
        *zip(np.array_split(arrays["train_x"], 5), np.array_split(arrays["train_y"], 5), strict=True),
        (arrays["test_x"], arrays["test_y"]),
    ]
    found = {}
    for batch, (rows, labels) in zip(seeding.CIFAR10_BATCHES, parts, strict=True):
        flat = rows.reshape(len(rows), -1)
        if kind == "binary":
            content = np.concatenate([labels[:, None], flat], axis=1).tobytes()
            found[f"cifar-10-batches-bin/{batch}.bin"] = content
        else:
            found[f"cifar-10-batches-py/{batch}"] = pickle.dumps({b"data": flat, b"labels": labels.tolist()})
    return found


def a_seeded_mnist(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny set called mnist in a data folder of its own; gives its file."""
    monkeypatch.setenv("RAYMETER_DATA", str(folder / "data"))
    monkeypatch.setitem(seeded.COUNTS, "mnist", COUNTS)
    pin(monkeypatch, "mnist", mnist_files(some_arrays((784,))), folder / "downloads")
    return seeding.seed("mnist", folder / "downloads")
