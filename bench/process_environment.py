"""Takes out of this process's environment what would change how raymeter works, before a command begins.

What is left is inherited by all that raymeter starts: git, kubectl, nodes. Proxies stay, as downloads of the user's own
tools need them; `http_client` and the nodes ignore them.
"""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.errors import CannotWrite

# What git sets for a hook (`git rev-parse --local-env-vars`): git would answer for that repository and not for ours.
REPOSITORY_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
# What changes how Python runs a program, and not where its modules are: without docstrings there is no help, a warning
# of a library ends the command, and debugging modes change every measured time.
INTERPRETER_VARIABLES = (
    "PYTHONASYNCIODEBUG",
    "PYTHONDEBUG",
    "PYTHONDEVMODE",
    "PYTHONDUMPREFS",
    "PYTHONINSPECT",
    "PYTHONINTMAXSTRDIGITS",
    "PYTHONMALLOC",
    "PYTHONMALLOCSTATS",
    "PYTHONOPTIMIZE",
    "PYTHONPERFSUPPORT",
    "PYTHONPROFILEIMPORTTIME",
    "PYTHONTRACEMALLOC",
    "PYTHONVERBOSE",
    "PYTHONWARNINGS",
)
# By the XDG specification a relative path is to be ignored: it would be another folder in every working folder.
XDG_VARIABLES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
USER_VARIABLES = ("LOGNAME", "USER")


def settle(entry_point: Callable[[], None]) -> None:
    """Change the environment of this process, and start it anew where its interpreter had read what is taken out.

    `entry_point` tells whether this process is the command line, and not one that has imported it.
    """
    found = set(INTERPRETER_VARIABLES) & set(os.environ)
    wanted = settled(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    if found and getattr(sys.modules["__main__"], "main", None) is entry_point:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def settled(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without what would steer raymeter, and with a home and a user. Raises CannotWrite."""
    dropped = {*REPOSITORY_VARIABLES, *INTERPRETER_VARIABLES}
    dropped |= {name for name in XDG_VARIABLES if not Path(environment.get(name, "/")).is_absolute()}
    remaining = {name: value for name, value in environment.items() if name not in dropped}
    remaining["HOME"] = _home(environment)
    if not any(environment.get(name) for name in USER_VARIABLES) and _account() is None:
        remaining["USER"] = f"uid-{os.getuid()}"  # libraries ask for a name, and fail where there is none
    return remaining


def _home(environment: Mapping[str, str]) -> str:
    """The user's home folder; one below the folder for temporary files where neither HOME nor an account names one."""
    account = _account()
    for path in (environment.get("HOME", ""), account.pw_dir if account else ""):
        if Path(path).is_absolute():
            return path
    folder = Path(tempfile.gettempdir()) / f"raymeter-home-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise CannotWrite(f"HOME is not set, and {folder} is another user's.", "Set HOME to a folder that is yours.")
    folder.chmod(0o700)
    return str(folder)


def _account() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:  # any number may be a process's user, as in a container
        return None
