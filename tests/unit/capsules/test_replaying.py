"""A capsule is done again as this raymeter does things, whatever it says; and the verdicts are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up

from bench import analysis
from bench.capsules import replaying
from bench.errors import BadInput, DoesNotFit
from bench.experiments import inference
from bench.model import Session, Value


def a_session(**params: Value) -> Session:
    session, _ = made_up(cells=1, blocks=1)
    full: dict[str, Value] = {"actors": 2, "batch": 10, **params}
    return replace(session, specs=tuple(replace(spec, params=full) for spec in session.specs))


def again(session: Session) -> Session:
    return replaying.again(session, target="local", options={"name": "mine"}, command="bench replay x")


def test_the_same_runs_are_done_in_the_same_order_as_a_session_of_its_own() -> None:
    session = a_session()
    found = again(session)
    assert [spec.id for spec in found.specs] == [spec.id for spec in session.specs]
    assert {spec.session for spec in found.specs} == {found.id} != {session.id}
    assert all(spec.params["batch"] == 10 for spec in found.specs)
    assert (found.target, found.command, found.seed) == ("local", "bench replay x", session.seed)
    assert found.metrics["inference"] == inference.METRICS


def test_options_of_a_capsule_are_not_taken_over() -> None:
    hostile = replace(a_session(), target="k8s", options={"load_with": "rm -rf /", "image": "evil", "name": "theirs"})
    assert again(hostile).options == {"name": "mine"}


@pytest.mark.parametrize("params", [{"batch": 0}, {"colour": "red"}, {"batch": "$(reboot)"}])
def test_params_that_the_experiment_does_not_declare_are_refused(params: dict[str, Value]) -> None:
    with pytest.raises(BadInput):
        again(a_session(**params))


def test_an_experiment_that_there_is_not_is_refused() -> None:
    session = a_session()
    other = tuple(replace(spec, experiment="os") for spec in session.specs)
    with pytest.raises(BadInput, match="os"):
        again(replace(session, specs=other))
    with pytest.raises(BadInput, match="nothing to do"):
        again(replace(session, specs=()))


def test_a_plan_of_other_code_that_does_not_fit_is_refused_before_a_cluster_is_made() -> None:
    specs = tuple(replace(spec, experiment="parameter-server", params={"workers": 8}) for spec in a_session().specs)
    with pytest.raises(DoesNotFit, match=r"workers=8 needs as many CPUs, and (single|multi) has 2"):
        again(replace(a_session(), specs=specs))


def test_what_a_capsule_says_of_rays_settings_is_not_taken_over() -> None:
    hostile = {"ray_settings": {"preload_python_modules": "evil"}, "faults": "head:1", "data_sets": ("../../etc",)}
    specs = tuple(replace(spec, **hostile) for spec in a_session().specs)
    for spec in again(replace(a_session(), specs=specs)).specs:
        assert (spec.ray_settings, spec.faults, spec.data_sets, spec.busy_workers) == ({}, "", (), 2)


def test_a_profiler_that_there_is_not_is_refused() -> None:
    specs = tuple(replace(spec, profile_with="../../etc") for spec in a_session().specs)
    with pytest.raises(BadInput, match="--profile-with"):
        again(replace(a_session(), specs=specs))


def test_verdicts_agree_where_both_have_the_same_one() -> None:
    there, same, other = (analysis.build(*made_up(cells=1, multi=multi)) for multi in (0.8, 0.82, 1.0))
    of_headline = "inference c01 throughput_inputs_per_second ray"
    found = {each.about: each for each in replaying.agreements(there, same)}
    assert (found[of_headline].there, found[of_headline].here, found[of_headline].agrees) == ("slower", "slower", True)
    found = {each.about: each for each in replaying.agreements(there, other)}
    assert found[of_headline].there == "slower"
    assert not found[of_headline].agrees


def test_a_session_is_reproduced_where_verdicts_agree_and_intervals_overlap() -> None:
    there, same, farther, slowed = (
        analysis.build(*made_up(cells=2, noise=0.01, multi=multi)) for multi in (0.8, 0.8, 0.5, 1.0)
    )
    assert replaying.is_reproduced(replaying.agreements(there, same))
    # Slower again, but by far more: the verdicts agree and the intervals do not.
    found = [each for each in replaying.agreements(there, farther) if each.headline]
    assert [(each.agrees, each.overlap) for each in found] == [(True, False)] * 2
    assert not replaying.is_reproduced(found)
    assert not replaying.is_reproduced(replaying.agreements(there, slowed))
    few = analysis.build(*made_up(cells=1, blocks=3))
    assert not replaying.is_reproduced(replaying.agreements(few, few))


def test_versions_that_changed_are_named() -> None:
    there = analysis.build(*made_up(cells=1, blocks=1))
    here = replace(there, versions={**there.versions, "ray": "2.61.0"})
    assert replaying.changed_versions(there, here) == ["ray: 2.60.0 there, 2.61.0 here"]
    assert replaying.changed_versions(there, there) == []


@pytest.mark.parametrize(
    ("reproduced", "has"),
    [
        ([True], False),
        ([True, True], False),
        ([True, True, True], True),
        ([True, False, True], False),
        ([True, True, True, False], False),
        ([], False),
    ],
)
def test_a_badge_takes_three_replays_of_three(reproduced: list[bool], has: bool) -> None:
    assert replaying.has_badge(reproduced) is has
