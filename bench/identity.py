"""What raymeter this is: its version, and a checksum of its source that is the same in a checkout and in an image."""

from __future__ import annotations

import hashlib
import subprocess
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


@cache
def revision() -> tuple[str | None, bool | None]:
    """The git revision of this checkout, and whether it has changes; None twice outside one."""
    root = SOURCE.parent
    if not (root / ".git").exists():
        return None, None
    outputs = []
    for words in (("rev-parse", "HEAD"), ("status", "--porcelain")):
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=30, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None, None
        outputs.append(done.stdout.strip())
    return outputs[0], bool(outputs[1])


def describe_revision() -> str:
    """Twelve digits of it, as in "3121e6e4f0ab with changes"; nothing outside a checkout."""
    name, is_dirty = revision()
    return f"{name[:12]}{' with changes' if is_dirty else ''}" if name else ""
