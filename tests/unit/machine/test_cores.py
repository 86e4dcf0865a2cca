"""CPUs of nodes on machines as they are: whole cores, one kind, the same for every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import ALL, Machine, expand

from bench.machine.cores import Cpu, cores, read_cpus, slices, spare


def cpus_of(machine: Machine, root: Path, allowed: str = "") -> tuple[Cpu, ...]:
    return read_cpus(expand(allowed) or range(machine.cpus), machine.write(root))


def kinds(cpus: Sequence[Cpu], of: Sequence[int]) -> Counter[str]:
    by_number = {cpu.number: cpu.kind for cpu in cpus}
    return Counter(by_number[number] for number in of)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("i7-12700", {"performance 4.9 GHz": 16, "efficiency 3.6 GHz": 4}),
        ("big.LITTLE", {"capacity 1024": 2, "capacity 485": 4}),
        ("dense", {"5.1 GHz": 8, "3.3 GHz": 8}),
        ("Xeon", {"": 32}),
        ("Ryzen", {"": 16}),
        ("small VM", {"": 2}),
    ],
)
def test_kinds_are_told_apart_and_favoured_cores_are_no_kind(
    tmp_path: Path, name: str, expected: dict[str, int]
) -> None:
    assert Counter(cpu.kind for cpu in cpus_of(ALL[name], tmp_path)) == expected


@pytest.mark.parametrize(
    ("name", "nodes", "each", "expected"),
    [
        ("i7-12700", 2, 2, ["0-1", "2-3"]),
        ("i7-12700", 2, 8, ["0-7", "8-15"]),
        ("i7-12700", 2, 10, ["0-7,16-17", "8-15,18-19"]),  # all of it: four cores of the one kind and two of the other
        ("i7-12700", 4, 1, ["0", "2", "4", "6"]),  # a thread each, of four cores
        ("i7-12700", 4, 3, ["0-1,8", "2-3,10", "4-5,12", "6-7,14"]),
        ("Xeon", 2, 16, ["0-7,16-23", "8-15,24-31"]),
        ("Xeon", 2, 1, ["0", "1"]),
        ("Xeon", 2, 2, ["0,16", "1,17"]),
        ("two sockets", 2, 8, ["0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"]),
        ("adjacent siblings", 2, 1, ["0", "2"]),
        ("adjacent siblings", 2, 4, ["0-3", "4-7"]),
        ("Ryzen", 2, 8, ["0-3,8-11", "4-7,12-15"]),  # a complex each
        ("Ryzen", 2, 6, ["0-2,8-10", "4-6,12-14"]),  # none of them on both
        ("big.LITTLE", 2, 1, ["4", "5"]),
        ("big.LITTLE", 2, 2, ["0-1", "2-3"]),  # the large ones are too few: of one kind before the fastest
        ("big.LITTLE", 2, 3, ["0-1,4", "2-3,5"]),
        ("small VM", 2, 1, ["0", "1"]),
        ("VM of one core", 2, 1, ["0", "1"]),  # there is no other way: the record says that they share a core
    ],
)
def test_every_node_gets_whole_cores_of_the_same_kinds(
    tmp_path: Path, name: str, nodes: int, each: int, expected: list[str]
) -> None:
    cpus = cpus_of(ALL[name], tmp_path)
    found = slices(cpus, nodes=nodes, cpus_per_node=each)
    assert found == tuple(expand(text) for text in expected)
    together = slices(cpus, nodes=1, cpus_per_node=nodes * each, shares=nodes)
    assert together == (tuple(sorted(number for part in found for number in part)),)


def test_cpus_that_are_not_allowed_are_left_out(tmp_path: Path) -> None:
    cpus = cpus_of(ALL["i7-12700"], tmp_path, "1,4-7,16-19")
    assert slices(cpus, nodes=2, cpus_per_node=2) == ((4, 5), (6, 7))
    assert slices(cpus, nodes=2, cpus_per_node=1) == ((4,), (6,))  # no node has a core that the other has not
    assert cores(cpus)[0].siblings == (0, 1)
    assert cores(cpus)[0].cpus == (1,)


def test_a_machine_that_says_nothing_has_equal_cores_of_one_thread(tmp_path: Path) -> None:
    cpus = read_cpus(range(10), tmp_path)  # as of Apple's
    assert slices(cpus, nodes=2, cpus_per_node=5) == (tuple(range(5)), tuple(range(5, 10)))
    assert {(core.kind, len(core.siblings)) for core in cores(cpus)} == {("", 1)}


def test_what_watches_goes_to_cores_of_its_own(tmp_path: Path) -> None:
    cpus = cpus_of(ALL["Xeon"], tmp_path)
    assert spare(cpus, (0, 1)) == (*range(2, 16), *range(18, 32))
    assert spare(cpus, range(16)) == tuple(range(16, 32))  # siblings are all that is left
    assert spare(cpus, range(32)) == tuple(range(32))


@st.composite
def machines(draw: st.DrawFn) -> tuple[Cpu, ...]:
    """Any mixture of cores with one to four threads, of up to three kinds, some threads of them not allowed."""
    found: list[Cpu] = []
    number = 0
    for _ in range(draw(st.integers(1, 12))):
        siblings = tuple(range(number, number + draw(st.sampled_from([1, 2, 2, 4]))))
        number += len(siblings)
        rank, cache = draw(st.integers(0, 2)), draw(st.integers(0, 1))
        allowed = draw(st.sets(st.sampled_from(siblings), min_size=1))
        found += [
            Cpu(number=cpu, siblings=siblings, kind=f"kind {rank}", rank=rank, last_cache=cache) for cpu in allowed
        ]
    return tuple(found)


@given(cpus=machines(), nodes=st.integers(1, 4), data=st.data())
def test_slices_are_disjoint_complete_and_the_same_each_time(
    cpus: tuple[Cpu, ...], nodes: int, data: st.DataObject
) -> None:
    each = data.draw(st.integers(0, len(cpus) // nodes))
    found = slices(cpus, nodes=nodes, cpus_per_node=each)
    assert [len(part) for part in found] == [each] * nodes
    taken = [number for part in found for number in part]
    assert len(set(taken)) == len(taken)
    assert set(taken) <= {cpu.number for cpu in cpus}
    assert slices(data.draw(st.permutations(cpus)), nodes=nodes, cpus_per_node=each) == found
    assert slices(cpus, nodes=1, cpus_per_node=nodes * each, shares=nodes) == (tuple(sorted(taken)),)


@given(
    threads=st.sampled_from([1, 2, 4]), count=st.integers(1, 16), nodes=st.integers(1, 4), data=st.data(),
    is_far=st.booleans(),
)  # fmt: skip
def test_no_core_is_on_two_nodes_where_there_are_enough_and_none_is_split_where_they_fill_a_node(
    threads: int, count: int, nodes: int, data: st.DataObject, is_far: bool
) -> None:
    def siblings(core: int) -> tuple[int, ...]:
        return (
            tuple(core + count * i for i in range(threads))
            if is_far
            else tuple(range(core * threads, (core + 1) * threads))
        )

    cpus = [Cpu(number=number, siblings=siblings(core)) for core in range(count) for number in siblings(core)]
    each = data.draw(st.integers(0, len(cpus) // nodes))
    core_of = {cpu.number: cpu.siblings for cpu in cpus}
    users = [{core_of[number] for number in part} for part in slices(cpus, nodes=nodes, cpus_per_node=each)]
    needed = nodes * -(-each // threads)
    if needed <= count:
        assert sum(map(len, users)) == len(set().union(*users)) == needed
        assert len({len(those) for those in users}) == 1


@given(kinds_of=st.lists(st.integers(0, 2), min_size=2, max_size=16), nodes=st.integers(2, 4), data=st.data())
def test_nodes_have_the_same_of_each_kind_wherever_that_can_be(
    kinds_of: list[int], nodes: int, data: st.DataObject
) -> None:
    cpus = [Cpu(number=n, siblings=(n,), kind=f"kind {rank}", rank=rank) for n, rank in enumerate(kinds_of)]
    each = data.draw(st.integers(0, len(cpus) // nodes))
    found = [kinds(cpus, part) for part in slices(cpus, nodes=nodes, cpus_per_node=each)]
    if sum(there // nodes for there in Counter(kinds_of).values()) >= each:
        assert all(part == found[0] for part in found)
    if any(there >= nodes * each for there in Counter(kinds_of).values()):
        assert all(len(part) <= 1 for part in found)
