"""The commands that README and the pages under docs/ show, line by line, in the order in which a reader meets them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from repository import ROOT

DOCS = ROOT / "docs"
README = ROOT / "README.md"
FENCE = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def in_navigation() -> list[Path]:
    """The pages of the site, in the order of its navigation."""

    def files(item: Any) -> list[Path]:
        if isinstance(item, str):
            return [DOCS / item]
        return [page for each in (item.values() if isinstance(item, dict) else item) for page in files(each)]

    return files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])


def commands(*pages: Path) -> list[str]:
    """Each line of each sh block of `pages`, without comments."""
    blocks = (block for page in pages for block in FENCE.findall(page.read_text()))
    return [line.strip() for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


def executed() -> list[str]:
    """What a test runs, in this order: all but the pages of experiments, whose commands measure for minutes to days."""
    return commands(README, *(page for page in in_navigation() if page.parent == DOCS))
