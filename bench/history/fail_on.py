"""Parses `--fail-on` (verdicts, with the smallest difference that counts), and finds the rows that fail the regression gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from bench.analysis.two_sessions import SessionRow

VERDICTS = ("slower", "faster", "differs", "undecided")


@dataclass(frozen=True)
class Condition:
    """A verdict, and the smallest relative difference that counts, e.g. 0.05 for 5 %."""

    verdict: str
    least: float = 0.0


def parse(words: Sequence[str]) -> tuple[Condition, ...]:
    """Parse conditions like `slower:5%,undecided`. Raises BadInput."""
    return tuple(_parse(word.strip()) for text in words for word in text.split(","))


def _parse(word: str) -> Condition:
    verdict, colon, size = word.partition(":")
    wrong = BadInput(
        f"--fail-on {word}: unknown condition.",
        f"{did_you_mean(verdict, VERDICTS)}Choose from: {', '.join(VERDICTS)}; with a limit: slower:5%.",
    )
    if verdict not in VERDICTS or (colon and verdict == "undecided"):
        raise wrong
    if not colon:
        return Condition(verdict)
    try:
        least = float(size.removesuffix("%")) / 100
    except ValueError:
        raise wrong from None
    if not size.endswith("%") or not 0 < least < float("inf"):
        raise wrong
    return Condition(verdict, least)


def failing(conditions: Sequence[Condition], rows: Sequence[SessionRow], *, confirmed: bool) -> Iterator[SessionRow]:
    """Yield the rows that match a condition. `confirmed`: alarms were measured again in a fresh session.

    An alarm that the fresh session could neither confirm nor refute still fails the gate. A row without a verdict, because it
    has too few pairs, counts as undecided for the same reason.
    """
    for row in rows:
        verdict = row.found.verdict or "undecided"
        if row.is_alarm and confirmed and row.stand == "not found again":
            continue
        if any(condition.verdict == verdict and _size(row) >= condition.least for condition in conditions):
            yield row


def _size(row: SessionRow) -> float:
    """Return how far the ratio is from 1, the same in both directions: 0.8 is as far as 1.25."""
    ratio = row.found.ratio.value if row.found.ratio else 1.0
    return max(ratio, 1 / ratio) - 1
