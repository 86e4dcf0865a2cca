"""Stores what clients upload to the head: data sets, the gauges of a session, and the items that earlier attempts at a run have done.

A data set is stored only if its bytes have the SHA-256 in its name.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from bench.data import seeded
from bench.model import from_json, to_json
from bench.prometheus import session_gauges
from bench.prometheus.session_gauges import Gauge
from bench.record.store import DONE, FILES, write_whole

FOLDER = "data"  # in the records folder, beside the sessions
CHUNK_BYTES = 2**20
MOST_DONE_BYTES = 512 * 2**20
SESSION_GAUGES = "gauges.json"  # in the folder of a session


class Refused(Exception):
    """An upload was refused, with an HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Body:
    """An upload in chunks, with the length in bytes that was announced."""

    chunks: AsyncIterator[bytes]
    length: int


async def take(records: Path, name: str, body: Body) -> None:
    """Store `body` as the data set's file `name`, in place of an earlier file of that set. Raises Refused."""
    match = seeded.FILE_NAME.fullmatch(name)
    if match is None or match[1] not in seeded.NAMES:
        raise Refused(404, "a set is called <name>.<SHA-256>.npz")
    if not 0 < body.length <= seeded.MOST_BYTES:
        raise Refused(413, f"a set has at most {seeded.MOST_BYTES} bytes")
    folder = records / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".coming-") as file:
        digest = sha256()
        async for chunk in body.chunks:
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        if digest.hexdigest() != match[2]:
            raise Refused(400, "the bytes received have another SHA-256 than the name says")
        for other in folder.glob(f"{match[1]}.*.npz"):
            other.unlink()
        (folder / name).hardlink_to(file.name)


async def take_gauges(records: Path, session: str, body: Body) -> None:
    """Store the gauges of a session in place of earlier ones: the metrics page shows them. Raises Refused."""
    if not 0 < body.length <= session_gauges.MOST_BYTES:
        raise Refused(413, f"the gauges of a session have at most {session_gauges.MOST_BYTES} bytes")
    content = b"".join([chunk async for chunk in body.chunks])
    try:
        gauges = from_json(content, tuple[Gauge, ...])
    except (msgspec.DecodeError, ValueError) as error:
        raise Refused(400, f"these are no gauges: {error}") from error
    if wrong := session_gauges.check(gauges, session):
        raise Refused(400, wrong)
    (records / session).mkdir(parents=True, exist_ok=True)
    write_whole(records / session / SESSION_GAUGES, to_json(gauges))


async def take_done(run: Path, body: Body) -> None:
    """Store the items that an earlier attempt has done, in that attempt's folder. Raises Refused if the attempt ran here."""
    if not 0 < body.length <= MOST_DONE_BYTES:
        raise Refused(413, f"a {DONE} has at most {MOST_DONE_BYTES} bytes")
    if (run / "spec.json").exists():
        raise Refused(409, "that run has its record here")
    folder = run / FILES
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{DONE}.coming"
    with draft.open("wb") as file:
        async for chunk in body.chunks:
            file.write(chunk)
    if draft.stat().st_size != body.length:
        draft.unlink()
        raise Refused(400, "the upload ended early")
    draft.replace(folder / DONE)
