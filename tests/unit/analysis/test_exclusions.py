"""The exclusion takes whole blocks, for interference on the machine, and never looks at a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import made_up

from bench import analysis
from bench.analysis import exclusions
from bench.analysis.exclusions import Conditions
from bench.analysis.table import Table
from bench.model import IdleLoad, NodeUsage, QuietCheck, Run

WATCHED = 10.0
SOUND = Conditions(
    block=1,
    where="head of b01-single-inference-c01",
    watched_seconds=WATCHED,
    cpus=2,
    is_limited=False,
    steal_seconds=0.0,
    throttled_periods=0,
    pressure_cpu_seconds=0.0,
    host_busy_seconds=10.0,
    own_cpu_seconds=9.9,
    swapped_bytes=0,
)


def judged(runs: list[Run]) -> exclusions.Exclusions:
    return exclusions.decide_exclusions(each for those in exclusions.conditions(Table(runs)) for each in those)


def disturbed(runs: list[Run], which: Callable[[Run], bool], change: Callable[[NodeUsage], NodeUsage]) -> list[Run]:
    return [replace(run, usage=tuple(map(change, run.usage))) if which(run) else run for run in runs]


def stolen(share: float) -> Callable[[NodeUsage], NodeUsage]:
    """`share` of the time of two CPUs, and of one CPU on the nodes of `multi`: they may run on so many."""
    return lambda row: replace(row, steal_seconds=share * row.watched_seconds * 2)


def in_blocks(*blocks: int) -> Callable[[Run], bool]:
    return lambda run: run.spec.block in blocks and run.spec.topology.name == "single"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steal_seconds": 0.03 * WATCHED * 2}, "3 % of its CPU time was stolen"),
        ({"throttled_periods": 1}, "throttled in 1 period, without a quota"),
        (
            {"pressure_cpu_seconds": 9.0, "host_busy_seconds": 20.0, "own_cpu_seconds": 10.0},
            "that others held 45 % of the time (others used 1 CPU)",
        ),
        (
            {
                "pressure_cpu_seconds": None,
                "run_queue_wait_seconds": 30.0,  # of four threads, in ten seconds
                "host_busy_seconds": 20.0,
                "own_cpu_seconds": 10.0,
            },
            "that others held 50 % of the time",
        ),
        ({"swapped_bytes": 5 * 2**20}, "swapped 5 MiB"),
    ],
)
def test_each_disturbance_excludes_its_block_and_is_named(changes: dict[str, float | None], words: str) -> None:
    (reasons,) = exclusions.decide_exclusions([replace(SOUND, **changes)]).reasons.values()  # type: ignore[arg-type]
    assert len(reasons) == 1
    assert words in reasons[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"steal_seconds": 0.019 * WATCHED * 2},
        {"throttled_periods": 400, "is_limited": True},
        {"swapped_bytes": 2**16},
        {"pressure_cpu_seconds": WATCHED, "host_busy_seconds": 20.0, "own_cpu_seconds": 19.0},
        {"pressure_cpu_seconds": 0.5, "host_busy_seconds": 20.0, "own_cpu_seconds": 1.0},
        {
            "pressure_cpu_seconds": 0.5,
            "host_busy_seconds": 20.0,
            "own_cpu_seconds": 1.0,
            "run_queue_wait_seconds": 30.0,
        },
    ],
    ids=[
        *("a little steal", "a quota of its own", "an idle page", "all of it own demand", "others, and nobody waits"),
        "threads that wait, and a kernel that counts pressure",
    ],
)
def test_what_is_below_the_limit_or_of_the_harness_itself_excludes_nothing(changes: dict[str, float]) -> None:
    assert not exclusions.decide_exclusions([replace(SOUND, **changes)]).reasons  # type: ignore[arg-type]


def test_counters_that_are_missing_exclude_nothing_and_are_named() -> None:
    counted = [field.name for field in fields(Conditions) if field.name.endswith(("_seconds", "_periods", "_bytes"))]
    found = exclusions.decide_exclusions([replace(SOUND, **dict.fromkeys(counted))])  # type: ignore[arg-type]
    assert found.unseen == ("steal", "CPU pressure beyond own demand", "swapping")
    assert (found.blocks, found.reasons) == ({1}, {})


def test_the_demand_of_all_nodes_on_one_machine_is_own_demand() -> None:
    _, runs = made_up(cells=1, blocks=1)
    for run in runs:
        for seen in exclusions.conditions(Table([run]))[0]:
            assert seen.pressure_beyond_own == pytest.approx(
                0.7 / 1.04 * 0.02 / (seen.own_cpu_seconds / 15 + 0.02), rel=0.1
            )
    apart = [
        replace(
            run,
            facts=replace(run.facts, nodes=tuple(replace(node, boot_id=f"of {node.node}") for node in run.facts.nodes)),
        )
        for run in runs
    ]
    assert [bool(judged([run]).reasons) for run in apart] == [run.spec.topology.name == "multi" for run in apart]


@pytest.mark.parametrize(
    ("deployment", "beyond", "is_excluded"), [(0.0, 0.3, True), (0.3, 0.0, False), (0.3, 0.3, True), (0.2, 0.3, True)]
)
def test_what_the_deployment_uses_at_rest_is_own_demand_and_noise_beyond_it_still_excludes(
    deployment: float, beyond: float, *, is_excluded: bool
) -> None:
    def on_busy_machine(row: NodeUsage) -> NodeUsage:
        assert row.watched_seconds is not None
        assert row.cpu_seconds is not None
        counted = {"pressure_cpu_seconds": row.watched_seconds, "cpu_seconds": 0.2 * row.watched_seconds}
        busy = (counted["cpu_seconds"] / row.watched_seconds * 2 + deployment + beyond) * row.watched_seconds
        return replace(row, host_busy_seconds=busy, **counted)

    _, runs = made_up(cells=1, blocks=1)
    multi = [run for run in disturbed(runs, lambda _: True, on_busy_machine) if run.spec.topology.name == "multi"]
    known = [replace(run, idle_load=IdleLoad(cpus=deployment, ray_cpus=0.1)) for run in multi]
    assert bool(judged(known).reasons) is is_excluded
    assert judged(multi).reasons, "as long as nothing is known of the deployment, it counts as others'"
    for each in exclusions.conditions(Table(known))[0]:
        assert each.others_cpus == pytest.approx(beyond, abs=1e-6)


def test_three_per_cent_of_steal_in_one_run_takes_its_block_from_every_condition() -> None:
    session, runs = made_up(cells=3, blocks=7)
    first = next(run.spec.id for run in runs if run.spec.block == 4)
    report = analysis.build(session, disturbed(runs, lambda run: run.spec.id == first, stolen(0.03)))
    assert list(report.excluded_blocks) == [4]
    assert "stolen by the hypervisor" in report.excluded_blocks[4][0]
    for cell in report.cells:
        assert cell.headline.comparison.pairs == 6
        assert cell.headline.comparison.missing[4] == "excluded for interference"
        for row in (*cell.rows, *cell.usage):
            assert all(4 not in side.values for side in row.sides.values())
        assert all(4 not in arm.side.values for arm in cell.arms)
        assert 4 not in cell.network_breakdown.blocks
    assert report.runs == {"ok": 42}  # the record has them as they are


@pytest.mark.parametrize(("excluded", "is_noisy"), [(20, False), (21, True)])
def test_more_than_a_fifth_of_the_blocks_excluded_is_a_noisy_host_and_undecided(excluded: int, is_noisy: bool) -> None:
    session, runs = made_up(cells=1, blocks=100, noise=0.005)
    report = analysis.build(session, disturbed(runs, in_blocks(*range(1, excluded + 1)), stolen(0.03)))
    rows = [row.comparison for cell in report.cells for row in (*cell.rows, *cell.usage) if row.comparison]
    assert report.cells[0].headline.comparison.pairs == 100 - excluded
    if is_noisy:
        assert {row.verdict for row in rows} == {"undecided"}
        assert all(row.why.startswith("noisy host: 21 of 100 blocks excluded for interference") for row in rows)
        assert {arm.verdict for cell in report.cells for arm in cell.arms} <= {"undecided", None}
    else:
        assert report.cells[0].headline.comparison.verdict == "slower"
        assert report.noise == ""


def test_where_every_block_is_excluded_values_are_shown_and_no_pair_is_made() -> None:
    session, runs = made_up(cells=1, blocks=2)
    report = analysis.build(session, disturbed(runs, lambda _run: True, stolen(0.5)))
    headline = report.cells[0].headline
    assert all(len(side.values) == 2 for side in headline.sides.values())
    assert (headline.comparison.pairs, headline.comparison.ratio, headline.comparison.verdict) == (0, None, "undecided")
    (only,) = report.answer
    assert only.startswith("Multi beside single: undecided, noisy host: 2 of 2 blocks excluded")


def test_who_allows_noise_gets_the_verdicts_and_is_told_which_blocks_they_rest_on() -> None:
    session, runs = made_up(cells=1, blocks=8)
    noisy = disturbed(runs, in_blocks(1, 2, 3), stolen(0.03))
    report = analysis.build(replace(session, allow_noise=True), noisy)
    assert (report.cells[0].headline.comparison.pairs, report.cells[0].headline.comparison.verdict) == (8, "slower")
    (caveat,) = [caveat for caveat in report.caveats if "--allow-noise" in caveat.text]
    assert caveat.severity == "weakens"
    assert caveat.text.startswith("3 of 8 blocks would be excluded")
    assert analysis.build(session, noisy).cells[0].headline.comparison.verdict == "undecided"


def test_a_sound_session_loses_no_block_and_says_nothing_of_noise() -> None:
    session, runs = made_up()
    report = analysis.build(session, runs)
    assert (report.excluded_blocks, report.noise) == ({}, "")
    assert not [caveat for caveat in report.caveats if "excluded" in caveat.text or "disturbed" in caveat.text]


@given(
    factor=st.floats(0.001, 1000),
    work=st.floats(0, 1e9),
    steal=st.floats(0, 0.1),
    blocks=st.sets(st.integers(1, 4)),
)
@settings(max_examples=25)
def test_the_exclusion_does_not_depend_on_any_result(
    factor: float, work: float, steal: float, blocks: set[int]
) -> None:
    _, runs = made_up(cells=1, blocks=4)
    runs = disturbed(runs, in_blocks(*blocks), stolen(steal))
    other = [
        replace(
            run,
            samples=tuple(replace(s, value=None if s.value is None else s.value * factor) for s in run.samples),
            usage=tuple(replace(row, work=work) for row in run.usage),
            digests={},
        )
        for run in runs
    ]
    assert judged(runs) == judged(other)
    assert bool(judged(runs).reasons) == (bool(blocks) and steal > exclusions.MOST_STEAL)


def test_what_the_exclusion_is_given_has_no_place_for_a_result() -> None:
    assert {field.name for field in fields(Conditions)} == {
        *("block", "where", "watched_seconds", "cpus", "is_limited", "steal_seconds", "throttled_periods"),
        *("pressure_cpu_seconds", "host_busy_seconds", "own_cpu_seconds", "swapped_bytes"),
        "run_queue_wait_seconds",
    }


def test_the_quiet_check_of_a_session_are_counted_by_block() -> None:
    _, runs = made_up(cells=2, blocks=3)
    quiet = QuietCheck(is_quiet=True, waited_seconds=4.0, busy=0.02, pressure=0.0, boot_id="boot-1")
    busy = replace(quiet, is_quiet=False, waited_seconds=60.0, busy=0.4)
    timed = [each for those in exclusions.conditions(Table(runs)) for each in those]
    found = exclusions.quiet_checks(
        Table([replace(run, quiet_check=busy if run.spec.block == 2 else quiet) for run in runs]), timed
    )
    assert found is not None
    assert (found.quiet, found.busy, found.waited_seconds, found.elsewhere) == (2, {2: 0.4}, 68.0, False)
    assert found.others_cpus_idle == pytest.approx(0.02 / 2.02)
    assert found.others_cpus == pytest.approx(0.02 / 0.52)
    assert found.deployment_cpus is None
    assert exclusions.quiet_checks(Table(runs), ()) is None
    known = [
        replace(run, quiet_check=quiet, idle_load=IdleLoad(cpus=0.1 * run.spec.block, ray_cpus=1.0)) for run in runs
    ]
    with_load = exclusions.quiet_checks(Table(known), timed)
    assert with_load is not None
    assert with_load.deployment_cpus == pytest.approx(0.3)
    away = exclusions.quiet_checks(
        Table([replace(run, quiet_check=replace(busy, boot_id="of a laptop")) for run in runs]), ()
    )
    assert away is not None
    assert away.elsewhere
