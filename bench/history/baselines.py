"""Names sessions as baselines, in a small file beside the sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock

from bench.errors import BadInput, RecordDamaged, did_you_mean
from bench.record import store
from bench.record.files import read_plain
from bench.sanitize import from_clean_json

FILE = "baselines.json"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")  # a session's id begins with a digit, a path has a slash


def known(out: Path) -> dict[str, str]:
    """Return the id of each baseline's session, by the baseline's name. Raises BadInput or RecordDamaged."""
    store.check_there(out)
    path = out / FILE
    try:
        return from_clean_json(read_plain(path), dict[str, str]) if path.exists() else {}
    except (OSError, msgspec.DecodeError, ValueError) as error:
        raise RecordDamaged(
            f"{path} cannot be read: {error}.", "Repair it, or delete it and set the names anew."
        ) from None


def put(out: Path, name: str, session: str) -> str:
    """Set the baseline `name` to a session, in place of its earlier one, and return the session's id. Raises BadInput."""
    if not _NAME.fullmatch(name) or name == "latest":
        raise BadInput(f"{name} cannot name a baseline.", "A name is a letter, then letters, digits, dots and dashes.")
    folder = store.find(out, session)
    if folder.resolve().parent != out.resolve():
        raise BadInput(f"{folder} is not in {out}.", "A baseline is one of the sessions beside its file; see --out.")
    with _locked(out):
        names = known(out) | {name: folder.name}
        _write(out, names)
    return folder.name


def remove(out: Path, name: str) -> None:
    """Remove a baseline's name; the session stays. Raises BadInput."""
    with _locked(out):
        names = known(out)
        if name not in names:
            raise BadInput(f"There is no baseline {name}.", did_you_mean(name, names) + _there_are(names))
        _write(out, {known_name: session for known_name, session in names.items() if known_name != name})


def find(out: Path, name: str) -> Path:
    """Return the folder of the baseline `name`, or else of the session that `store.find` finds by it. Raises BadInput."""
    # Names that no baseline can have must be found even if the baselines' file is damaged.
    names = known(out) if _NAME.fullmatch(name) and name != "latest" else {}
    if name not in names:
        return store.find(out, name)
    folder = out / names[name]
    if not (folder / "session.json").is_file():
        raise BadInput(f"The baseline {name} is session {names[name]}, which is not in {out} any more.", _hint(name))
    return folder


def _hint(name: str) -> str:
    return f"Set it anew: `bench baseline set {name} SESSION`."


def _there_are(names: dict[str, str]) -> str:
    return f"Choose from: {', '.join(sorted(names))}." if names else "There are none."


def _write(out: Path, names: dict[str, str]) -> None:
    store.write_whole(
        out / FILE, msgspec.json.format(msgspec.json.encode(dict(sorted(names.items()))), indent=2) + b"\n"
    )


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Lock the baselines' file, so that no name is lost if two processes set names at once."""
    store.check_writable(out)
    with FileLock(out / f".{FILE}.lock", timeout=10):
        yield
