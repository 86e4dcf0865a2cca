"""Two sessions side by side: what must be equal, what is compared, and what becomes of an alarm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import ARMS, RATE, SINGLE, SessionShape, a_facts, made_up

from bench.analysis import two_sessions
from bench.analysis.two_sessions import Stored
from tests.unit.analysis.test_sweeps import OFFERED, RESPONSE, loaded

FEW = SessionShape(cells=2, blocks=8)


def a_session(name="s1", **changes):
    session, runs = made_up(FEW, **changes)
    return Stored(session=replace(session, id=name), runs=runs)


def with_facts(stored, **changes):
    runs = [replace(run, facts=a_facts(run.spec.topology, **changes)) for run in stored.runs]
    return replace(stored, runs=runs)


def with_run(stored, **changes):
    """Of the first run other Facts."""
    return replace(stored, runs=[replace(run, facts=replace(run.facts, **changes)) for run in stored.runs])


def test_equal_fingerprints_give_the_label_historical_and_a_row_for_each_topology_and_their_ratio():
    found = two_sessions.compare(a_session(), a_session("s2", seed=8))
    assert (found.label, found.confounders) == ("historical", ())
    assert [(row.cell, row.where) for row in found.rows] == [
        (cell, where) for cell in ("c01", "c02") for where in ("single", "multi", "multi/single")
    ]
    assert all(row.headline for row in found.rows)
    assert (found.baseline.session, found.candidate.session) == ("s1", "s2")
    assert [each.what for each in found.differences] == ["seed"]


def test_both_sessions_discard_the_turns_that_the_one_that_warms_up_longer_needs():
    there, here = (a_session(name, cells=1, samples=11, arms=ARMS[:2]) for name in ("s1", "s2"))
    slow = [0.6, 0.6, 0.6, 0.6, *[1.0] * 8]
    cold = replace(
        here,
        runs=[
            replace(
                run,
                samples=tuple(
                    replace(s, value=s.value * slow[s.turn - 1]) if (s.metric, s.arm) == (RATE.name, "ray") else s
                    for s in run.samples
                ),
            )
            for run in here.runs
        ],
    )
    for found in (two_sessions.compare(there, cold), two_sessions.compare(cold, there)):
        assert found.rows[0].found.ratio.value == pytest.approx(1.0, abs=1e-9)


def test_settings_of_the_machine_confound_where_both_records_have_them_and_earlier_records_have_none():
    there, here = a_session(), with_facts(a_session("s2"), settings={"clock source": "hpet"})
    assert two_sessions.compare(there, here).confounders == ()
    (found,) = two_sessions.compare(with_facts(there, settings={"clock source": "tsc"}), here).confounders
    assert found.text == "clock source: tsc, then hpet"


@pytest.mark.parametrize(("then", "now", "is_named"), [(False, True, True), (True, True, False), (None, True, False)])
def test_a_prometheus_beside_the_nodes_of_one_session_alone_is_a_caveat(then, now, is_named):
    sides = [
        replace(stored, runs=[replace(run, monitored=monitored) for run in stored.runs])
        for stored, monitored in ((a_session(), then), (a_session("s2"), now))
    ]
    found = two_sessions.compare(*sides)
    text = (
        "measured without Prometheus beside the nodes, then with it:"
        " it takes CPU time from nodes that share its machine"
    )
    assert [(each.severity, each.text) for each in found.caveats] == ([("weakens", text)] if is_named else [])
    assert found.confounders == ()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"kernel": "6.19"}, "kernel: 6.18, then 6.19"),
        ({"cpu_model": "Xeon"}, "CPU model: EPYC, then Xeon"),
        ({"code_hash": "fedc"}, "code: 0123456789abcdef, then fedc"),
        ({"image_digest": "sha256:1"}, "image: none, then sha256:1"),
        ({"versions": {"ray": "2.61.0"}}, "version of numpy: 2.4.6, then unset"),
        ({"ray_environment": {"RAY_X": "1"}}, "RAY_AUTH_MODE: token, then unset"),
        ({"threads": {"OMP_NUM_THREADS": "7"}}, "OMP_NUM_THREADS: 2, then 7"),
        ({"cpus_granted": 3}, "CPUs granted to a node: 2, then 3"),
        ({"cpu_quota": 1.5}, "CPU quota of a node: none, then 1.5"),
        ({"memory_limit_bytes": 2**31}, "memory: 4,294,967,296 bytes, then 2,147,483,648 bytes"),
        ({"memory_limit_bytes": None}, "memory: 4,294,967,296 bytes, then none"),
    ],
)
def test_one_changed_fact_of_a_node_is_named_and_confounds(changed, named):
    found = two_sessions.compare(a_session(), with_facts(a_session("s2"), **changed))
    assert named in [each.text for each in found.confounders]
    assert found.label == "unequal"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"link": "veth at 1gbit"}, "link: veth, then veth at 1gbit"),
        ({"data": {"digits": "beef"}}, "checksum of digits: feed, then beef"),
        ({"same_host": False}, "whether the nodes share a host: True, then False"),
        (
            {"ray_config": {"object_timeout_milliseconds": 9}},
            "Ray's setting object_timeout_milliseconds: 100, then 9",
        ),
    ],
)
def test_one_changed_fact_of_the_cluster_is_named_and_confounds(changed, named):
    found = two_sessions.compare(a_session(), with_run(a_session("s2"), **changed))
    assert [each.text for each in found.confounders] == [named]


def test_the_design_must_be_equal_too():
    other = a_session("s2")
    runs = [replace(run, spec=replace(run.spec, samples=9)) for run in other.runs]
    found = two_sessions.compare(a_session(), replace(other, runs=runs))
    assert [each.text for each in found.confounders] == ["samples: 3, then 9"]
    elsewhere = replace(other, session=replace(other.session, target="docker"))
    assert [e.what for e in two_sessions.compare(a_session(), elsewhere).confounders] == ["target"]


def test_a_larger_topology_of_the_same_name_is_no_equal():
    larger = replace(SINGLE, cpus_per_node=4)
    found = two_sessions.compare(a_session(topologies=(SINGLE,)), a_session("s2", topologies=(larger,)))
    assert "topology" in [each.what for each in found.confounders]


def test_a_reboot_and_memory_that_was_rounded_are_no_confounders():
    found = two_sessions.compare(a_session(), with_facts(a_session("s2"), boot_id="boot-2", object_store_bytes=2**30))
    assert "boot of the machine: boot-1, then boot-2" in [each.text for each in found.differences]
    assert [each.what for each in found.confounders] == ["object store"]
    almost = with_facts(a_session("s2", topologies=(SINGLE,)), object_store_bytes=2**30 - 4096)
    assert two_sessions.compare(a_session(topologies=(SINGLE,)), almost).confounders == ()


def test_runs_without_facts_cannot_be_compared():
    bare = replace(a_session("s2"), runs=[replace(run, facts=None) for run in a_session().runs])
    assert [each.what for each in two_sessions.compare(a_session(), bare).confounders] == ["facts"]


def test_a_slower_network_is_an_alarm_on_many_nodes_and_on_the_ratio_and_not_on_one_node():
    found = two_sessions.compare(a_session(), a_session("s2", seed=9, multi=0.6))
    alarms = {(row.cell, row.where): (row.found.verdict, row.stand) for row in found.alarms}
    slower = ("slower", "not confirmed")
    assert alarms == {(cell, where): slower for cell in ("c01", "c02") for where in ("multi", "multi/single")}
    back = two_sessions.compare(a_session("s2", seed=9, multi=0.6), a_session())
    for row, inverse in zip(found.rows, back.rows, strict=True):
        assert inverse.found.ratio.value == pytest.approx(1 / row.found.ratio.value)
    assert {row.found.verdict for row in back.alarms} == {"faster"}


def test_a_session_beside_itself_has_no_alarm_in_any_number():
    found = two_sessions.compare(a_session(), a_session(), everything=True)
    assert len(found.rows) > 20
    assert {row.found.verdict for row in found.rows if row.found.ratio} <= {"equivalent", "undecided"}
    assert found.alarms == ()


def test_everything_has_each_metric_and_what_was_used():
    names = {row.metric.name for row in two_sessions.compare(a_session(), a_session("s2"), everything=True).rows}
    assert {"throughput_inputs_per_second", "end_to_end_seconds", "latency_p50_seconds"} <= names
    assert any("cpu" in name for name in names)


def test_cells_are_found_by_their_params_and_those_of_one_session_alone_are_named():
    other = a_session("s2", cells=1)
    renamed = [replace(run, spec=replace(run.spec, cell="c07")) for run in other.runs]
    specs = tuple(replace(spec, cell="c07") for spec in other.session.specs)
    found = two_sessions.compare(a_session(), Stored(session=replace(other.session, specs=specs), runs=renamed))
    assert {row.cell for row in found.rows} == {"c07"}
    assert "only the baseline has inference c02" in [caveat.text for caveat in found.caveats]


def test_p_is_corrected_for_all_numbers_and_an_alarm_that_does_not_outlast_it_is_undecided():
    found = two_sessions.compare(a_session(), a_session("s2", seed=9), everything=True)
    assert found.adjustment.endswith(f"{sum(row.found.p is not None for row in found.rows)} comparisons")
    assert all(row.found.p_adjusted >= row.found.p for row in found.rows if row.found.p is not None)
    assert all(row.found.p_adjusted <= 0.05 for row in found.alarms)
    lone = [row for row in found.rows if "alone it would be" in row.found.why]
    assert lone
    assert {(row.found.verdict, row.stand) for row in lone} == {("undecided", "")}


def test_one_topology_alone_is_compared_with_itself():
    found = two_sessions.compare(a_session(topologies=(SINGLE,)), a_session("s2", topologies=(SINGLE,)))
    assert {row.where for row in found.rows} == {"single"}


def test_invalid_runs_are_left_out_and_counted():
    other = a_session("s2")
    bad = [replace(run, status="invalid", reasons=("lost",)) if run.spec.block == 1 else run for run in other.runs]
    found = two_sessions.compare(a_session(), replace(other, runs=bad))
    assert found.candidate.excluded == 4
    assert {row.found.candidate.n for row in found.rows} == {7}


def test_an_alarm_is_confirmed_only_by_a_fresh_session_that_says_the_same():
    base, slow = a_session(), a_session("s2", seed=9, multi=0.6)
    first = two_sessions.compare(base, slow)
    again = two_sessions.compare(base, a_session("s3", seed=11, multi=0.6), level=0.98)
    held = two_sessions.confirmed(first, again)
    assert held.confirmed_by == "s3"
    assert {(row.found.verdict, row.stand) for row in held.alarms} == {("slower", "confirmed")}
    assert len(held.alarms) == len(first.alarms)
    other = two_sessions.confirmed(first, two_sessions.compare(base, a_session("s4", seed=12), level=0.98))
    assert other.alarms == ()
    assert "it was slower, and the fresh session s4 says" in other.rows[1].found.why


def test_a_fresh_session_without_a_verdict_leaves_the_alarm_unconfirmed():
    base, slow = a_session(), a_session("s2", seed=9, multi=0.6)
    first = two_sessions.compare(base, slow)
    again = two_sessions.compare(base, a_session("s3", seed=9, multi=0.6, blocks=3), level=0.98)
    assert {row.stand for row in two_sessions.confirmed(first, again).alarms} == {"not confirmed"}


def under_load(name: str, *, calls_per_second: float, multi_share: float = 1.0) -> Stored:
    stored = a_session(name)
    metrics = (*stored.session.metrics["inference"], OFFERED, RESPONSE)
    runs = [loaded(run, multi_share=multi_share, calls_per_second=calls_per_second) for run in stored.runs]
    return Stored(session=replace(stored.session, metrics={"inference": metrics}), runs=runs)


@pytest.mark.parametrize(
    ("then", "now", "refused"),
    [
        ((100.0, 1.0), (100.0, 1.0), ()),
        ((100.0, 1.0), (70.0, 1.0), ("single", "multi")),
        ((100.0, 1.0), (100.0, 0.8), ("multi", "multi/single")),
    ],
)
def test_response_times_at_other_loads_get_no_verdict_between_sessions_either(then, now, refused):
    one, other = (
        under_load(name, calls_per_second=calls, multi_share=share)
        for name, (calls, share) in (("s1", then), ("s2", now))
    )
    rows = two_sessions.compare(one, other, everything=True).rows
    found = {row.where: row.found for row in rows if (row.cell, row.metric.name) == ("c01", RESPONSE.name)}
    assert set(found) == {"single", "multi", "multi/single"}
    assert {where for where, each in found.items() if each.verdict is None} == set(refused)
    assert all("unequal loads" in found[where].why for where in refused)
