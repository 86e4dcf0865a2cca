"""Transfers the record of a run to the client: fetches new lines by range while the run goes on, and saves them at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench import http_client
from bench.cluster import EXPORTER_HEADER
from bench.errors import AuthFailed, RecordDamaged
from bench.model import RunResult, Spec
from bench.record.store import FILES, SAMPLES, append
from bench.sanitize import from_clean_json

TIMEOUT_SECONDS = 10.0
FILE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
MOST_BYTES = 8 * 2**20  # per response
NOTHING_NEW = 416  # HTTP status for a range that begins at the end of the file
MOST_FILES = 64
MOST_FILE_BYTES = 512 * 2**20


@dataclass
class Collector:
    """Transfers the record of one run. Every method may raise http_client.RequestException, and may be called again."""

    exporter_url: str
    token: str = field(repr=False)
    spec: Spec
    path: Path  # the run's folder on the client
    offset: int = 0

    def fetch_new(self, *, insist: bool = False) -> bytes:
        """Save the complete new lines, and return them. `insist`: also if a driver that was killed left its request for silence."""
        answer = self._get(SAMPLES, offset=self.offset, insist=insist)
        if answer is None:
            return b""
        whole = answer[: answer.rfind(b"\n") + 1]
        if whole:
            self.offset = append(self.path / SAMPLES, offset=self.offset, content=whole)
        return whole

    def fetch_result(self, *, insist: bool = False) -> RunResult | None:
        """Return the result that the run has written; None before that."""
        answer = self._get("run.json", offset=0, insist=insist)
        if answer is None:
            return None
        try:
            return from_clean_json(answer, RunResult)
        except (msgspec.DecodeError, ValueError) as error:
            raise RecordDamaged(f"run.json of {self.spec.folder} is not valid: {error}.") from error

    def fetch_files(self, *, insist: bool = False) -> None:
        """Save what the experiment has appended to its files. Raises RecordDamaged if they exceed MOST_FILES or MOST_FILE_BYTES."""
        listing = self._get(f"{FILES}/", offset=0, insist=insist)
        sizes = _sizes(listing) if listing else {}
        for name, size in sizes.items():
            path = self.path / FILES / name
            path.parent.mkdir(exist_ok=True)
            while (saved_bytes := path.stat().st_size if path.exists() else 0) < size:
                content = self._get(f"{FILES}/{name}", offset=saved_bytes, insist=insist)
                if not content:
                    break
                append(path, offset=saved_bytes, content=content)

    def metrics_page(self) -> str:
        """Return the metrics page as Prometheus would get it now."""
        answer = http_client.get(f"{self.exporter_url}/metrics", timeout_seconds=TIMEOUT_SECONDS)
        answer.raise_for_status()
        return answer.text

    def _get(self, name: str, *, offset: int, insist: bool) -> bytes | None:
        """Return a file from `offset` on; None if it does not exist yet, or if the run asks for silence."""
        answer = http_client.get(
            f"{self.exporter_url}/runs/{self.spec.session}/{self.spec.folder}/{name}",
            params={"insist": int(insist)},
            headers={"Range": f"bytes={offset}-{offset + MOST_BYTES - 1}"},
            token=self.token,
            timeout_seconds=TIMEOUT_SECONDS,
        )
        if EXPORTER_HEADER not in answer.headers:  # the response of a proxy says nothing about the record
            raise http_client.RequestException(f"HTTP {answer.status_code} from a proxy before the exporter")
        if answer.status_code in (401, 403):
            raise AuthFailed("The exporter refused the token.", "Stand the cluster up again with `bench up`.")
        if answer.status_code in (404, 503):
            return None
        if answer.status_code == NOTHING_NEW:
            return b""
        answer.raise_for_status()
        return answer.content


def _sizes(listing: bytes) -> dict[str, int]:
    """Return the sizes in a listing after checks: the cluster sent it, and it decides what is written here."""
    try:
        sizes = msgspec.json.decode(listing, type=dict[str, int])
    except (msgspec.DecodeError, ValueError) as error:
        raise RecordDamaged(f"The exporter's list of files is not valid: {error}.") from error
    if not all(re.fullmatch(FILE_NAME, name) for name in sizes):
        raise RecordDamaged("The exporter's list of files has a name that could lie outside the run's folder.")
    if len(sizes) > MOST_FILES or sum(sizes.values()) > MOST_FILE_BYTES:
        raise RecordDamaged(
            f"The run left {len(sizes)} files of {sum(sizes.values()) / 2**20:.0f} MiB, and at most {MOST_FILES} of"
            f" {MOST_FILE_BYTES // 2**20} MiB are transferred."
        )
    return sizes
