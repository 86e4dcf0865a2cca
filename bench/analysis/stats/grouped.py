"""Sums and greatest values of groups of numbers, all groups at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.floating[Any]]


def known(values: Numbers) -> list[float | None]:
    """None in place of NaN."""
    return [None if math.isnan(value) else value for value in values.astype(float).tolist()]


class Groups:
    """Which of `count` groups each number belongs to; a group may have none."""

    def __init__(self, group: NDArray[np.intp], count: int) -> None:
        import numpy as np

        self._count = count
        self._order = np.argsort(group, kind="stable")
        self.sizes = np.bincount(group, minlength=count)
        self._filled = np.flatnonzero(self.sizes)
        self._starts = (np.cumsum(self.sizes) - self.sizes)[self._filled]

    def sums(self, values: Numbers) -> Numbers:
        """Of each group, with the bits of a long double, so that their order hardly ever matters; 0 where there is none."""
        import numpy as np

        found = np.zeros(self._count, dtype=np.longdouble)
        if len(self._filled):
            found[self._filled] = np.add.reduceat(values[self._order].astype(np.longdouble), self._starts)
        return found

    def most(self, values: Numbers) -> Numbers:
        """The greatest of each group, NaN left out; NaN where there is none."""
        import numpy as np

        found = np.full(self._count, np.nan)
        if len(self._filled):
            found[self._filled] = np.fmax.reduceat(values[self._order], self._starts)
        return found
