"""What `--fail-on` names: the verdicts that close the regression gate, and from which size on."""

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
    """A verdict, and the smallest difference that counts: 0.05 is 5 %."""

    verdict: str
    least: float = 0.0


def parse(words: Sequence[str]) -> tuple[Condition, ...]:
    """The conditions in `slower:5%,undecided`. Raises BadInput."""
    return tuple(_parse(word.strip()) for each in words for word in each.split(","))


def _parse(word: str) -> Condition:
    verdict, colon, size = word.partition(":")
    wrong = BadInput(
        f"--fail-on {word}: there is no such.",
        f"{did_you_mean(verdict, VERDICTS)}There are {', '.join(VERDICTS)}, and slower:5%.",
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
    """The rows that a condition names; `confirmed`: alarms were to be held against a fresh session.

    One that the fresh session could not tell of stands: a gate that cannot tell must not look open. A number that is too
    few for a verdict is undecided for the same reason.
    """
    for row in rows:
        verdict = row.found.verdict or "undecided"
        if row.is_alarm and confirmed and row.stand == "not found again":
            continue
        if any(each.verdict == verdict and _size(row) >= each.least for each in conditions):
            yield row


def _size(row: SessionRow) -> float:
    """How far the ratio is from 1, the same both ways: 0.8 is as far as 1.25."""
    ratio = row.found.ratio.value if row.found.ratio else 1.0
    return max(ratio, 1 / ratio) - 1
