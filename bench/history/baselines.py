"""Names for sessions that others are compared with, in a small file beside the sessions."""

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
    """By name, the id of the session. Raises BadInput or RecordDamaged."""
    store.check_there(out)
    path = out / FILE
    try:
        return from_clean_json(read_plain(path), dict[str, str]) if path.exists() else {}
    except (OSError, msgspec.DecodeError, ValueError) as error:
        raise RecordDamaged(
            f"{path} cannot be read: {error}.", "Repair it, or delete it and set the names anew."
        ) from None


def put(out: Path, name: str, session: str) -> str:
    """Call a session `name`, in place of the one that was called so; its id. Raises BadInput."""
    if not _NAME.fullmatch(name) or name == "latest":
        raise BadInput(f"{name} cannot name a baseline.", "A name is a letter, then letters, digits, dots and dashes.")
    folder = store.find(out, session)
    if folder.resolve().parent != out.resolve():
        raise BadInput(f"{folder} is not in {out}.", "A baseline is one of the sessions beside its file; see --out.")
    with _alone(out):
        names = known(out) | {name: folder.name}
        _write(out, names)
    return folder.name


def remove(out: Path, name: str) -> None:
    """Forget a name; the session stays. Raises BadInput."""
    with _alone(out):
        names = known(out)
        if name not in names:
            raise BadInput(f"There is no baseline {name}.", did_you_mean(name, names) + _there_are(names))
        _write(out, {each: session for each, session in names.items() if each != name})


def find(out: Path, name: str) -> Path:
    """The folder of the session that `name` means: a baseline, or else as `store.find` has it. Raises BadInput."""
    # What can be no baseline's name is found also where the file of names is damaged.
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
def _alone(out: Path) -> Iterator[None]:
    """Two that set a name at once both set it."""
    store.check_writable(out)
    with FileLock(out / f".{FILE}.lock", timeout=10):
        yield
