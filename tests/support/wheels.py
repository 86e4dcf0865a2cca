"""The wheel of the project, built as it is released: from the source distribution, without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from repository import ROOT

UV = Path(sys.prefix) / "bin/uv"


def build(into: Path) -> Path:
    """Build source distribution and wheel into a folder; the path of the wheel."""
    subprocess.run(
        [UV, "build", "--quiet", "--offline", "--out-dir", into, ROOT], check=True, timeout=120, capture_output=True
    )
    (wheel,) = into.glob("*.whl")
    return wheel
