"""What a person is told of long work: how much, how fast, how long it will yet take."""

from __future__ import annotations

from bench.terminal.progress import TELL_SECONDS, WorkInHand


def test_the_rate_is_that_of_the_work_in_hand_and_gives_what_is_left() -> None:
    work = WorkInHand()
    work.came((0.0, 1_000.0), now=50.0)
    assert work.words == "0 of 1,000"
    work.came((200.0, 1_000.0), now=60.0)
    assert work.words == "200 of 1,000, 20/s, 40 s left"


def test_other_work_begins_anew() -> None:
    work = WorkInHand()
    work.came((900.0, 1_000.0), now=0.0)
    work.came((1_000.0, 1_000.0), now=10.0)
    work.came((5.0, 1_000.0), now=11.0)
    assert work.words == "5 of 1,000"
    work.came((25.0, 1_000.0), now=13.0)
    assert work.words == "25 of 1,000, 10/s, 2 min left"


def test_short_rounds_of_which_the_end_alone_is_heard_have_no_rate() -> None:
    work = WorkInHand()
    work.came((40.0, 48.0), now=0.0)
    work.came((48.0, 48.0), now=1.0)
    assert work.words.startswith("48 of 48, 8/s")
    work.came((48.0, 48.0), now=31.0)  # the next round, in 0.5 s, after arms that do not say how far they are
    assert work.words == "48 of 48"


def test_a_plain_log_is_told_now_and_then() -> None:
    work = WorkInHand()
    assert work.due(TELL_SECONDS) == ""
    work.came((1.0, 2.0), now=TELL_SECONDS)
    assert work.due(TELL_SECONDS) == "1 of 2"
    assert work.due(TELL_SECONDS + 1) == ""
    assert work.due(2 * TELL_SECONDS) == "1 of 2"
