"""Checks the user's downloaded files against the published checksums, and makes one data set of them.

The files are hostile until their SHA-256 is the pinned one; only then is anything in them read, and a pickle loaded.
"""

from __future__ import annotations

import gzip
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data import seeded
from bench.errors import BadInput, CannotWrite, DataMissing, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Grey = NDArray[np.uint8]

MNIST_GZ = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MNIST_NPZ = {"mnist.npz": "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"}
CIFAR10_PYTHON = {"cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"}
CIFAR10_BINARY = {"cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}
ORIGINALS = {"mnist": (MNIST_GZ, MNIST_NPZ), "cifar10": (CIFAR10_BINARY, CIFAR10_PYTHON)}

MOST_ORIGINAL_BYTES = 200 * 2**20  # of a downloaded file: a larger one is not worth a checksum
MOST_MEMBER_BYTES = 64 * 2**20  # of a file in one, unpacked
CIFAR10_BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
CIFAR10_ROW = 3 * 32 * 32
IDX_HEADER = {1: 8, 3: 16}  # bytes, by the number of dimensions


def seed(name: str, path: Path) -> Path:
    """Make the set `name` of the files at `path`, in the data folder; gives its file.

    `path` is a file, or the folder that it lies in. Raises BadInput, DataMissing or CannotWrite, and then leaves what
    was there before as it was.
    """
    if name not in ORIGINALS:
        raise BadInput(
            f"There is no set {name} to seed.", f"{did_you_mean(name, ORIGINALS)}Choose from: {', '.join(ORIGINALS)}."
        )
    originals = _checked(name, path)
    arrays = _read_mnist(originals) if name == "mnist" else _read_cifar10(originals)
    _check_shapes(name, arrays)
    return _keep(name, arrays)


def _checked(name: str, path: Path) -> dict[str, Path]:
    """The original files, each with the pinned checksum."""
    folder = path if path.is_dir() else path.parent
    wanted = [
        files
        for files in ORIGINALS[name]
        if (path.is_dir() or path.name in files) and all((folder / file).is_file() for file in files)
    ]
    if not wanted:
        choices = "; or ".join(", ".join(files) for files in ORIGINALS[name])
        raise DataMissing(_without(name, path), f"Give the folder or file of: {choices}, as downloaded.")
    for file, pinned in wanted[0].items():
        size = (folder / file).stat().st_size
        found = seeded.sha256_of(folder / file) if size <= MOST_ORIGINAL_BYTES else f"not looked at, of {size} bytes"
        if found != pinned:
            raise DataMissing(
                f"{folder / file} is not the file that is pinned: its SHA-256 is {found}, and {pinned} is needed.",
                "Download it again.",
            )
    return {file: folder / file for file in wanted[0]}


def _without(name: str, path: Path) -> str:
    """What is wrong with a path at which the set `name` is not: it is no path, or a few of the files are not there."""
    if not path.exists():
        return f"There is no {path}."
    folder = path if path.is_dir() else path.parent
    for files in ORIGINALS[name]:
        lacking = [file for file in files if not (folder / file).is_file()]
        if len(lacking) < len(files):
            return f"{folder} has a part of {name}, and not {', '.join(lacking)}."
    return f"{path} has no {name} in it."


def _read_mnist(originals: Mapping[str, Path]) -> dict[str, Grey]:
    import numpy as np

    if "mnist.npz" in originals:
        with np.load(originals["mnist.npz"], allow_pickle=False) as loaded:
            images = {"train_x": loaded["x_train"], "test_x": loaded["x_test"]}
            labels = {"train_y": loaded["y_train"], "test_y": loaded["y_test"]}
    else:
        images = {f"{ours}_x": read_idx(originals[f"{part}-images-idx3-ubyte.gz"], 3) for ours, part in _PARTS}
        labels = {f"{ours}_y": read_idx(originals[f"{part}-labels-idx1-ubyte.gz"], 1) for ours, part in _PARTS}
    return {key: values.reshape(len(values), -1) for key, values in images.items()} | labels


_PARTS = (("train", "train"), ("test", "t10k"))


def read_idx(path: Path, dimensions: int) -> Grey:
    """The bytes in a gzipped idx file, in the shape that its header says. Raises DataMissing where these do not agree."""
    import numpy as np

    with _readable(path), gzip.open(path) as file:
        content = file.read(MOST_MEMBER_BYTES + 1)
    header = IDX_HEADER[dimensions]
    shape = tuple(int(size) for size in np.frombuffer(content[4:header].ljust(header - 4, b"\0"), dtype=">u4"))
    if content[:4] != bytes((0, 0, 8, dimensions)) or len(content) != header + int(np.prod(shape, dtype=object)):
        raise _damaged(path, f"no idx file of bytes in {dimensions} dimensions")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def _read_cifar10(originals: Mapping[str, Path]) -> dict[str, Grey]:
    import numpy as np

    (name, archive), *_ = originals.items()
    read = _unpickled if "python" in name else _from_binary
    batches = [read(content) for content in read_members(archive, _members(name))]
    images = [rows.reshape(-1, 3, 32, 32) for rows, _ in batches]
    labels = [each for _, each in batches]
    return {
        "train_x": np.concatenate(images[:-1]),
        "train_y": np.concatenate(labels[:-1]),
        "test_x": images[-1],
        "test_y": labels[-1],
    }


def _members(archive: str) -> list[str]:
    if "python" in archive:
        return [f"cifar-10-batches-py/{batch}" for batch in CIFAR10_BATCHES]
    return [f"cifar-10-batches-bin/{batch}.bin" for batch in CIFAR10_BATCHES]


def read_members(archive: Path, names: list[str]) -> Iterator[bytes]:
    """The plain files of these names in a tar.gz, unpacked into memory alone. Raises DataMissing for any other kind or size."""
    with _readable(archive), tarfile.open(archive, "r:gz") as opened:
        for name in names:
            try:
                member = opened.getmember(name)
            except KeyError:
                raise _damaged(archive, f"without {name}") from None
            content = opened.extractfile(member) if member.isreg() and member.size <= MOST_MEMBER_BYTES else None
            if content is None:  # a link, a device, or something huge
                raise _damaged(archive, f"with a {name} that is no plain file of its size")
            yield content.read(MOST_MEMBER_BYTES)


def _from_binary(content: bytes) -> tuple[Grey, Grey]:
    """Rows of one label and the image's bytes."""
    import numpy as np

    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, 1 + CIFAR10_ROW)
    return rows[:, 1:], rows[:, 0]


def _unpickled(content: bytes) -> tuple[Grey, Grey]:
    """A batch of the Python version. Called only once the archive's checksum was the pinned one."""
    import pickle

    import numpy as np

    batch: dict[bytes, Any] = pickle.loads(content, encoding="bytes")  # noqa: S301 its checksum is the pinned one
    return np.asarray(batch[b"data"], dtype=np.uint8), np.asarray(batch[b"labels"], dtype=np.uint8)


def _check_shapes(name: str, arrays: Mapping[str, Grey]) -> None:
    for part, count in zip(("train", "test"), seeded.COUNTS[name], strict=True):
        wanted = (count, *seeded.SHAPES[name])
        found, labels = arrays[f"{part}_x"], arrays[f"{part}_y"]
        if (found.shape, labels.shape) != (wanted, (count,)) or labels.max() > 9 or found.dtype.name != "uint8":
            raise DataMissing(f"The files of {name} hold {found.shape} images, and {wanted} are needed.")


def _keep(name: str, arrays: Mapping[str, Grey]) -> Path:
    """Write the set under a name that has its checksum, in place of the one before."""
    import numpy as np

    folder = seeded.folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{name}.", delete=False) as file:
            # Not compressed: the same arrays then give the same bytes, whatever zlib there is.
            np.savez(file, allow_pickle=False, **{key: np.ascontiguousarray(arrays[key]) for key in seeded.ARRAYS})
        written = Path(file.name)
        path = folder / f"{name}.{seeded.sha256_of(written)}.npz"
        written.chmod(0o644)
        written.replace(path)
        for other in seeded.files(name):
            if other != path:
                other.unlink()
    except OSError as error:
        raise CannotWrite(
            f"{folder} cannot be written to ({error.strerror}).", "Name another folder with RAYMETER_DATA."
        ) from error
    return path


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever an unpacker finds wrong with `path` is DataMissing."""
    import zlib

    try:
        yield
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise _damaged(path, f"not readable ({error})") from error


def _damaged(path: Path, how: str) -> DataMissing:
    return DataMissing(f"{path} is {how}.", "Download it again.")
