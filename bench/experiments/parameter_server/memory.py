"""Keeps memory that a process has freed, for its next step."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
KEPT_BYTES = 2**30  # of freed memory, before any goes back to the kernel
HEAP_BYTES = 32 * 2**20  # a larger array is mapped by itself: the most that mallopt takes


def keep_freed_memory() -> None:
    """Let this process keep what it frees, as far as its C library can.

    Else the arrays of every step may be mapped, cleared and unmapped anew, for which two processes wait in one kernel.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, HEAP_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
