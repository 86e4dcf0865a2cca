"""What raymeter this is: its version, and a checksum of its source that is the same in a checkout and in an image."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

SOURCE = Path(__file__).parent
# What a driver may be told in its environment: the code that its caller has, and the image of each node, as JSON.
CALLERS_CODE = "RAYMETER_CALLERS_CODE"
IMAGES = "RAYMETER_IMAGES"


@cache
def code_hash(source: Path = SOURCE) -> str:
    """SHA-256 of the Python files of `source`, 16 digits of it."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def version() -> str:
    """The version that pyproject.toml gives."""
    try:
        return installed_version("raymeter")
    except PackageNotFoundError:
        return "0"
