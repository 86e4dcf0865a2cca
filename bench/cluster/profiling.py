"""Profiles the driver, and every worker process of the job, by one of three profilers. Experiments do not know about it.

Ray calls `in_worker` in each worker of a profiled job, which starts its profiler before the first task. Profiles are written to
a folder of the node, one per process, where they outlive the worker; the node's probe adds them up at the end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import stacks
from bench.errors import error_in_output
from bench.record.files import replace_whole

HOOK = f"{__name__}.in_worker"
VARIABLE = "RAYMETER_PROFILE_WITH"  # name of the profiler; empty for the probes
FOLDER_VARIABLE = "RAYMETER_PROFILE_OF"  # folder of the run
LOOKS_PER_SECOND = 100  # samples taken by py-spy
INTERVAL_SECONDS = 0.001  # between two samples by pyinstrument
SAVE_SECONDS = 1.0  # between two saves of a worker's profile: Ray kills workers without notice
END_SECONDS = 20.0  # for py-spy to write its profile
TRIAL_SECONDS = 20.0
_TRACED_BY_ANYONE = (0x59616D61, ctypes.c_ulong(-1))  # prctl's PR_SET_PTRACER, PR_SET_PTRACER_ANY
_kept: list[object] = []  # keeps this process's profilers alive until it ends


def runtime_env(profiler: str, run: str) -> dict[str, Any]:
    """Return the runtime environment of a job whose workers are profiled."""
    return {"worker_process_setup_hook": HOOK, "env_vars": {VARIABLE: profiler, FOLDER_VARIABLE: run}}


NOT_PROFILED = {"env_vars": {VARIABLE: ""}}
"""The runtime environment of workers in such a job that are not to be profiled."""


def in_worker() -> None:
    """Start the profiler of a new worker. Ray calls this before the worker's first task."""
    if profiler := os.environ.get(VARIABLE):
        _kept.append(start(profiler, folder_of(os.environ[FOLDER_VARIABLE]) / "workers"))


def folder_of(run: str) -> Path:
    """Return the folder of the run's profiles on this node. It is in Ray's own folder, and removed with the node."""
    import ray._private.worker as ray_worker

    node: Any = ray_worker._global_node  # noqa: SLF001, there is no public way
    return Path(node.get_session_dir_path()) / "raymeter-profiles" / run


def why_unavailable(profiler: str) -> str:
    """Return why `profiler` cannot be used on this node, and what would help; empty if it can."""
    if profiler == "py-spy":
        return _why_no_py_spy()
    return "" if find_spec(profiler) else f"{profiler} is not installed: uv pip install {profiler}"


def start(profiler: str, folder: Path) -> Callable[[], None]:
    """Start profiling this process, into files in `folder` named by its id; return the function that ends it."""
    folder.mkdir(parents=True, exist_ok=True)
    return _STARTS[profiler](folder / str(os.getpid()))


def read(profiler: str, folder: Path) -> str:
    """Add up the profiles of all processes in `folder`, and return them as collapsed stacks."""
    if profiler == "pyinstrument" and folder.is_dir():
        time.sleep(SAVE_SECONDS * 1.5)  # so that processes that still run save once more
    return stacks.write(stacks.merged(_READS[profiler](folder)))


def last_error(folder: Path) -> str:
    """Return the last error message of the profilers in `folder`, for the case that they left no profile."""
    output = "\n".join(path.read_text(errors="replace") for path in sorted(folder.glob("*.err")))
    return error_in_output(output) or "its profiler printed nothing"


def _start_py_spy(base: Path) -> Callable[[], None]:
    _let_be_traced()
    # Started by a shell that ends at once: Ray kills the children of a worker that it ends, and py-spy must outlive the worker.
    script = f'{_BACKGROUND} echo $! > "$0".pid'
    options = ("--nolineno", "--format", "raw", "--rate", str(LOOKS_PER_SECOND), "--pid", str(os.getpid()))
    # SIGINT ends py-spy. Ray blocks it in the driver of a job, and child processes inherit that.
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        subprocess.run(["sh", "-c", script, base, _py_spy(), "record", *options], check=True, stdin=subprocess.DEVNULL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return lambda: _end_py_spy(base.parent)


_BACKGROUND = 'setsid "$@" --output "$0".folded > /dev/null 2> "$0".err &'


def _end_py_spy(folder: Path) -> None:
    """Make every py-spy that writes into `folder` write its profile, and wait until that is done."""
    watching = [pid for path in folder.glob("*.pid") if (pid := _own_id(path))]
    for pid in watching:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
    until = time.monotonic() + END_SECONDS
    while any(_is_there(pid) for pid in watching) and time.monotonic() < until:
        time.sleep(0.05)


def _own_id(path: Path) -> int | None:
    """Return the process id in the file `path`, if that process is still our py-spy: ids are reused."""
    with suppress(OSError, ValueError):
        pid = int(path.read_text())
        if str(path.with_suffix(".folded")).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


def _is_there(pid: int) -> bool:
    with suppress(OSError):
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


def _read_py_spy(folder: Path) -> Iterator[stacks.Stacks]:
    _end_py_spy(folder)
    for path in sorted(folder.glob("*.folded")):
        microseconds = 1_000_000 // LOOKS_PER_SECOND
        counts = stacks.parse(path.read_text(errors="replace"))
        yield {stack: count * microseconds for stack, count in counts.items()}


def _start_pyinstrument(base: Path) -> Callable[[], None]:
    from pyinstrument.stack_sampler import get_stack_sampler

    microseconds: Counter[tuple[str, ...]] = Counter()

    def add(stack: list[str], seconds: float, _: object) -> None:
        microseconds[tuple(map(_name_of, stack))] += round(seconds * 1_000_000)

    def save() -> None:
        replace_whole(base.with_suffix(".folded"), stacks.write(microseconds.copy()).encode(), is_lasting=False)

    def save_periodically() -> None:
        while True:
            time.sleep(SAVE_SECONDS)
            save()

    def end() -> None:
        get_stack_sampler().unsubscribe(add)
        save()

    get_stack_sampler().subscribe(add, desired_interval=INTERVAL_SECONDS, use_async_context=False)
    threading.Thread(target=save_periodically, daemon=True).start()
    return end


def _read_pyinstrument(folder: Path) -> Iterator[stacks.Stacks]:
    for path in sorted(folder.glob("*.folded")):
        yield stacks.parse(path.read_text(errors="replace"))


def _start_memray(base: Path) -> Callable[[], None]:
    import memray

    tracker = memray.Tracker(base.with_suffix(".bin"))
    # In another thread: memray 1.20 takes the stack in which it is started for the thread's base, and this function returns at once.
    starter = threading.Thread(target=tracker.__enter__)
    starter.start()
    starter.join()

    def end() -> None:
        tracker.__exit__(None, None, None)

    return end


def _read_memray(folder: Path) -> Iterator[stacks.Stacks]:
    import memray

    for path in sorted(folder.glob("*.bin")):
        allocated_bytes: Counter[tuple[str, ...]] = Counter()
        with suppress(OSError):  # the worker was ended before it had written anything
            reader = memray.FileReader(path)
            for record in reader.get_high_watermark_allocation_records(merge_threads=True):
                frames = [_frame(function, file) for function, file, _ in record.stack_trace()]
                allocated_bytes[tuple(reversed(frames)) or ("(no Python)",)] += record.size
            yield allocated_bytes


_STARTS = {"py-spy": _start_py_spy, "pyinstrument": _start_pyinstrument, "memray": _start_memray}
_READS = {"py-spy": _read_py_spy, "pyinstrument": _read_pyinstrument, "memray": _read_memray}


@cache
def _name_of(identifier: str) -> str:
    """Name a frame as the other profilers do. pyinstrument's identifier is function, file and line, separated by zero bytes."""
    function, file, *_ = f"{identifier}\0".split("\0")
    return _frame(function, file)


def _frame(function: str, file: str) -> str:
    return f"{function} ({_short(file)})".replace(";", ",").replace("\n", " ")


@cache
def _short(file: str) -> str:
    """Shorten `file` to the part from its outermost package on, so that no installation path is recorded."""
    path = Path(file)
    if not path.is_absolute():
        return file
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return path.relative_to(root).as_posix()


def _why_no_py_spy() -> str:
    """Return why py-spy cannot be used, by a trial on this process: kernel, container and policies all limit the rights."""
    if sys.platform != "linux":
        return "py-spy can be run by root only; pyinstrument and memray need no rights"
    _let_be_traced()
    command = [_py_spy(), "dump", "--pid", str(os.getpid())]
    try:
        trial = subprocess.run(command, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False)
    except FileNotFoundError:
        return "py-spy is not installed: uv pip install py-spy"
    except subprocess.TimeoutExpired:
        return f"py-spy did not read a process within {TRIAL_SECONDS:.0f} s"
    if trial.returncode == 0:
        return ""
    reason = error_in_output(trial.stderr) or f"exit code {trial.returncode}"
    return (
        f"py-spy may not read processes here ({reason}): it needs the right to ptrace, in a container the capability"
        " SYS_PTRACE; pyinstrument needs none"
    )


def _py_spy() -> str:
    program = Path(sys.executable).with_name("py-spy")
    return str(program) if program.exists() else "py-spy"


def _let_be_traced() -> None:
    """Allow other processes of the same user to trace this one, where Yama allows parents only."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(*_TRACED_BY_ANYONE)
