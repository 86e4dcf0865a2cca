"""Texts that are compared with a file. `RAYMETER_WRITE_GOLDEN=1 task test -- tests/unit/reports` writes them anew: read the difference."""

from __future__ import annotations

import os
from pathlib import Path


def check_golden(text: str, path: Path) -> None:
    if os.environ.get("RAYMETER_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
