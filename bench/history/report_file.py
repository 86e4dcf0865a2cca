"""Stores the report of a session beside its records, and reuses it while records and analysis are unchanged."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from bench import identity
from bench.analysis import Report, build
from bench.history import summaries
from bench.history.summaries import Summary
from bench.model import to_json
from bench.record import store
from bench.record.files import read_plain, replace_whole
from bench.sanitize import from_clean_json

FILE = "report.json"
MOST_BYTES = 2**28


def keep(folder: Path, summary: Summary, report: Report) -> None:
    """Write the report beside the records, and into `summary` which state of the records it was made from. Ignores OSError."""
    content = to_json(report)
    with suppress(OSError):
        replace_whole(folder / FILE, content, is_lasting=False)
        digest = hashlib.sha256(content).hexdigest()
        summaries.keep(folder, replace(summary, report_sha256=digest, report_code=_code()))


def is_kept(summary: Summary) -> bool:
    """Whether the stored report was made from the present records by the present analysis."""
    return summary.report_code == _code()


def load(folder: Path, summary: Summary) -> Report:
    """Return the report of a session: the stored one if it is current, else a new one, which is stored. Raises RecordDamaged."""
    return _read_stored(folder, summary) or _build(folder, summary)


def _read_stored(folder: Path, summary: Summary) -> Report | None:
    if not is_kept(summary):
        return None
    with suppress(OSError, msgspec.DecodeError, ValueError, RecursionError):
        content = read_plain(folder / FILE, most_bytes=MOST_BYTES)
        if hashlib.sha256(content).hexdigest() == summary.report_sha256:
            return from_clean_json(content, Report)
    return None


def _build(folder: Path, summary: Summary) -> Report:
    session = store.load_session(folder)
    report = build(session, store.load_runs(folder, session))
    keep(folder, summary, report)
    return report


def _code() -> str:
    """Return the hash of the analysis: another one may compute other numbers."""
    return identity.code_hash(identity.SOURCE / "analysis")
