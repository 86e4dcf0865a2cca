"""Takes what is sent to the head: data sets, and what earlier attempts at a run had done.

A set is kept when its bytes are those that its name promises.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from bench.data import seeded
from bench.record.store import DONE, FILES

FOLDER = "data"  # in that of the records, beside the sessions
CHUNK_BYTES = 2**20
MOST_DONE_BYTES = 512 * 2**20


class Refused(Exception):
    """Why it was not taken: an HTTP status and a line."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Body:
    """What is sent, in pieces, and how many bytes it was announced to have."""

    chunks: AsyncIterator[bytes]
    length: int


async def take(records: Path, name: str, body: Body) -> None:
    """Keep `body` as the set's file `name`, in place of another set so called. Raises Refused."""
    match = seeded.FILE_NAME.fullmatch(name)
    if match is None or match[1] not in seeded.NAMES:
        raise Refused(404, "a set is called <name>.<SHA-256>.npz")
    if not 0 < body.length <= seeded.MOST_BYTES:
        raise Refused(413, f"a set has at most {seeded.MOST_BYTES} bytes")
    folder = records / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".coming-") as file:
        found = sha256()
        async for chunk in body.chunks:
            found.update(chunk)
            file.write(chunk)
        file.flush()
        if found.hexdigest() != match[2]:
            raise Refused(400, "what came has another SHA-256 than its name says")
        for other in folder.glob(f"{match[1]}.*.npz"):
            other.unlink()
        (folder / name).hardlink_to(file.name)


async def take_done(run: Path, body: Body) -> None:
    """Keep what an earlier attempt had done, in the folder where that attempt had it. Raises Refused where it ran here."""
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
        raise Refused(400, "it ended early")
    draft.replace(folder / DONE)
