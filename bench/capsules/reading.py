"""Opens a capsule from a stranger: nothing is run, nothing is written outside a folder of our own, no size is believed."""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

import msgspec

from bench.capsules.packing import (
    ADDRESS_DIGITS,
    LOCKS,
    MANIFEST,
    PAGE,
    RECORD,
    REPORT,
    SUFFIX,
    VERSION,
    Manifest,
    address,
)
from bench.errors import RecordDamaged
from bench.record.files import open_plain
from bench.sanitize import from_clean_json

MOST_FILES = 100_000
MOST_BYTES = 4 * 2**30  # of all files together, unpacked
MOST_OF_MANIFEST = 64 * 2**20
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=+@ -]{0,199}")  # of a path
_NAMED = re.compile(rf"-([0-9a-f]{{{ADDRESS_DIGITS}}}){re.escape(SUFFIX)}$")
_BLOCK = 2**20
_OTHERS = {MANIFEST, REPORT, PAGE, *(Path(name).name for name in LOCKS)}


def unpack(path: Path, into: Path) -> Manifest:
    """Put the files of a capsule into the empty folder `into`, each checked against the manifest; the manifest.

    Raises RecordDamaged, naming the first file that is not what the manifest says, and what is wrong with the archive.
    """
    try:
        with open_plain(path) as file, zipfile.ZipFile(file) as archive:
            infos = _checked(path, archive)
            manifest = _manifest(path, archive, infos)
            _agree(path, manifest, infos)
            for name in sorted(manifest.files):
                _unpack(archive, infos[name], manifest, into)
    except OSError as error:
        raise RecordDamaged(f"{path} is no whole capsule: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        raise RecordDamaged(f"{path} is no whole capsule: {error}.") from error
    named = _NAMED.search(path.name)
    if named and named[1] != address(path):
        raise RecordDamaged(
            f"{path} is not the file that its name says, though every file in it is what the manifest says.",
            "Ask for it again.",
        )
    return manifest


def _checked(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The archive's table of contents, if nothing in it is meant to do harm."""
    infos = archive.infolist()
    if len(infos) > MOST_FILES:
        raise RecordDamaged(f"{path} has {len(infos):,} files, and {MOST_FILES:,} are the most.")
    size = sum(info.file_size for info in infos)
    if size > MOST_BYTES:
        raise RecordDamaged(
            f"{path} unpacks to {size / 2**30:,.1f} GiB, and {MOST_BYTES / 2**30:.0f} GiB are the most."
        )
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = info.filename
        if name in found:
            raise RecordDamaged(f"{path} has two files {name!r}.")
        _check_name(path, name)
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise RecordDamaged(f"{path}: {name} is not a regular file.", "A capsule has no links, folders or devices.")
        if info.flag_bits & 0x1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise RecordDamaged(f"{path}: {name} is packed in a way that raymeter never packs.")
        found[name] = info
    return found


def _check_name(path: Path, name: str) -> None:
    parts = PurePosixPath(name).parts
    plain = "/".join(parts) == name and all(_PART.fullmatch(part) for part in parts)
    if not plain or not (name in _OTHERS or name.startswith(RECORD)):
        raise RecordDamaged(f"{path} has a file {name!r}, which is no name of a session's file.")


def _manifest(path: Path, archive: zipfile.ZipFile, infos: dict[str, zipfile.ZipInfo]) -> Manifest:
    info = infos.get(MANIFEST)
    if info is None or info.file_size > MOST_OF_MANIFEST:
        raise RecordDamaged(f"{path} has no {MANIFEST} of a likely size.", "It is no capsule.")
    try:
        with archive.open(info) as file:
            manifest = from_clean_json(file.read(MOST_OF_MANIFEST), Manifest)
    except (zlib.error, zipfile.BadZipFile, EOFError, msgspec.DecodeError, ValueError) as error:
        raise RecordDamaged(f"{path}: {MANIFEST} is damaged: {error}.") from error
    if manifest.version != VERSION:
        raise RecordDamaged(f"{path} is a capsule of version {manifest.version}, and this raymeter reads {VERSION}.")
    return manifest


def _agree(path: Path, manifest: Manifest, infos: dict[str, zipfile.ZipInfo]) -> None:
    there, listed = infos.keys() - {MANIFEST}, manifest.files.keys()
    for name in sorted(there ^ listed):
        raise RecordDamaged(f"{path}: {name} is {'not in the manifest' if name in there else 'missing'}.")
    for name in ("session.json", REPORT):
        if name not in listed:
            raise RecordDamaged(f"{path}: {name} is missing.")


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, manifest: Manifest, into: Path) -> None:
    """Write one file, never more of it than the manifest says."""
    entry, name = manifest.files[info.filename], info.filename
    target = into / name
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    try:
        with archive.open(info) as packed, target.open("xb") as file:
            while block := packed.read(min(_BLOCK, entry.bytes - size + 1)):
                size += len(block)
                if size > entry.bytes:
                    break
                digest.update(block)
                file.write(block)
    except (zlib.error, zipfile.BadZipFile, EOFError) as error:
        raise RecordDamaged(f"{name} differs: {error}.", "It is the first file that does.") from error
    if (size, digest.hexdigest()) != (entry.bytes, entry.sha256):
        raise RecordDamaged(f"{name} differs from its checksum in the manifest.", "It is the first file that does.")
