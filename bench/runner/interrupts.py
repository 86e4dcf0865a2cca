"""Ends a session cleanly at the first Ctrl-C, and at once at the second."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from bench.errors import Stopped
from bench.terminal.output import say


@dataclass
class Stop:
    """The user's request to stop: set by the first Ctrl-C, read wherever the session waits."""

    event: threading.Event = field(default_factory=threading.Event)
    may_interrupt: bool = False  # set while a cluster starts, which takes minutes

    @property
    def is_asked(self) -> bool:
        return self.event.is_set()

    def ask(self) -> None:
        self.event.set()


@contextmanager
def stopping(stop: Stop) -> Iterator[None]:
    """Ask for `stop` at the first Ctrl-C, or when the terminal is closed; raise KeyboardInterrupt at the second."""

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_asked:
            raise KeyboardInterrupt
        stop.ask()
        say("Stopping: ending the run and taking the cluster down. Press Ctrl-C again to stop at once.")
        if stop.may_interrupt:
            raise Stopped("Stopped while a cluster was starting.")

    numbers = [signal.SIGINT, signal.SIGTERM]
    if (
        signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    ):  # nohup ignores SIGHUP, so that closing the terminal ends nothing
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    except Stopped:
        return
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
