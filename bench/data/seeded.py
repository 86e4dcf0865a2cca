"""Finds, checks and reads the data sets that the user has seeded.

A set is one file, `<name>.<its SHA-256>.npz`, with train_x, train_y, test_x and test_y: its name is its pin. Outside it
lies in the user's data folder (RAYMETER_DATA names another); inside a cluster RAYMETER_DATA is where it was sent to.
"""

from __future__ import annotations

import os
import re
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_data_path

from bench.errors import DataMissing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER_VARIABLE = "RAYMETER_DATA"
NAMES = ("mnist", "cifar10")
FILE_NAME = re.compile(r"([a-z0-9-]{1,40})\.([0-9a-f]{64})\.npz")
ARRAYS = ("train_x", "train_y", "test_x", "test_y")
SHAPES = {"mnist": (784,), "cifar10": (3, 32, 32)}  # of one image
COUNTS = {"mnist": (60_000, 10_000), "cifar10": (50_000, 10_000)}  # to train on, held out
MOST_BYTES = 256 * 2**20  # of one set's file


def folder() -> Path:
    """Where seeded sets are kept, whether or not it is there yet."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path(user_data_path("raymeter"))


def find(name: str) -> Path:
    """The file of the set `name`. Raises DataMissing, with the command to type."""
    found = files(name)
    if len(found) == 1:
        return found[0]
    if found:
        raise DataMissing(
            f"There are {len(found)} sets called {name} in {folder()}.", "Remove them, and seed it again."
        )
    raise DataMissing(f"The set {name} is not in {folder()}.", f"Type: bench data seed {name} PATH")


def files(name: str) -> list[Path]:
    """The files that are called like the set `name`: one, or none."""
    return [
        path
        for path in sorted(folder().glob(f"{name}.*.npz"))
        if (m := FILE_NAME.fullmatch(path.name)) and m[1] == name
    ]


def checksum(name: str) -> str:
    """The SHA-256 that the set `name` is pinned by. Raises DataMissing."""
    return find(name).name.split(".")[1]


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read(name: str) -> dict[str, NDArray[np.uint8]]:
    """The arrays of the set `name`, grey values and labels as they are. Raises DataMissing where it is not the pinned one."""
    import numpy as np

    path = find(name)
    found = sha256_of(path)
    if found != checksum(name):
        raise DataMissing(f"{path} has another SHA-256 ({found}).", f"Type: bench data seed {name} PATH")
    with np.load(path, allow_pickle=False) as loaded:
        return {array: loaded[array] for array in ARRAYS}
