"""Inside: profiles the driver, and every worker process of the job, by one of three profilers; no experiment knows of it.

Ray starts each worker of a profiled job with `in_worker`, which begins its profile before its first task. What it finds is
left in a folder of the node, process by process, where it outlives the worker; the node's probe adds it up at the end.
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
VARIABLE = "RAYMETER_PROFILE_WITH"  # the profiler; of the probes nothing
FOLDER_VARIABLE = "RAYMETER_PROFILE_OF"  # the run
LOOKS_PER_SECOND = 100  # by py-spy
INTERVAL_SECONDS = 0.001  # between two looks by pyinstrument
SAVE_SECONDS = 1.0  # of what a worker knows of itself: Ray ends it without a word
END_SECONDS = 20.0  # for py-spy to write down what it saw
TRIAL_SECONDS = 20.0
_TRACED_BY_ANYONE = (0x59616D61, ctypes.c_ulong(-1))  # prctl's PR_SET_PTRACER, PR_SET_PTRACER_ANY
_kept: list[object] = []  # profilers of this process: they end with it


def runtime_env(profiler: str, run: str) -> dict[str, Any]:
    """What a job is started with, so that its workers are profiled."""
    return {"worker_process_setup_hook": HOOK, "env_vars": {VARIABLE: profiler, FOLDER_VARIABLE: run}}


NOT_PROFILED = {"env_vars": {VARIABLE: ""}}
"""What a worker of such a job is started with that is to be left alone."""


def in_worker() -> None:
    """Called by Ray in a new worker, before its first task."""
    if profiler := os.environ.get(VARIABLE):
        _kept.append(start(profiler, folder_of(os.environ[FOLDER_VARIABLE]) / "workers"))


def folder_of(run: str) -> Path:
    """Where the profiles of `run` are on this node: in Ray's own folder, which goes with the node."""
    import ray._private.worker as ray_worker

    node: Any = ray_worker._global_node  # noqa: SLF001, there is no public way
    return Path(node.get_session_dir_path()) / "raymeter-profiles" / run


def why_unavailable(profiler: str) -> str:
    """Why `profiler` cannot be used on this node, and what would help; nothing: it can."""
    if profiler == "py-spy":
        return _why_no_py_spy()
    return "" if find_spec(profiler) else f"{profiler} is not installed: uv pip install {profiler}"


def start(profiler: str, folder: Path) -> Callable[[], None]:
    """Begin to profile this process, into files of `folder` that have its id; what ends it."""
    folder.mkdir(parents=True, exist_ok=True)
    return _STARTS[profiler](folder / str(os.getpid()))


def read(profiler: str, folder: Path) -> str:
    """What was found of all processes that have left something in `folder`, added up, as collapsed lines."""
    if profiler == "pyinstrument" and folder.is_dir():
        time.sleep(SAVE_SECONDS * 1.5)  # those that live save once more
    return stacks.write(stacks.merged(_READS[profiler](folder)))


def complaint(folder: Path) -> str:
    """The last that a profiler said in `folder`, where it left nothing."""
    output = "\n".join(path.read_text(errors="replace") for path in sorted(folder.glob("*.err")))
    return error_in_output(output) or "its profiler printed nothing"


def _start_py_spy(beside: Path) -> Callable[[], None]:
    _let_be_traced()
    # Started by a shell that is gone at once: Ray kills the children of a worker that it ends, and this is none.
    words = f'{_BACKGROUND} echo $! > "$0".pid'
    options = ("--nolineno", "--format", "raw", "--rate", str(LOOKS_PER_SECOND), "--pid", str(os.getpid()))
    # What ends it is SIGINT, which Ray blocks in the driver of a job, and in all that this starts.
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        subprocess.run(["sh", "-c", words, beside, _py_spy(), "record", *options], check=True, stdin=subprocess.DEVNULL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return lambda: _end_py_spy(beside.parent)


_BACKGROUND = 'setsid "$@" --output "$0".folded > /dev/null 2> "$0".err &'


def _end_py_spy(folder: Path) -> None:
    """Have every py-spy that watches into `folder` write down what it saw, and wait for that."""
    watching = [pid for path in folder.glob("*.pid") if (pid := _own_id(path))]
    for pid in watching:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
    until = time.monotonic() + END_SECONDS
    while any(_is_there(pid) for pid in watching) and time.monotonic() < until:
        time.sleep(0.05)


def _own_id(path: Path) -> int | None:
    """The process that `path` names, as long as it is ours: another may have its number by now."""
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
        seen = stacks.parse(path.read_text(errors="replace"))
        yield {stack: looks * microseconds for stack, looks in seen.items()}


def _start_pyinstrument(beside: Path) -> Callable[[], None]:
    from pyinstrument.stack_sampler import get_stack_sampler

    seen: Counter[tuple[str, ...]] = Counter()

    def add(stack: list[str], seconds: float, _: object) -> None:
        seen[tuple(map(_name_of, stack))] += round(seconds * 1_000_000)

    def save() -> None:
        replace_whole(beside.with_suffix(".folded"), stacks.write(seen.copy()).encode(), is_lasting=False)

    def save_now_and_then() -> None:
        while True:
            time.sleep(SAVE_SECONDS)
            save()

    def end() -> None:
        get_stack_sampler().unsubscribe(add)
        save()

    get_stack_sampler().subscribe(add, desired_interval=INTERVAL_SECONDS, use_async_context=False)
    threading.Thread(target=save_now_and_then, daemon=True).start()
    return end


def _read_pyinstrument(folder: Path) -> Iterator[stacks.Stacks]:
    for path in sorted(folder.glob("*.folded")):
        yield stacks.parse(path.read_text(errors="replace"))


def _start_memray(beside: Path) -> Callable[[], None]:
    import memray

    tracker = memray.Tracker(beside.with_suffix(".bin"))
    # By another thread: memray 1.20 takes the stack that it is begun in for the thread's whole one, and ours is left at once.
    beginner = threading.Thread(target=tracker.__enter__)
    beginner.start()
    beginner.join()

    def end() -> None:
        tracker.__exit__(None, None, None)

    return end


def _read_memray(folder: Path) -> Iterator[stacks.Stacks]:
    import memray

    for path in sorted(folder.glob("*.bin")):
        held: Counter[tuple[str, ...]] = Counter()
        with suppress(OSError):  # of a worker that was ended before it had written anything
            reader = memray.FileReader(path)
            for record in reader.get_high_watermark_allocation_records(merge_threads=True):
                frames = [_frame(function, file) for function, file, _ in record.stack_trace()]
                held[tuple(reversed(frames)) or ("(no Python)",)] += record.size
            yield held


_STARTS = {"py-spy": _start_py_spy, "pyinstrument": _start_pyinstrument, "memray": _start_memray}
_READS = {"py-spy": _read_py_spy, "pyinstrument": _read_pyinstrument, "memray": _read_memray}


@cache
def _name_of(identifier: str) -> str:
    """What pyinstrument calls a frame (function, file and line, by zeros), as all profilers here do."""
    function, file, *_ = f"{identifier}\0".split("\0")
    return _frame(function, file)


def _frame(function: str, file: str) -> str:
    return f"{function} ({_short(file)})".replace(";", ",").replace("\n", " ")


@cache
def _short(file: str) -> str:
    """`file` from its outermost package on: where packages are installed is not recorded."""
    path = Path(file)
    if not path.is_absolute():
        return file
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return path.relative_to(root).as_posix()


def _why_no_py_spy() -> str:
    """Tried on this process itself: rights are the kernel's, a container's and a policy's, and no one place tells them."""
    if sys.platform != "linux":
        return "py-spy can be run by root only; pyinstrument and memray need no rights"
    _let_be_traced()
    words = [_py_spy(), "dump", "--pid", str(os.getpid())]
    try:
        tried = subprocess.run(words, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False)
    except FileNotFoundError:
        return "py-spy is not installed: uv pip install py-spy"
    except subprocess.TimeoutExpired:
        return f"py-spy has read nothing of a process in {TRIAL_SECONDS:.0f} s"
    if tried.returncode == 0:
        return ""
    reason = error_in_output(tried.stderr) or f"exit code {tried.returncode}"
    return (
        f"py-spy may not read processes here ({reason}): it needs the right to ptrace, in a container the capability"
        " SYS_PTRACE; pyinstrument needs none"
    )


def _py_spy() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else "py-spy"


def _let_be_traced() -> None:
    """Where only parents may trace (Yama), let others of the same user trace this process too."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(*_TRACED_BY_ANYONE)
