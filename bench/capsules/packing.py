"""A capsule: one session in one file, whose name holds the checksum of its bytes, for others to check and to do again.

    manifest.json      the checksum and size of every other file; where the session was packed, by which code
    session.json, runs/...         the record, as it is: plan, facts of each node, raw samples, usage, how each run ended, and
                                   what Prometheus had of it
    report.json, report.html       what it meant to the raymeter that packed it
    uv.lock, versions.env          every version that was pinned

The same session packed by the same code is the same file, byte by byte.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench import identity
from bench.errors import BadInput, CannotWrite, RecordDamaged
from bench.model import Run, Session, to_json
from bench.prometheus import extract
from bench.record import store
from bench.record.files import open_plain, read_plain

VERSION = 1
SUFFIX = ".capsule.zip"
MANIFEST = "manifest.json"
REPORT = "report.json"
PAGE = "report.html"
RECORD = ("session.json", "runs/")  # what begins so is the session's own
LOCKS = ("uv.lock", "images/versions.env")
ADDRESS_DIGITS = 32
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file: when it was packed must not change the bytes


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file of a capsule."""

    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is in a capsule, and what packed it."""

    session: str
    raymeter: str
    code_hash: str
    look: str  # checksum of what the page is made with
    git_revision: str | None  # of the checkout that packed it; None: it was no checkout
    git_dirty: bool | None
    code_of_nodes: tuple[str, ...] = ()  # hashes of the code that measured
    images: tuple[str, ...] = ()  # digests of the images that the nodes ran
    data: Mapping[str, str] = field(default_factory=dict)  # checksums of data sets
    files: Mapping[str, Entry] = field(default_factory=dict)
    version: int = VERSION


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A capsule that was made."""

    path: Path
    damaged: tuple[str, ...]  # runs whose record cannot be read, and why: they are packed as they are
    extract: str  # describes its extract of Prometheus


def pack(folder: Path, into: Path) -> Packed:
    """Write the capsule of the session in `folder` into the folder `into`.

    Raises BadInput where runs are still open, RecordDamaged where the record is not whole, CannotWrite.
    """
    from bench import analysis, reports
    from bench.history.timelines import with_timelines

    session = store.load_session(folder)
    runs = store.load_runs(folder, session)
    if not runs:
        raise BadInput(f"{session.id} has no run.", f"Run it with `bench resume {session.id}`.")
    try:
        extract.check_all(folder, runs)
    except RecordDamaged as error:
        raise RecordDamaged(error.what, "Delete that run's folder, then `bench resume` the session.") from error
    report = analysis.build(session, runs)
    drawn = with_timelines(folder, report, runs)
    made = {name: reports.render(format, report, drawn).encode() for name, format in ((REPORT, "json"), (PAGE, "html"))}
    root = identity.SOURCE.parent
    made |= {Path(name).name: (root / name).read_bytes() for name in LOCKS if (root / name).is_file()}
    record = dict(_record(folder))
    entries = {name: _entry_of_file(path) for name, path in record.items()}
    entries |= {name: _entry(content) for name, content in made.items()}
    manifest = msgspec.json.format(to_json(_manifest(session, runs, entries)), indent=1)
    try:
        path = _written(into, session.id, {MANIFEST: manifest, **made}, record)
    except OSError as error:
        raise CannotWrite(f"{into} cannot be written to: {error.strerror}.", "Name another folder with -o.") from error
    return Packed(path=path, damaged=damaged(runs), extract=extract.describe(runs))


def damaged(runs: Sequence[Run]) -> tuple[str, ...]:
    """The runs whose record cannot be read, each with the reason."""
    return tuple(f"{run.spec.folder}: {'; '.join(run.reasons)}" for run in runs if run.status == "damaged")


def _record(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a session's record. A link is none: what it leads to is not the session's.

    Raises RecordDamaged where something is neither a file nor a folder: a capsule cannot have it.
    """
    yield "session.json", folder / "session.json"
    for path in sorted((folder / "runs").rglob("*")):
        if any(part.startswith(".") for part in path.parts[-2:]) or path.is_symlink() or path.is_dir():
            continue
        if not path.is_file():
            raise RecordDamaged(
                f"{path} is not a regular file, and a capsule has no other.", "Remove it, then export again."
            )
        yield path.relative_to(folder).as_posix(), path


def _entry(content: bytes) -> Entry:
    return Entry(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))


def _entry_of_file(path: Path) -> Entry:
    with open_plain(path) as file:
        return Entry(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)


def _manifest(session: Session, runs: list[Run], entries: Mapping[str, Entry]) -> Manifest:
    from bench.reports import as_html

    facts = [run.facts for run in runs if run.facts]
    nodes = [node for each in facts for node in each.nodes]
    revision, is_dirty = identity.revision()
    return Manifest(
        session=session.id,
        raymeter=identity.version(),
        code_hash=identity.code_hash(),
        look=as_html.look(),
        git_revision=revision,
        git_dirty=is_dirty,
        code_of_nodes=tuple(sorted({node.code_hash for node in nodes})),
        images=tuple(sorted({node.image_digest for node in nodes if node.image_digest})),
        data={name: digest for each in facts for name, digest in sorted(each.data.items())},
        files=dict(sorted(entries.items())),
    )


def _written(into: Path, session: str, made: Mapping[str, bytes], record: Mapping[str, Path]) -> Path:
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".capsule-") as place:
        beside = Path(place) / "capsule"
        with zipfile.ZipFile(beside, "w") as archive:
            for name in (MANIFEST, *sorted({*made, *record} - {MANIFEST})):
                content = made[name] if name in made else read_plain(record[name])
                archive.writestr(_described(name), content, compresslevel=6)
        path = into / f"{session}-{address(beside)}{SUFFIX}"
        beside.replace(path)
    return path


def _described(name: str) -> zipfile.ZipInfo:
    described = zipfile.ZipInfo(name, _EPOCH)
    described.compress_type = zipfile.ZIP_DEFLATED
    described.create_system = 3
    described.external_attr = 0o100644 << 16
    return described


def address(path: Path) -> str:
    """What the name of a capsule must hold: the SHA-256 of its bytes, ADDRESS_DIGITS of it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:ADDRESS_DIGITS]
