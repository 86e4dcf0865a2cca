"""Keeps the report of a session beside its records, and reads it back while the records and the analysis are the same."""

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
    """Write the report that was made from the records after `summary` was read, where it can be written."""
    content = to_json(report)
    with suppress(OSError):
        replace_whole(folder / FILE, content, is_lasting=False)
        digest = hashlib.sha256(content).hexdigest()
        summaries.keep(folder, replace(summary, report_sha256=digest, report_code=_code()))


def is_kept(summary: Summary) -> bool:
    """Whether the session's report was made from its records as they are, by this analysis."""
    return summary.report_code == _code()


def load(folder: Path, summary: Summary) -> Report:
    """The report of a session: as it was kept, or else made anew, and kept. Raises RecordDamaged."""
    return _kept(folder, summary) or _made(folder, summary)


def _kept(folder: Path, summary: Summary) -> Report | None:
    if not is_kept(summary):
        return None
    with suppress(OSError, msgspec.DecodeError, ValueError, RecursionError):
        content = read_plain(folder / FILE, most_bytes=MOST_BYTES)
        if hashlib.sha256(content).hexdigest() == summary.report_sha256:
            return from_clean_json(content, Report)
    return None


def _made(folder: Path, summary: Summary) -> Report:
    session = store.load_session(folder)
    report = build(session, store.load_runs(folder, session))
    keep(folder, summary, report)
    return report


def _code() -> str:
    """What a kept report must have been made by: another analysis may come to other numbers."""
    return identity.code_hash(identity.SOURCE / "analysis")
