"""Surroundings that a command may be started in: what each changes, as data; and the real command line in one of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BENCH = Path(sys.executable).with_name("bench")
SHELL = "/bin/sh"
DEADLINE_SECONDS = 120
USER = 54321  # without an account, and without a right that root has; 0 keeps nothing of root but its files


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is changed before a command starts; {folder} stands for a folder of the test's own."""

    name: str
    environment: Mapping[str, str | None] = field(default_factory=dict)  # None: not set
    first: str = ""  # run by the shell that becomes the command
    codes: frozenset[int] = frozenset()  # besides the one of plain surroundings; what is printed may differ then
    prints_the_same: bool = True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: bytes
    err: bytes

    @property
    def fault(self) -> str:
        """What no command may do, whatever surrounds it; empty where all is well."""
        for trace in (b"Traceback (most recent call last)", b"Exception ignored", b"Fatal Python error"):
            if trace in self.out + self.err:
                return f"a trace: {self.err.decode(errors='replace')[-1500:]}"
        said = self.err.decode(errors="replace").splitlines()
        if self.code and (self.code == 1 or (said and not said[-1].startswith("bench: "))):
            return f"code {self.code} without a line that says why: {said[-3:]}"
        return ""


def run(
    surroundings: Surroundings,
    command: Sequence[str | bytes | Path],
    *,
    folder: Path,
    environment: Mapping[str, str],
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Ended:
    """A command that a shell starts in `folder`; as an ordinary user without an account, where the caller is root."""
    changed = {**environment, **surroundings.environment}
    done = subprocess.run(
        [*as_user(), SHELL, "-c", f'{surroundings.first.format(folder=folder)}\nexec "$@"', SHELL, *command],
        cwd=folder,
        env={name: value.format(folder=folder) for name, value in changed.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=deadline_seconds,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def as_user() -> tuple[str, ...]:
    """What makes root an ordinary user. Python may lie where only root can look, so the one right left is to look."""
    if os.geteuid() != 0:
        return ()
    return (
        *(shutil.which("setpriv") or "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
        *("--bounding-set=-all,+dac_read_search", "--inh-caps=-all,+dac_read_search"),
        "--ambient-caps=+dac_read_search",
    )


def give_to_user(folder: Path) -> None:
    """Let the ordinary user have `folder` and all in it."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, USER, USER, follow_symlinks=False)


def plain_environment(folder: Path) -> dict[str, str]:
    """As a user has it, with state and home of the test's own."""
    return {
        "PATH": f"{BENCH.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": str(folder / "state"),
        "RAYMETER_QUIET_CHECK_SECONDS": "0",
    }


NO_FOLDER, CANNOT_WRITE = frozenset({2, 10}), frozenset({10})

SURROUNDINGS = (
    Surroundings(name="HOME is not set", environment={"HOME": None, "XDG_STATE_HOME": None}),
    Surroundings(name="HOME is not there", environment={"HOME": "/nonexistent", "XDG_STATE_HOME": None}),
    Surroundings(name="HOME is a file", environment={"HOME": "/dev/null", "XDG_STATE_HOME": None}),
    Surroundings(name="HOME is empty", environment={"HOME": "", "XDG_STATE_HOME": None}),
    Surroundings(name="HOME is everyone's", environment={"XDG_STATE_HOME": None}, first="chmod 777 {folder}/home"),
    Surroundings(name="HOME cannot be written", environment={"XDG_STATE_HOME": None, "HOME": "/proc"}),
    Surroundings(name="XDG_STATE_HOME is relative", environment={"XDG_STATE_HOME": "state of mine"}),
    Surroundings(name="XDG_STATE_HOME is a file", environment={"XDG_STATE_HOME": "/dev/null"}),
    Surroundings(name="TMPDIR is not there", environment={"TMPDIR": "/nonexistent"}),
    Surroundings(
        name="TMPDIR is longer than a socket's path may be",
        environment={"TMPDIR": f"{{folder}}/{'long/' * 30}"},
        first='mkdir -p "$TMPDIR"',
    ),
    Surroundings(name="PATH leads nowhere", environment={"PATH": "/nonexistent"}),
    Surroundings(name="Python optimizes", environment={"PYTHONOPTIMIZE": "2"}),
    Surroundings(name="Python takes warnings for errors", environment={"PYTHONWARNINGS": "error"}),
    Surroundings(name="Python develops", environment={"PYTHONDEVMODE": "1"}),
    Surroundings(name="Python inspects", environment={"PYTHONINSPECT": "1"}),
    Surroundings(
        name="ASCII alone",
        environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        prints_the_same=False,  # letters that it does not have are escaped
    ),
    Surroundings(name="PYTHONIOENCODING", environment={"PYTHONIOENCODING": "latin-1"}, prints_the_same=False),
    Surroundings(name="a locale that is not installed", environment={"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR"}),
    Surroundings(name="a time zone that does not exist", environment={"TZ": "Nowhere/At_All"}),
    Surroundings(name="a time zone of seconds", environment={"TZ": "ODD+13:37:01"}),
    Surroundings(
        name="a terminal of one column",
        environment={"COLUMNS": "1", "LINES": "1", "TERM": "dumb"},
        prints_the_same=False,  # help is broken into lines
    ),
    Surroundings(name="COLUMNS is no number", environment={"COLUMNS": "wide", "TERM": ""}),
    Surroundings(name="colours are forced", environment={"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}),
    Surroundings(
        name="a hook of another repository",
        environment={"GIT_DIR": "{folder}/no/.git", "GIT_WORK_TREE": "{folder}", "GIT_INDEX_FILE": "{folder}/no"},
    ),
    Surroundings(
        name="settings of another Ray",
        environment={
            "RAY_ADDRESS": "127.0.0.1:1",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": "of-another-cluster",
            "RAY_RUNTIME_ENV_HOOK": "no.such.hook",
            "RAY_object_store_memory": "1",
            "RAY_grpc_enable_http_proxy": "1",
            "GRPC_VERBOSITY": "debug",
        },
    ),
    Surroundings(name="a umask that takes all", first="umask 077"),
    Surroundings(name="a umask that takes nothing", first="umask 000"),
    Surroundings(
        name="a folder that is gone",
        first="mkdir {folder}/gone && cd {folder}/gone && rmdir {folder}/gone",
        codes=NO_FOLDER,
    ),
    Surroundings(name="a folder that cannot be written", first="cd /proc", codes=NO_FOLDER),
    Surroundings(name="stdin is closed", first="exec <&-"),
    Surroundings(name="stdout is closed", first="exec >&-", prints_the_same=False),
    Surroundings(name="stderr is closed", first="exec 2>&-"),
    Surroundings(name="all three are closed", first="exec <&- >&- 2>&-", prints_the_same=False),
    Surroundings(name="stdout is full", first="exec >/dev/full", codes=CANNOT_WRITE),
    Surroundings(name="few files may be open", first="ulimit -n 64"),
)

WORST = Surroundings(
    name="all that may have no effect at once",
    environment={
        name: value
        for each in SURROUNDINGS
        if not each.codes
        for name, value in each.environment.items()
        if name
        not in ("PATH", "TMPDIR", "HOME", "XDG_STATE_HOME", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONIOENCODING")
    }
    | {"HOME": None, "XDG_STATE_HOME": None},
    first="umask 077\nexec <&-",
    prints_the_same=False,
)
