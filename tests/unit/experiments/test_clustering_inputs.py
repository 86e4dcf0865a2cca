"""A person's own file: the same vectors whatever it is kept as, window by window, and refused where it is not what it says."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from safetensors.numpy import save_file

from bench.errors import BadInput, DataMissing
from bench.experiments.clustering.inputs import open_input

VECTORS = np.random.default_rng(5).standard_normal((25, 4)).astype(np.float32)


def npy(path: Path, vectors: Any) -> Path:
    path = path.with_suffix(".npy")
    np.save(path, vectors)
    return path


def columns(path: Path, vectors: Any) -> Path:
    path = path.with_suffix(".parquet")
    table = pa.table({f"c{number}": column for number, column in enumerate(vectors.T)})
    parquet.write_table(table, path, row_group_size=7)
    return path


def lists(path: Path, vectors: Any) -> Path:
    path = path.with_suffix(".parquet")
    parquet.write_table(pa.table({"vector": [row.tolist() for row in vectors]}), path, row_group_size=7)
    return path


def fixed_lists(path: Path, vectors: Any) -> Path:
    path = path.with_suffix(".parquet")
    held = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    parquet.write_table(pa.table({"vector": held}), path, row_group_size=7)
    return path


def tensors(path: Path, vectors: Any) -> Path:
    path = path.with_suffix(".safetensors")
    save_file({"a": vectors[:10].reshape(2, 5, 4), "b": vectors[10:12].ravel(), "c": vectors[12:].copy()}, path)
    return path


WAYS = (npy, columns, lists, fixed_lists, tensors)


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(points=st.integers(1, 25))
def test_every_window_is_what_was_written(tmp_path: Path, way: Callable[[Path, Any], Path], points: int) -> None:
    path = way(tmp_path / "mine", VECTORS)
    found = open_input(str(path), points, 4)
    assert found.vectors == 25
    assert found.jobs == 25 // points
    for job in range(found.jobs):
        window = found.read(job)
        assert window.dtype == np.float32
        assert np.array_equal(window, VECTORS[job * points : (job + 1) * points])
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(IndexError):
        found.read(found.jobs)


@pytest.mark.parametrize("kind", ["<f2", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_floats_and_orders_are_the_same_vectors(tmp_path: Path, kind: str, order: Any) -> None:
    vectors = np.array(VECTORS, dtype=kind, order=order)
    assert np.array_equal(open_input(str(npy(tmp_path / "x", vectors)), 25, 4).read(0), vectors.astype(np.float32))


def test_values_in_a_row_are_cut_into_vectors_and_the_rest_is_left_out(tmp_path: Path) -> None:
    found = open_input(str(npy(tmp_path / "x", np.arange(10, dtype=np.float32))), 2, 4)
    assert (found.vectors, found.jobs) == (2, 1)
    assert found.read(0).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_window_can_be_changed_and_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path = npy(tmp_path / "x", VECTORS)
    found = open_input(str(path), 25, 4)
    found.read(0)[:] = 0
    assert np.array_equal(found.read(0), VECTORS)


class TestRefused:
    def refused(self, path: Path, match: str, *, points: int = 2, dimensions: int = 4) -> None:
        with pytest.raises(BadInput, match=match):
            open_input(str(path), points, dimensions)

    def test_a_path_that_is_not_whole(self) -> None:
        self.refused(Path("mine.npy"), "must be an absolute path")

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(DataMissing, match="cannot be read on the node of the driver: No such file"):
            open_input(str(tmp_path / "none.npy"), 2, 4)

    def test_a_pipe_which_nobody_writes_to(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.npy")
        self.refused(tmp_path / "pipe.npy", "no regular file")

    @pytest.mark.parametrize("name", ["x.pkl", "x.npz", "x", "x.npy.gz"])
    def test_an_ending_that_nobody_reads(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(b"x")
        self.refused(tmp_path / name, r"must be a file that ends in .npy, .parquet, .safetensors")

    @pytest.mark.parametrize("suffix", [".npy", ".parquet", ".safetensors"])
    @pytest.mark.parametrize("content", [b"", b"PAR1", b"\x93NUMPY", b"\xff" * 200, b"\x00" * 200])
    def test_what_is_no_such_file(self, tmp_path: Path, suffix: str, content: bytes) -> None:
        path = (tmp_path / "x").with_suffix(suffix)
        path.write_bytes(content)
        self.refused(path, rf"is no (Parquet|\{suffix}|safetensors) file")

    @pytest.mark.parametrize("way", WAYS)
    @settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_a_file_with_other_bytes_is_refused_or_read_and_nothing_else_happens(
        self, tmp_path: Path, way: Callable[[Path, Any], Path], data: st.DataObject
    ) -> None:
        path = way(tmp_path / "x", VECTORS)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        with suppress(BadInput):
            open_input(str(path), 2, 4).read(0)

    @pytest.mark.parametrize("header", [b"{'descr': (", b"{'descr': '<f4'\n  (((", b"{\0}"])
    def test_a_header_that_is_no_python_either(self, tmp_path: Path, header: bytes) -> None:
        path = tmp_path / "x.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 128) + header.ljust(127) + b"\n" + bytes(64))
        self.refused(path, "is no .npy file")

    def test_an_array_of_objects_is_not_unpickled(self, tmp_path: Path) -> None:
        class Bomb:
            def __reduce__(self) -> Any:
                return (Path(tmp_path / "ran").touch, ())

        np.save(tmp_path / "x.npy", np.array([[Bomb()] * 4] * 4), allow_pickle=True)
        self.refused(tmp_path / "x.npy", "values of type object")
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("kind", [np.int32, np.complex64, np.bool_, "S4", [("a", "f4")]])
    def test_values_that_are_no_floats(self, tmp_path: Path, kind: Any) -> None:
        self.refused(npy(tmp_path / "x", np.zeros((4, 4), dtype=kind)), "values of type")

    @pytest.mark.parametrize("shape", [(2**40, 4), (2**62, 4), (5, 4)])
    def test_a_header_that_promises_more_than_there_is(self, tmp_path: Path, shape: tuple[int, int]) -> None:
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        path = tmp_path / "x.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(64))
        self.refused(path, "is cut short: its header promises")

    @pytest.mark.parametrize("shape", [(-4, -4), (4, 4, 4), ()])
    def test_a_shape_that_has_no_vectors(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        path = tmp_path / "x.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(1024))
        self.refused(path, "has shape")

    def test_vectors_of_another_width(self, tmp_path: Path) -> None:
        self.refused(npy(tmp_path / "x", VECTORS), "vectors of 4 values, not 5. Say dimensions=4", dimensions=5)
        self.refused(columns(tmp_path / "x", VECTORS), "vectors of 4 values, not 5", dimensions=5)
        with pytest.raises(BadInput, match="lists that are not of 3 values"):
            open_input(str(lists(tmp_path / "x", VECTORS)), 5, 3).read(0)

    def test_fewer_vectors_than_one_job_takes(self, tmp_path: Path) -> None:
        self.refused(npy(tmp_path / "x", VECTORS), "it has 25 vectors, and one job takes 26", points=26)
        self.refused(npy(tmp_path / "y", np.empty((0, 4), np.float32)), "it has 0 vectors")

    def test_a_job_that_is_larger_than_may_be_read(self, tmp_path: Path) -> None:
        self.refused(npy(tmp_path / "x", VECTORS), "more than 1 GiB each", points=2**28)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
    def test_a_value_that_is_not_finite(self, tmp_path: Path, value: float) -> None:
        vectors = VECTORS.astype(np.float64)
        vectors[3, 1] = value
        found = open_input(str(npy(tmp_path / "x", vectors)), 3, 4)
        assert len(found.read(0)) == 3
        with pytest.raises(
            BadInput,
            match=r"vector 3 \(the first is 0\) has a value that is no finite float32, as have 0 more of the 3",
        ):
            found.read(1)

    @pytest.mark.parametrize(
        ("table", "match"),
        [
            ({"a": ["x", "y"], "b": [1.0, 2.0]}, "columns of type string, double"),
            ({"a": [[1, 2], [3, 4]]}, "columns of type list"),
        ],
    )
    def test_columns_that_are_no_floats(self, tmp_path: Path, table: Any, match: str) -> None:
        parquet.write_table(pa.table(table), tmp_path / "x.parquet")
        self.refused(tmp_path / "x.parquet", match, dimensions=2)

    @pytest.mark.parametrize(
        ("table", "match"),
        [
            ({"a": [1.0, None], "b": [1.0, 2.0]}, "rows without a value"),
            ({"a": [[1.0, 2.0], None]}, "rows without a value"),
            ({"a": [[1.0, 2.0], [None, 1.0]]}, "lists without a value"),
            ({"a": [[1.0, 2.0], [1.0]]}, "not of 2 values"),
            ({"a": [[1.0, 2.0, 3.0], [1.0]]}, "not of 2 values"),
        ],
    )
    def test_rows_that_are_not_whole(self, tmp_path: Path, table: Any, match: str) -> None:
        parquet.write_table(pa.table(table), tmp_path / "x.parquet")
        with pytest.raises(BadInput, match=match):
            open_input(str(tmp_path / "x.parquet"), 2, 2).read(0)

    def test_tensors_of_which_none_is_of_floats(self, tmp_path: Path) -> None:
        save_file({"a": np.zeros((4, 4), np.int32), "s": np.array(1, np.float32)}, tmp_path / "x.safetensors")
        self.refused(tmp_path / "x.safetensors", "no tensor of 4 floats. Its type must be one of F16, F32, F64")
