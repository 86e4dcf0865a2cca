"""Set-up as another user than the one who owns the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from repository import ROOT

NOBODY = 65534


@pytest.mark.root
def test_without_permission_to_write_set_up_says_so_in_one_line() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "of root"
        (folder / ".ci").mkdir(parents=True)
        shutil.copy(ROOT / ".ci/setup", folder / ".ci")
        done = subprocess.run(
            [".ci/setup"],
            cwd=folder,
            env=os.environ,
            user=NOBODY,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == f"setup: no permission to write into {folder}. Copy the project into a folder of your own\n"
