"""The commands that the README shows, line by line."""

from __future__ import annotations

import re

from repository import ROOT

FENCE = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    blocks = FENCE.findall((ROOT / "README.md").read_text())
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]
