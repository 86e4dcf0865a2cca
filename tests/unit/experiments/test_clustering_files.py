"""Every format gives the vectors back to the last bit; buffers are what lies between; a real run on a node of two CPUs."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bench.context import Measured
from bench.errors import DoesNotFit
from bench.experiments import clustering_files as experiment
from bench.experiments.clustering import files, formats
from bench.experiments.clustering.files import Read, Written
from bench.experiments.clustering_files import ARMS, Params
from bench.model import Interval, Topology

EVERY = get_args(formats.Format)
COMPRESSED = ("zlib", "lz4", "zstd")
VECTORS = np.random.default_rng(4).standard_normal((4096, 16)).astype(np.float32)  # 256 KiB
VECTORS.flags.writeable = False


class Raw(io.RawIOBase):
    """A file that keeps the sizes of the pieces that it was written in, and read in."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = io.BytesIO(content)
        self.written: list[int] = []
        self.asked: list[int] = []

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.written.append(memoryview(data).nbytes)
        return self.content.write(data)

    def readinto(self, buffer: Any, /) -> int:
        self.asked.append(memoryview(buffer).nbytes)
        return self.content.readinto(buffer)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self.content.seek(offset, whence)

    def tell(self) -> int:
        return self.content.tell()

    def again(self) -> Raw:
        return Raw(self.content.getvalue())


def written(format: formats.Format, vectors: Any, buffer_bytes: int = 2**16) -> Raw:
    raw = Raw()
    formats.write(format, raw, vectors, buffer_bytes)
    return raw


class TestFormats:
    @pytest.mark.parametrize("format", EVERY)
    @settings(deadline=None, max_examples=40)
    @given(
        vectors=arrays.arrays(
            np.float32,
            arrays.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40),
            elements=st.floats(width=32, allow_nan=False),
        ),
        buffer_bytes=st.sampled_from([64, 8192, 2**20]),
    )
    def test_vectors_come_back_to_the_last_bit(self, format: formats.Format, vectors: Any, buffer_bytes: int) -> None:
        raw = written(format, vectors, buffer_bytes)
        found = formats.read(format, raw.again(), vectors.shape, buffer_bytes)
        assert np.array_equal(found.view(np.uint32), vectors.view(np.uint32))

    @pytest.mark.parametrize("format", EVERY)
    @pytest.mark.parametrize("buffer_bytes", [8192, 2**20])
    def test_many_pieces_come_back_too(self, format: formats.Format, buffer_bytes: int) -> None:
        raw = written(format, VECTORS, buffer_bytes)
        assert np.array_equal(formats.read(format, raw.again(), VECTORS.shape, buffer_bytes), VECTORS)

    @pytest.mark.parametrize("format", EVERY)
    @pytest.mark.parametrize("rows", [-1, 1])
    def test_a_file_with_more_or_fewer_vectors_is_refused(self, format: formats.Format, rows: int) -> None:
        shape = (len(VECTORS) + rows, VECTORS.shape[1])
        with pytest.raises(ValueError, match=r"written|assignment"):
            formats.read(format, written(format, VECTORS).again(), shape, 8192)

    def test_a_size_is_that_of_its_format(self) -> None:
        sizes = {format: len(written(format, VECTORS).content.getvalue()) / VECTORS.nbytes for format in EVERY}
        assert sizes["binary"] == 1
        assert 1 < sizes["arrow"] < 1.01
        assert 0.9 < sizes["zstd"] < 0.95  # of drawn weights little is to be gained
        assert 3 < sizes["text"] < 3.5
        assert 4.5 < sizes["text-double"] < 5.5  # the study: 10 TB became 2.1

    def test_text_is_digits_with_a_line_for_each_vector(self) -> None:
        vectors = np.array([[0.1, -2.5], [1e-38, 3.0]], dtype=np.float32)
        assert written("text", vectors).content.getvalue() == b"0.100000001 -2.5\n9.99999935e-39 3\n"
        assert written("text-double", vectors).content.getvalue().startswith(b"0.10000000149011612 -2.5\n")


class TestBuffers:
    @pytest.mark.parametrize("buffer_bytes", [8192, 2**16, 2**18])
    def test_a_file_is_written_and_read_by_one_call_a_buffer(self, buffer_bytes: int) -> None:
        raw = written("binary", VECTORS, buffer_bytes)
        assert raw.written == [buffer_bytes] * (VECTORS.nbytes // buffer_bytes)
        again = raw.again()
        formats.read("binary", again, VECTORS.shape, buffer_bytes)
        assert len(again.asked) == VECTORS.nbytes // buffer_bytes + 1  # and one that finds the end
        assert set(again.asked) == {buffer_bytes}

    @pytest.mark.parametrize("format", EVERY)
    def test_a_larger_buffer_makes_no_more_calls(self, format: formats.Format) -> None:
        small, large = written(format, VECTORS, 8192), written(format, VECTORS, 2**26)
        assert len(small.written) >= len(large.written)
        assert small.content.getvalue() == large.content.getvalue() or format in COMPRESSED
        few, many = large.again(), small.again()
        formats.read(format, few, VECTORS.shape, 2**26)
        formats.read(format, many, VECTORS.shape, 8192)
        assert len(few.asked) <= len(many.asked)

    @pytest.mark.parametrize("format", ["text", "text-double", "binary", "zlib", "lz4"])
    def test_8_kib_make_many_times_the_calls_of_64_mib(self, format: formats.Format) -> None:
        assert len(written(format, VECTORS, 8192).written) >= 2 * len(written(format, VECTORS, 2**26).written)


class TestWorker:
    @pytest.fixture
    def worker(self, tmp_path: Path) -> Any:
        worker = files.Worker(number=3, shape=(2048, 16), seed=1, folder=str(tmp_path))
        yield worker
        worker.close()

    def test_it_counts_calls_and_bytes_and_what_it_reads_is_right(self, worker: Any) -> None:
        made = worker.write("binary", 8192)
        assert (made.disk_bytes, made.calls) == (2048 * 64, 16)
        read = worker.read("binary", 2**16, is_cold=False)
        assert (read.is_right, read.calls) == (True, 3)

    def test_its_file_has_no_name(self, worker: Any, tmp_path: Path) -> None:
        worker.write("binary", 8192)
        assert list(tmp_path.iterdir()) == []

    def test_other_vectors_than_were_written_are_seen(self, worker: Any) -> None:
        worker.write("binary", 8192)
        os.pwrite(worker._file.fileno(), b"\x00\x00\x00\x00", 400)
        assert not worker.read("binary", 8192, is_cold=False).is_right

    @pytest.mark.parametrize("format", EVERY)
    def test_every_format_can_be_read_twice_and_cold(self, worker: Any, format: formats.Format) -> None:
        worker.write(format, 2**20)
        assert worker.read(format, 8192, is_cold=False).is_right
        assert worker.read(format, 2**20, is_cold=True).is_right

    def test_what_came_from_a_disk_is_read_from_the_systems_own_count(self, tmp_path: Path) -> None:
        (tmp_path / "io").write_text("rchar: 5\nread_bytes: 4096\nwrite_bytes: 0\n")
        assert files.bytes_from_disk(tmp_path / "io") == 4096
        assert files.bytes_from_disk(tmp_path / "none") is None
        (tmp_path / "io").write_text("rchar: 5\n")
        assert files.bytes_from_disk(tmp_path / "io") is None


@dataclass
class Told:
    reasons: list[str] = field(default_factory=list)

    def invalid(self, reason: str) -> None:
        self.reasons.append(reason)


PARAMS = Params(kib=64)  # 65,536 bytes a worker
WRITTEN = Written(seconds=0.5, cpu_seconds=0.1, calls=8, disk_bytes=32_768)
READ = Read(seconds=0.25, cpu_seconds=0.2, calls=4, from_disk_bytes=32_768, is_right=True)


def told(read: Read, params: Params = PARAMS, point: str = "1 MiB") -> tuple[dict[tuple[str, str], Any], list[str]]:
    one = [(WRITTEN, replace(read, seconds=read.seconds / 2)), (WRITTEN, read)]
    context = Told()
    timed = Measured(results=[one, one], interval=Interval(0, 9), arm="zlib", turn=1, warmup=False, point=point)
    found = experiment.samples(timed, params, context)  # type: ignore[arg-type]
    return {(each.metric, each.point): each.value or each.reason for each in found}, context.reasons


class TestFigures:
    def test_rates_are_by_the_slowest_worker_and_costs_by_the_vectors(self) -> None:
        found, reasons = told(READ, point="8 KiB")
        assert reasons == []
        assert {metric: value for (metric, _), value in found.items()} == pytest.approx(
            {
                "read_bytes_per_second": 2 * 65_536 / 0.25,
                "write_bytes_per_second": 2 * 65_536 / 0.5,
                "disk_bytes_per_byte": 0.5,
                "read_cpu_seconds_per_gigabyte": 0.2 / 65_536 * 1e9,
                "write_cpu_seconds_per_gigabyte": 0.1 / 65_536 * 1e9,
                "read_calls_per_megabyte": 4 / 65_536 * 1e6,
                "write_calls_per_megabyte": 8 / 65_536 * 1e6,
            }
        )
        assert {point for _, point in found} == {"8 KiB"}

    def test_a_buffer_of_1_mib_is_the_headline(self) -> None:
        found, _ = told(READ)
        assert found["read_bytes_per_second", ""] == found["read_bytes_per_second", "1 MiB"]

    def test_other_vectors_make_the_run_invalid(self) -> None:
        found, reasons = told(replace(READ, is_right=False))
        assert reasons == ["zlib: 4 of 4 files gave other vectors than were written"]
        assert set(found.values()) == set(reasons)

    def test_a_read_that_was_to_be_cold_and_was_not_has_no_rate_but_a_reason(self) -> None:
        cold = replace(PARAMS, cache="cold")
        assert told(READ, cold)[0]["read_bytes_per_second", ""] == 2 * 65_536 / 0.25
        warm, _ = told(replace(READ, from_disk_bytes=0), cold)
        assert warm["read_bytes_per_second", ""].startswith("the page cache kept the files: 0 of 131072 bytes")
        assert warm["write_bytes_per_second", ""] == 2 * 65_536 / 0.5
        unknown, _ = told(replace(READ, from_disk_bytes=None), cold)
        assert unknown["read_bytes_per_second", ""].startswith("this system does not say")


def test_there_is_an_arm_for_every_format() -> None:
    assert {arm.name for arm in ARMS} == set(EVERY)


@given(kib=st.integers(64, 2**20), dimensions=st.integers(1, 4096))
def test_a_workers_vectors_are_as_large_as_asked_but_for_the_last(kib: int, dimensions: int) -> None:
    rows, columns = Params(kib=kib, dimensions=dimensions).shape
    assert 0 <= kib * 1024 - 4 * rows * columns < 4 * dimensions
    assert rows >= 4


def test_files_that_need_more_than_half_of_the_memory_are_refused() -> None:
    topology = Topology(
        name="single",
        nodes=1,
        cpus_per_node=2,
        memory_bytes_per_node=2**30,
        object_store_bytes_per_node=2**27,
        threads_per_node=2,
    )
    experiment.check_fits(Params(kib=32 * 1024), topology)
    with pytest.raises(DoesNotFit, match="Files of 65536 KiB need 640 MiB on each node of single"):
        experiment.check_fits(Params(kib=64 * 1024), topology)
