"""Stacks as collapsed lines: read with suspicion, added up, kept small, and their sum kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import stacks

NAMES = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp"), blacklist_characters="; "), min_size=1)
STACKS = st.dictionaries(st.lists(NAMES, min_size=1, max_size=6).map(tuple), st.integers(1, 10**12), max_size=30)


@given(STACKS)
def test_what_is_written_is_read_back(found: stacks.Stacks) -> None:
    assert stacks.parse(stacks.write(found, most_bytes=2**20)) == found


@given(STACKS, st.integers(64, 2000))
def test_what_has_no_room_is_left_out_and_its_weight_is_not(found: stacks.Stacks, most_bytes: int) -> None:
    text = stacks.write(found, most_bytes)
    assert len(text.encode()) <= most_bytes
    assert sum(stacks.parse(text).values()) == sum(found.values())


def test_what_has_no_room_is_the_lightest() -> None:
    text = stacks.write({("a" * 40,): 1, ("b" * 40,): 3, ("c" * 40,): 2}, most_bytes=64 + 50)
    assert text == f"{'b' * 40} 3\n{stacks.LEFT_OUT} 3\n"


@pytest.mark.parametrize("line", ["", "no number", "a;b -1", "a;b 1.5", "a " + "9" * 19, "1", "a;b ²"])
def test_a_strangers_line_that_is_no_stack_is_left_out(line: str) -> None:
    assert stacks.parse(f"a;b 2\n{line}\n") == {("a", "b"): 2}


def test_equal_stacks_of_several_processes_are_added_up() -> None:
    assert stacks.merged([{("a",): 1, ("b",): 1}, {("a",): 2}]) == {("a",): 3, ("b",): 1}


def test_a_tree_has_each_function_where_it_was_called_from() -> None:
    whole = stacks.tree({("a", "b"): 2, ("a", "c", "b"): 3, ("d",): 5})
    assert whole.total == 10
    assert whole.called["a"].total == 5
    assert whole.called["a"].called["c"].called["b"].total == 3


def test_a_function_that_calls_itself_is_counted_once() -> None:
    found = {name: (own, total) for name, own, total in stacks.by_function({("f", "f", "g"): 4, ("f",): 1})}
    assert found == {"g": (4, 4), "f": (1, 5)}


@pytest.mark.parametrize(
    "name",
    ["profile-lloyd.txt", "profile.perf.driver.folded", "profile.py-spy.a/b.folded", "profile.py-spy.driver.svg", "x"],
)
def test_a_file_of_another_name_is_no_profile(name: str) -> None:
    assert stacks.read_name(name) is None


def test_a_file_says_who_was_watched_by_what() -> None:
    assert stacks.read_name(stacks.file_name("py-spy", "worker-1")) == ("py-spy", "worker-1")
