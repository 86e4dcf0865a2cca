"""Makes payloads, words drawn from the seed with a number that makes each another one, and checks what arrived.

Both ends draw the same words, so a received payload is compared word by word and not by a checksum that could agree by
chance. The number stands in the first word and in the last.
"""

from __future__ import annotations

import threading
from time import thread_time
from typing import TYPE_CHECKING, Any

from bench.experiments.network.points import WORD_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

DAMAGED = 0  # in place of the number of a payload that is not what was sent


def draw(seed: int, size: int) -> Words:
    """`size` bytes of words, the same wherever they are drawn."""
    import numpy as np

    return np.random.default_rng(seed).integers(0, 2**64, size // WORD_BYTES, dtype=np.uint64)


def stamp(words: Words, number: int) -> None:
    """Make `words` the payload `number`, from 1."""
    words[0] = words[-1] = number


class Checker:
    """Compares what came with what was sent, and knows what CPU time that took, for it is no part of a transfer."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.cpu_seconds = 0.0
        self._lock = threading.Lock()  # streams are checked in threads of their own

    def number_of(self, received: Any) -> int:
        """The number of the payload `received`, words or bytes; DAMAGED where it differs in anything else."""
        import numpy as np

        begin = thread_time()
        found = np.frombuffer(received, dtype=np.uint64)
        number = int(found[0])
        if number != int(found[-1]) or not np.array_equal(found[1:-1], self.words[1 : len(found) - 1]):
            number = DAMAGED
        with self._lock:
            self.cpu_seconds += thread_time() - begin
        return number

    def number_in_sum(self, summed: Words) -> int:
        """As `number_of`, where the payload was added to the words themselves, in arithmetic of 64 bits."""
        return self.number_of(summed - self.words[: len(summed)])


def complaint(sent: list[int], received: list[int]) -> str | None:
    """What is wrong with the payloads that came; None: nothing."""
    if sorted(sent) == sorted(received):
        return None
    lost = len(set(sent) - set(received))
    return f"{lost} of {len(sent)} payloads did not arrive as they were sent ({received.count(DAMAGED)} damaged)"
