"""Reads the user's own file of vectors (.npy, Parquet or safetensors), checked first, job by job.

The driver reads it, so it must lie on the driver's node. A header says what there is before anything is read.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING, Any

from bench.errors import BadInput, DataMissing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = NDArray[np.float32]
    Rows = Callable[[int, int], NDArray[Any]]  # vectors from the first, up to and without the second

MOST_WINDOW_BYTES = 2**30  # of one job, and of what must be read to get at it
FLOATS = {"F16": 2, "F32": 4, "F64": 8}  # of safetensors: bytes of a value
FLOAT_BYTES = (2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file that was checked: how many vectors it has, and how to get at those of a job."""

    name: str
    sha256: str
    vectors: int
    dimensions: int
    points: int  # of one job
    rows: Rows

    @property
    def jobs(self) -> int:
        """Whole jobs that there are vectors for."""
        return self.vectors // self.points

    def read(self, job: int) -> Points:
        """The vectors of one job, shape (points, dimensions). Raises BadInput where one of them is not finite."""
        import numpy as np

        begin = job * self.points
        if not 0 <= begin <= self.vectors - self.points:
            raise IndexError(f"{self.name} has vectors for {self.jobs} jobs, and job {job} was asked for")
        with np.errstate(over="ignore"):  # a float64 that is too large becomes infinite, and is found below
            found: Points = np.array(self.rows(begin, begin + self.points), dtype=np.float32, order="C")
        if found.shape != (self.points, self.dimensions):
            raise BadInput(
                f"input={self.name}: it ends before vector {begin + self.points}, which its header promises."
            )
        finite = np.isfinite(found).all(axis=1)
        if not finite.all():
            raise BadInput(
                f"input={self.name}: vector {begin + int(finite.argmin())} (the first is 0) has a value that is no finite"
                f" float32, as have {int((~finite).sum()) - 1} more of the {self.points} of its job.",
                "Leave such vectors out of the file.",
            )
        return found


def open_input(path: str, points: int, dimensions: int, *, sha256: str | None = None) -> Input:
    """The file at `path`, checked, as jobs of so many vectors. `sha256`: where it was computed before.

    Raises DataMissing where it is not on this node, and BadInput where it is not what it should be.
    """
    check_path(path)
    if 4 * points * dimensions > MOST_WINDOW_BYTES:
        raise BadInput(f"Jobs of {points} vectors of {dimensions} are more than 1 GiB each.", "Lower points.")
    sha256 = sha256 or checksum(Path(path))
    vectors, rows = _FORMATS[Path(path).suffix](Path(path), dimensions)
    if vectors < points:
        raise BadInput(f"input={path}: it has {vectors} vectors, and one job takes {points}.", "Lower points.")
    return Input(name=Path(path).name, sha256=sha256, vectors=vectors, dimensions=dimensions, points=points, rows=rows)


def open_jobs(path: str, points: int, dimensions: int, jobs: int) -> Input:
    """The file at `path`, with every vector of so many jobs read and found good. Raises BadInput or DataMissing."""
    found = open_input(path, points, dimensions)
    if found.jobs < jobs:
        raise BadInput(
            f"input={path} has {found.vectors} vectors: {found.jobs} jobs of {points}, not {jobs}.",
            "Lower jobs or points.",
        )
    for job in range(jobs):
        found.read(job)
    return found


def check_path(path: str) -> None:
    """Raise BadInput unless `path` is whole and has an ending that is read here. Nothing is looked at."""
    if not Path(path).is_absolute():
        raise BadInput(f"input must be an absolute path, got {path!r}.", "Begin it with /.")
    if Path(path).suffix not in _FORMATS:
        raise BadInput(f"input must be a file that ends in {', '.join(_FORMATS)}, got {path!r}.", "Convert the file.")


def checksum(path: Path) -> str:
    """SHA-256 of a regular file of this node. Raises BadInput or DataMissing."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise BadInput(f"input={path}: it is no regular file.")
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataMissing(
            f"input={path} cannot be read on the node of the driver: {error.strerror}.",
            "It must lie there under that very path: use the target local, or an image that has it.",
        ) from error


def _npy(path: Path, dimensions: int) -> tuple[int, Rows]:
    """numpy's own format, mapped into memory; nothing in it is unpickled."""
    import numpy as np

    with path.open("rb") as file:
        try:
            shape, fortran, dtype = _npy_header(file)
        except (ValueError, TypeError, SyntaxError, EOFError, TokenError) as error:
            raise BadInput(f"input={path} is no .npy file: {error}.") from error
        offset = file.tell()
    if dtype.kind != "f" or dtype.itemsize not in FLOAT_BYTES:
        raise BadInput(f"input={path} has values of type {dtype}.", "It takes floats of 2, 4 or 8 bytes.")
    if len(shape) not in (1, 2) or min(shape) < 0:
        raise BadInput(f"input={path} has shape {shape}.", "It takes (vectors, dimensions), or all values in a row.")
    promised, there = math.prod(shape) * dtype.itemsize, path.stat().st_size - offset
    if promised > there:
        raise BadInput(f"input={path} is cut short: its header promises {promised} bytes, and {there} are there.")
    if len(shape) == 2:
        _check_width(path, shape[1], dimensions)
    if not promised:
        return 0, lambda _begin, _end: np.empty((0, dimensions))
    array: NDArray[Any] = np.memmap(
        path, mode="r", dtype=dtype, shape=shape, offset=offset, order="F" if fortran else "C"
    )
    if len(shape) == 1:
        array = array[: shape[0] // dimensions * dimensions].reshape(-1, dimensions)
    return len(array), lambda begin, end: array[begin:end]


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type. Raises ValueError and its like."""
    from numpy.lib import format as npy

    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"version {version} is not known")
    shape, fortran, dtype = read(file)
    return tuple(int(length) for length in shape), bool(fortran), dtype


def _parquet(path: Path, dimensions: int) -> tuple[int, Rows]:
    """As many columns of floats as a vector has values, or one column of lists of so many floats."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, memory_map=True) as file:
            types = file.schema_arrow.types
            counts = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"input={path} is no Parquet file: {_first_line(error)}.") from error
    is_list = len(types) == 1 and _is_list(types[0])
    if not all(pa.types.is_floating(each.value_type if is_list else each) for each in types):
        raise BadInput(
            f"input={path} has columns of type {', '.join(map(str, types[:4]))}.",
            "It takes columns of floats, or one column of lists of floats.",
        )
    if not is_list:
        _check_width(path, len(types), dimensions)

    def rows(begin: int, end: int) -> NDArray[Any]:
        import numpy as np

        try:
            return np.concatenate(list(_parquet_rows(path, counts, (begin, end), dimensions if is_list else None)))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise BadInput(f"input={path}, vectors {begin} to {end}: {_first_line(error)}.") from error

    return sum(counts), rows


def _parquet_rows(
    path: Path, counts: Sequence[int], span: tuple[int, int], width: int | None
) -> Iterator[NDArray[Any]]:
    """The vectors in `span`, from the groups that have any; what lies before them in a group is read and dropped.

    `width` is that of the lists; None: each value has a column.
    """
    import numpy as np
    from pyarrow import parquet

    begin, end = span
    starts = [sum(counts[:number]) for number in range(len(counts) + 1)]
    groups = [number for number in range(len(counts)) if starts[number] < end and starts[number + 1] > begin]
    at = starts[groups[0]]
    with parquet.ParquetFile(path, memory_map=True) as file:
        for batch in file.iter_batches(batch_size=end - begin, row_groups=groups):
            first, last = max(begin - at, 0), min(end - at, len(batch))
            at += len(batch)
            if first >= last:
                continue
            part = batch.slice(first, last - first)
            if any(column.null_count for column in part.columns):
                raise ValueError("there are rows without a value")
            if width is not None:
                yield _flat(part.column(0), width)
            else:
                yield np.stack([column.to_numpy(zero_copy_only=False) for column in part.columns], axis=1)


def _flat(lists: Any, width: int) -> NDArray[Any]:
    values = lists.flatten()
    if values.null_count:
        raise ValueError("there are lists without a value")
    if set(lists.value_lengths().to_pylist()) != {width}:
        raise ValueError(f"there are lists that are not of {width} values")
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found.reshape(-1, width)


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _safetensors(path: Path, dimensions: int) -> tuple[int, Rows]:
    """Every tensor of floats, in the order of their names, each cut into vectors; what is left at its end is left out."""
    pieces = list(_tensors(path, dimensions))
    if not pieces:
        raise BadInput(
            f"input={path} has no tensor of {dimensions} floats.", f"Its type must be one of {', '.join(FLOATS)}."
        )

    def rows(begin: int, end: int) -> NDArray[Any]:
        import numpy as np
        from safetensors import safe_open

        found, at = [np.empty((0, dimensions), dtype=np.float32)], 0
        with safe_open(path, framework="numpy") as file:
            for piece in pieces:
                first, last = max(begin - at, 0), min(end - at, piece.vectors)
                if first < last:
                    found.append(piece.values(file, first * dimensions, last * dimensions).reshape(-1, dimensions))
                at += piece.vectors
        return np.concatenate(found)

    return sum(piece.vectors for piece in pieces), rows


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    name: str
    shape: Sequence[int]
    value_bytes: int
    vectors: int

    def values(self, file: Any, begin: int, end: int) -> NDArray[Any]:
        """Values in a row, from those slices of its first dimension that have any."""
        width = math.prod(self.shape[1:])
        first, last = begin // width, -(-end // width)
        if (last - first) * width * self.value_bytes > MOST_WINDOW_BYTES:
            raise BadInput(f"The tensor {self.name!r:.80} has slices of more than 1 GiB.", "Reshape it.")
        found: NDArray[Any] = file.get_slice(self.name)[first:last].reshape(-1)[
            begin - first * width : end - first * width
        ]
        return found


def _tensors(path: Path, dimensions: int) -> Iterator[_Tensor]:
    """What the header says; the library has checked it against the size of the file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            for name in sorted(file.keys()):
                held = file.get_slice(name)
                shape, kind = held.get_shape(), held.get_dtype()
                vectors = math.prod(shape) // dimensions if shape and kind in FLOATS else 0
                if vectors:
                    yield _Tensor(name=name, shape=shape, value_bytes=FLOATS[kind], vectors=vectors)
    except (SafetensorError, OSError, ValueError) as error:
        raise BadInput(f"input={path} is no safetensors file: {_first_line(error)}.") from error


def _check_width(path: Path, width: int, dimensions: int) -> None:
    if width != dimensions:
        raise BadInput(f"input={path} has vectors of {width} values, not {dimensions}.", f"Say dimensions={width}.")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")


_FORMATS: Mapping[str, Callable[[Path, int], tuple[int, Rows]]] = {
    ".npy": _npy,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
