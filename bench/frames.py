"""Reads a session from disk and gives it as data frames of pandas, tables of Arrow, and Parquet files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

from bench import analysis
from bench.analysis import Report
from bench.analysis.frame_columns import FRAMES
from bench.analysis.frames import build
from bench.capsules.packing import SUFFIX
from bench.capsules.reading import unpack
from bench.errors import BadInput, CannotWrite
from bench.model import Run, Session
from bench.record import store


class Frames:
    """The data frames of one session. Each is made when it is read for the first time."""

    def __init__(self, session: Session, runs: Sequence[Run], report: Callable[[], Report]) -> None:
        """`report` is called once, for the pairs: they are those that the report compares."""
        self._session, self._runs, self._report = session, runs, report
        self._tables: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Frames of session {self._session.id}: {', '.join(FRAMES)}>"

    def arrow(self, name: str) -> Any:
        """Return a frame as pyarrow.Table; the metadata of each field has its unit. Raises BadInput for another name."""
        if name not in FRAMES:
            raise BadInput(f"There is no frame {name}.", f"Choose from: {', '.join(FRAMES)}.")
        if name not in self._tables:
            self._tables[name] = build(name, self._session, self._runs, self._report)
        return self._tables[name]

    def write_parquet(self, folder: Path) -> list[Path]:
        """Write a Parquet file for each frame into `folder`, which is made if it is missing. Raises CannotWrite."""
        from pyarrow import parquet

        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotWrite(f"{folder} cannot be made: {error.strerror}.", "Name another folder with -o.") from error
        paths = []
        for name in FRAMES:
            content = BytesIO()
            parquet.write_table(self.arrow(name), content)
            paths.append(folder / f"{name}.parquet")
            store.write_whole(paths[-1], content.getvalue())
        return paths

    @cached_property
    def runs(self) -> Any:
        """A row for each attempt at a run: status, topology, parameters, duration."""
        return self.arrow("runs").to_pandas()

    @cached_property
    def samples(self) -> Any:
        """A row for each value of a metric in a timed interval."""
        return self.arrow("samples").to_pandas()

    @cached_property
    def usage(self) -> Any:
        """A row for what a node used in a timed interval."""
        return self.arrow("usage").to_pandas()

    @cached_property
    def pairs(self) -> Any:
        """A row for the headline of a cell in a block, on both topologies."""
        return self.arrow("pairs").to_pandas()

    @cached_property
    def facts(self) -> Any:
        """A row for what was true of a node during a run."""
        return self.arrow("facts").to_pandas()


def load(name: str, out: Path) -> Frames:
    """Read the session `name` of the folder `out`, or of a capsule. Raises BadInput if there is none, RecordDamaged."""
    if not name.endswith(SUFFIX):
        return _read(store.find(out, name))
    with tempfile.TemporaryDirectory(prefix="raymeter-capsule-") as place:
        unpack(Path(name), Path(place))
        return _read(Path(place))


def _read(folder: Path) -> Frames:
    session = store.load_session(folder)
    runs = store.load_runs(folder, session)
    return Frames(session, runs, lambda: analysis.build(session, runs))
