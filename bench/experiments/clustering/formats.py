"""Vectors as bytes in a file, and back: text, float32 as it is, the same compressed, Parquet and Arrow.

A writer is handed vectors piece by piece, as who computes them would, and what lies between it and the file is one buffer.
The file is raw: each of its calls is one of the operating system.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = NDArray[np.float32]

Format = Literal["text", "text-double", "binary", "zlib", "lz4", "zstd", "parquet", "arrow"]
PIECE_BYTES = 4096  # of vectors that are handed over at once
BATCH_BYTES = 2**20  # of vectors in one record batch of Arrow
TEXTS = {
    "text": "%.9g",
    "text-double": "%r",
}  # the digits that give a float32 back; those of the double that it becomes


def write(format: Format, raw: io.RawIOBase, vectors: Points, buffer_bytes: int) -> None:
    """All of `vectors`, shape (points, dimensions), to `raw` from its beginning, through a buffer of that size."""
    _FORMATS[format].write(raw, vectors, buffer_bytes)


def read(format: Format, raw: io.RawIOBase, shape: tuple[int, int], buffer_bytes: int) -> Points:
    """The vectors that were written to `raw`. Raises ValueError where there are more or fewer than `shape` says."""
    found = _FORMATS[format].read(raw, shape, buffer_bytes)
    if found.shape != shape:
        raise ValueError(f"vectors of shape {found.shape} were read, and {shape} were written")
    return found


class _Packer(Protocol):
    def compress(self, data: Any, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Unpacker(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


class _Packing(io.RawIOBase):
    """What is written to it goes on compressed."""

    def __init__(self, raw: io.RawIOBase, packer: _Packer) -> None:
        self._raw = raw
        self._packer = packer

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        _write_all(self._raw, self._packer.compress(data))
        return memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed:
            _write_all(self._raw, self._packer.flush())
        super().close()


def _write_all(raw: io.RawIOBase, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[raw.write(view) or 0 :]


def _pieces(vectors: Points) -> Iterator[Points]:
    rows = max(1, PIECE_BYTES // (4 * vectors.shape[1]))
    return (vectors[begin : begin + rows] for begin in range(0, len(vectors), rows))


def _write_text(digits: str) -> Callable[[io.RawIOBase, Points, int], None]:
    def write_text(raw: io.RawIOBase, vectors: Points, buffer_bytes: int) -> None:
        line = " ".join([digits] * vectors.shape[1]) + "\n"
        file = io.BufferedWriter(raw, buffer_bytes)
        for piece in _pieces(vectors):
            file.write((line * len(piece) % tuple(piece.ravel().tolist())).encode())
        file.flush()
        file.detach()

    return write_text


def _read_text(raw: io.RawIOBase, shape: tuple[int, int], buffer_bytes: int) -> Points:
    import numpy as np

    file = io.BufferedReader(raw, buffer_bytes)
    values = np.fromiter((float(word) for line in file for word in line.split()), dtype=np.float32)
    file.detach()
    found: Points = values.reshape(-1, shape[1])
    return found


def _write_binary(raw: io.RawIOBase, vectors: Points, buffer_bytes: int) -> None:
    file = io.BufferedWriter(raw, buffer_bytes)
    for piece in _pieces(vectors):
        file.write(piece.data)
    file.flush()
    file.detach()


def _read_binary(raw: io.RawIOBase, shape: tuple[int, int], buffer_bytes: int) -> Points:
    import numpy as np

    found: Points = np.empty(shape, dtype=np.float32)
    view, at = found.data.cast("B"), 0
    file = io.BufferedReader(raw, buffer_bytes)
    while got := file.readinto(view[at : at + PIECE_BYTES]):
        at += got
    is_longer = bool(file.read(1))
    file.detach()
    if at != found.nbytes or is_longer:
        raise ValueError(f"{at} bytes{' and more' if is_longer else ''} were read, and {found.nbytes} were written")
    return found


def _write_packed(packer: Callable[[], _Packer]) -> Callable[[io.RawIOBase, Points, int], None]:
    def write_packed(raw: io.RawIOBase, vectors: Points, buffer_bytes: int) -> None:
        with io.BufferedWriter(_Packing(raw, packer()), buffer_bytes) as file:
            for piece in _pieces(vectors):
                file.write(piece.data)

    return write_packed


def _read_packed(unpacker: Callable[[], _Unpacker]) -> Callable[[io.RawIOBase, tuple[int, int], int], Points]:
    def read_packed(raw: io.RawIOBase, shape: tuple[int, int], buffer_bytes: int) -> Points:
        import numpy as np

        found: Points = np.empty(shape, dtype=np.float32)
        view, at, opened = found.data.cast("B"), 0, unpacker()
        while packed := raw.read(buffer_bytes):
            data = opened.decompress(packed)
            view[at : at + len(data)] = data  # ValueError where it is more than there is room for
            at += len(data)
        if at != found.nbytes:
            raise ValueError(f"{at} bytes were read, and {found.nbytes} were written")
        return found

    return read_packed


class _Lz4:
    """As zlib's object is, with the header that it forgets to write by itself."""

    def __init__(self) -> None:
        from lz4.frame import LZ4FrameCompressor

        self._made = LZ4FrameCompressor()
        self._begun = False

    def compress(self, data: Any, /) -> bytes:
        head = b"" if self._begun else self._made.begin()
        self._begun = True
        return bytes(head + self._made.compress(data))

    def flush(self) -> bytes:
        return bytes(self.compress(b"") + self._made.flush())


def _unlz4() -> _Unpacker:
    from lz4.frame import LZ4FrameDecompressor

    made: _Unpacker = LZ4FrameDecompressor()
    return made


def _zstd() -> _Packer:
    from zstandard import ZstdCompressor

    return ZstdCompressor().compressobj()


def _unzstd() -> _Unpacker:
    from zstandard import ZstdDecompressor

    return ZstdDecompressor().decompressobj()


def _batch(vectors: Points) -> Any:
    """A record batch of one column of lists, without a copy."""
    import pyarrow as pa

    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.record_batch([values], names=["vector"])


def _batches(vectors: Points) -> Iterator[Any]:
    rows = max(1, BATCH_BYTES // (4 * vectors.shape[1]))
    return (_batch(vectors[begin : begin + rows]) for begin in range(0, len(vectors), rows))


def _joined(batches: Any, dimensions: int) -> Points:
    import numpy as np

    parts = [batch.column(0).flatten().to_numpy() for batch in batches]
    found: Points = np.concatenate(parts).reshape(-1, dimensions)
    return found


def _write_arrow(raw: io.RawIOBase, vectors: Points, buffer_bytes: int) -> None:
    import pyarrow as pa

    with (
        pa.BufferedOutputStream(pa.PythonFile(raw, mode="w"), buffer_bytes) as sink,
        pa.ipc.new_stream(sink, _batch(vectors[:1]).schema) as file,
    ):
        for batch in _batches(vectors):
            file.write_batch(batch)


def _read_arrow(raw: io.RawIOBase, shape: tuple[int, int], buffer_bytes: int) -> Points:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.BufferedInputStream(pa.PythonFile(raw, mode="r"), buffer_bytes)) as file:
        return _joined(file, shape[1])


def _write_parquet(raw: io.RawIOBase, vectors: Points, buffer_bytes: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    with pa.BufferedOutputStream(pa.PythonFile(raw, mode="w"), buffer_bytes) as sink:
        table = pa.Table.from_batches(_batches(vectors))
        parquet.write_table(table, sink, compression="zstd", use_dictionary=False)


def _read_parquet(raw: io.RawIOBase, shape: tuple[int, int], buffer_bytes: int) -> Points:
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(pa.PythonFile(raw, mode="r"), buffer_size=buffer_bytes, pre_buffer=False) as file:
        return _joined(file.read(use_threads=False).to_batches(), shape[1])


@dataclass(frozen=True)
class _Codec:
    write: Callable[[io.RawIOBase, Points, int], None]
    read: Callable[[io.RawIOBase, tuple[int, int], int], Points]


_FORMATS: Mapping[Format, _Codec] = {
    "text": _Codec(_write_text(TEXTS["text"]), _read_text),
    "text-double": _Codec(_write_text(TEXTS["text-double"]), _read_text),
    "binary": _Codec(_write_binary, _read_binary),
    "zlib": _Codec(_write_packed(zlib.compressobj), _read_packed(zlib.decompressobj)),
    "lz4": _Codec(_write_packed(_Lz4), _read_packed(_unlz4)),
    "zstd": _Codec(_write_packed(_zstd), _read_packed(_unzstd)),
    "parquet": _Codec(_write_parquet, _read_parquet),
    "arrow": _Codec(_write_arrow, _read_arrow),
}
