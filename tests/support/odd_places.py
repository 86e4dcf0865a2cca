"""Folders and users under which programs break that quote too little or expect too much."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

ODD_NAME = 'ray meter\'s "$HOME" `ls` \\ ü\nβ'
NOBODY = 65534
RIGHTS = "dac_read_search"  # Python itself may lie where only root can look, so the one right that is left is to look


def environment_in(folder: Path) -> Path:
    """The executable of an environment in `folder` with the packages of this one."""
    root = folder / ".venv"
    library = root / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    library.mkdir(parents=True)
    (library / "site-packages").symlink_to(sysconfig.get_path("purelib"))
    executable = root / "bin/python"
    executable.parent.mkdir()
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    executable.symlink_to(base)
    (root / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    return executable


def as_nobody(folder: Path) -> tuple[str, ...]:
    """What to put before a command to run it as a user without rights, who owns `folder`; nothing where this is one."""
    if os.geteuid() != 0:
        return ()
    folder.chmod(0o755)
    os.chown(folder, NOBODY, NOBODY)
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"--bounding-set=-all,+{RIGHTS}")
    return ("setpriv", *user, f"--inh-caps=-all,+{RIGHTS}", f"--ambient-caps=+{RIGHTS}")
