"""Makes .venv, the environment that every task uses, and makes it again when what it was made from has changed.

Standard library only: nothing is installed yet. The old environment is kept beside the new one until that is complete,
and `.venv/setup.json` is written last, so that an environment with this file is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NEEDED_BYTES = 5 * 10**9  # 3.6 GB when done; the rest is what pip unpacks on the way
NEEDED_BYTES_CUDA = 15 * 10**9

Inputs = dict[str, str]


class SetupFailed(Exception):
    """Set-up cannot go on; the message is one line with the way out."""


@dataclass(frozen=True)
class Source:
    """One place to ask for PyTorch, and in which words."""

    requirement: str
    options: tuple[str, ...]
    place: str
    is_cuda: bool = False


def main(root: Path = ROOT) -> int:
    """Make the environment of the project in `root` if there is none that fits; the exit code."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        inputs = inputs_of(root)
        if recorded(root / ".venv") == inputs:
            say("nothing to do, .venv is up to date")
            return 0
        with locked(root):
            made = recorded(root / ".venv")
            if made == inputs:
                say("nothing left to do, another set-up has just made .venv")
            else:
                make(root, inputs, why(made, inputs))
    except SetupFailed as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"{error.strerror}: {error.filename}. The project needs a folder that you can write to, with space left")
        return 1
    except KeyboardInterrupt:
        say("stopped; what was there before is still there")
        return 130
    return 0


def say(text: str) -> None:
    """One line for the person; standard output belongs to the task that needs the environment."""
    print(f"setup: {text}", file=sys.stderr, flush=True)


def _stop(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


# What an environment is made from


def inputs_of(root: Path) -> Inputs:
    """What, when it changes, makes the environment out of date; nothing of it is code of ours."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    tables = {
        "build": project.get("build-system"),
        "project": project.get("project"),
        "packages": project.get("tool", {}).get("setuptools"),
    }
    pins = [pin for line in (root / "constraints.txt").read_text().splitlines() if (pin := line.split("#")[0].strip())]
    return {
        "pyproject.toml": _digest(tables),
        "constraints.txt": _digest(pins),
        "Python": f"{sys.implementation.cache_tag} {os.uname().machine}",
        "the folder": str(root),  # scripts in an environment hold its path
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def recorded(venv: Path) -> Inputs | None:
    """What `venv` was made from. None: it was never finished, or its Python is gone."""
    if not (venv / "bin/python").exists():
        return None
    try:
        inputs = json.loads((venv / "setup.json").read_text())
    except (OSError, ValueError):
        return None
    return inputs if isinstance(inputs, dict) else None


def why(made: Inputs | None, inputs: Inputs) -> str:
    """The reason for making an environment, in words."""
    if made is None:
        return "there is no complete .venv"
    return " and ".join(name for name in inputs if made.get(name) != inputs[name]) + " changed"


# Making it


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the lock of `root`; wait for another set-up that has it."""
    with (root / ".venv.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is at work here, waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        # pip inherits the lock: when only set-up is killed, the next one waits until the orphan has ended too.
        os.set_inheritable(file.fileno(), True)
        yield


def make(root: Path, inputs: Inputs, reason: str) -> None:
    """A new .venv. On failure the old one is put back."""
    venv, previous = root / ".venv", root / ".venv.previous"
    check_disk(root, NEEDED_BYTES)
    say(f"making .venv with Python {sys.version.split()[0]}, as {reason}; this takes a minute or more")
    began = time.monotonic()
    set_aside(venv, previous)
    try:
        install(root, venv)
        part = venv / "setup.json.part"
        part.write_text(json.dumps(inputs, indent=1))
        part.rename(venv / "setup.json")
    except BaseException:
        discard(venv)
        if previous.exists():
            previous.rename(venv)
        raise
    shutil.rmtree(previous, ignore_errors=True)
    say(f"done in {time.monotonic() - began:.0f} s")


def set_aside(venv: Path, previous: Path) -> None:
    """Move what is at `venv` to `previous`, unless it is the ruin of a set-up that was killed."""
    if not os.path.lexists(venv):
        return
    if previous.exists() and recorded(venv) is None:
        discard(venv)
        return
    shutil.rmtree(previous, ignore_errors=True)
    venv.rename(previous)


def discard(venv: Path) -> None:
    """Remove an unfinished environment; renamed first, as something that was just ended may still write in it."""
    discarded = venv.with_name(".venv.discarded")
    shutil.rmtree(discarded, ignore_errors=True)
    if venv.exists():
        venv.rename(discarded)
        shutil.rmtree(discarded, ignore_errors=True)


def check_disk(root: Path, needed_bytes: int) -> None:
    """Raise SetupFailed where less than `needed_bytes` are free."""
    free_bytes = shutil.disk_usage(root).free
    if free_bytes < needed_bytes:
        raise SetupFailed(
            f"the disk of {root} has {free_bytes / 1e9:.1f} GB free, and {needed_bytes / 1e9:.0f} GB are needed. "
            "Free some, then run `task setup` again"
        )


def install(root: Path, venv: Path) -> None:
    """An empty environment, PyTorch, and everything else."""
    log = root / ".venv.log"
    log.write_text("")
    # The base interpreter: the one that runs this may itself live in the .venv that was just moved away.
    base = getattr(sys, "_base_executable", "") or sys.executable
    say("1 of 3: an empty environment")
    call([base, "-m", "venv", "--prompt", "raymeter", str(venv)], log)
    pip = [str(venv / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    install_torch(root, pip, log)
    say("3 of 3: everything else that constraints.txt pins")
    call([*pip, "install", "--constraint", str(root / "constraints.txt"), "--editable", f"{root}[dev]"], log)


def install_torch(root: Path, pip: Sequence[str], log: Path) -> None:
    """PyTorch from the first source that has it. It comes first, so that nothing else brings another build along."""
    pin = torch_pin((root / "constraints.txt").read_text())
    listing = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, check=False).stdout
    sources = torch_sources(pin, configured(listing), sys.platform)
    if not sources:
        say("2 of 3: nothing, as PyTorch's usual build for this system is the CPU build")
    for source in sources:
        if source.is_cuda:
            say("no CPU build of PyTorch is to be had. Taking the usual one instead, which brings several GB of CUDA")
            check_disk(root, NEEDED_BYTES_CUDA)
        say(f"2 of 3: {source.requirement} from {source.place}")
        try:
            call([*pip, "install", "--retries", "2", "--no-deps", *source.options, source.requirement], log)
        except SetupFailed as error:
            if source is sources[-1] or is_full(log.read_text()):
                raise
            say(f"not there: {str(error).split('. ')[0]}")
        else:
            return


def call(command: Sequence[str], log: Path) -> None:
    """Run one step; its progress is shown, and its complaints go to `log`. Raises SetupFailed with the likely cause."""
    environment = {**os.environ, "PIP_USER": "0"}  # a person's `user = true` would make pip refuse to use .venv
    start = log.stat().st_size
    with (
        log.open("a") as complaints,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=complaints,
            env=environment,
            close_fds=False,  # it holds the lock too
            process_group=0,  # so that it can be ended with its own children
        ) as child,
    ):
        try:
            exit_code = child.wait()
        except BaseException:
            with suppress(OSError):  # it has just ended by itself
                os.killpg(child.pid, signal.SIGKILL)
            raise
    if exit_code:
        raise SetupFailed(cause(log.read_bytes()[start:].decode(errors="replace"), log))


# Where PyTorch comes from


def torch_pin(constraints: str) -> str:
    """The version of PyTorch that `constraints` names."""
    found = re.search(r"^torch==([^\s;+]+)", constraints, re.MULTILINE)
    if not found:
        raise SetupFailed("constraints.txt has no line torch==VERSION")
    return found[1]


def configured(listing: str) -> set[str]:
    """Which of pip's package sources a person has set, by variable or file, going by `pip config list`."""
    names = {line.split("=")[0].rpartition(".")[2] for line in listing.splitlines() if "=" in line}
    return names & {"find-links", "index-url", "extra-index-url", "no-index"}


def torch_sources(pin: str, settings: set[str], platform: str) -> tuple[Source, ...]:
    """Where to ask for PyTorch, in order. Elsewhere than on Linux the package index itself has the CPU build."""
    if platform != "linux":
        return ()
    # On Linux the plain pin is met by a CUDA build of several GB too, so the CPU build is asked for by its full name.
    cpu_build = f"torch=={pin}+cpu"
    yours = Source(cpu_build, (), "the sources set for pip")
    official = Source(cpu_build, ("--index-url", CPU_INDEX), CPU_INDEX)
    usual = Source(f"torch=={pin}", (), "the usual package index", is_cuda=True)
    if settings & {"index-url", "no-index"}:
        return yours, usual
    return (yours, official, usual) if settings else (official, usual)


# What went wrong

FULL = r"No space left on device|Disk quota exceeded"
NO_NETWORK = (
    r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|NameResolutionError|Max retries exceeded|"
    r"Network is unreachable|connection broken"
)


def is_full(complaints: str) -> bool:
    """Whether the disk was too small."""
    return bool(re.search(FULL, complaints))


def cause(complaints: str, log: Path | str) -> str:
    """The likely cause of a failed step, in one line."""
    if is_full(complaints):
        return "the disk is full. Free some space, then run `task setup` again"
    if "ensurepip" in complaints:
        return "this Python cannot make environments. On Debian and Ubuntu: apt install python3-venv"
    if re.search(NO_NETWORK, complaints):
        return (
            "no package index answers. Look at the network or the proxy, or name a folder of wheels: "
            "PIP_FIND_LINKS=/folder PIP_NO_INDEX=1 task setup"
        )
    if found := re.search(r"No matching distribution found for (.+)", complaints):
        return f"there is no {found[1].strip()} for this Python and system in the package sources"
    if "ResolutionImpossible" in complaints:
        return "pyproject.toml and constraints.txt contradict each other, in what pip names above. Mend one of them"
    said = re.findall(r"^ERROR: (?!Exception)(.+)$", complaints, re.MULTILINE) or complaints.split("\n")
    last = next((line.strip() for line in reversed(said) if line.strip()), "a step failed")
    return f"{last}. All that was said: {log}"
