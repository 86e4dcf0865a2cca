"""What a run needs is asked for before anything starts, and with the command to type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes import FakeHead, Heard, a_fake_target
from made_sets import a_seeded_mnist

from bench.errors import DataMissing, DoesNotFit
from bench.planning import plan
from bench.planning.plan import Wish
from bench.sessions import store
from bench.sessions.session import Stop, perform, remaining


def a_wish(*sets: str, topology: str = "both") -> Wish:
    return Wish(experiments=("tune",), sets=sets, topology=topology, cpus=2, blocks=1)


def test_a_run_of_a_set_that_is_not_seeded_is_not_even_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYMETER_DATA", str(tmp_path / "none"))
    with pytest.raises(DataMissing, match="Type: bench data seed mnist PATH"):
        plan.make(a_wish("data=mnist"))
    assert plan.make(a_wish("data=synthetic")).specs


def test_a_trial_that_is_larger_than_a_node_is_refused_with_the_numbers() -> None:
    with pytest.raises(DoesNotFit, match="needs 2 CPUs on one node, and a node of multi has 1"):
        plan.make(a_wish("cpus_per_trial=2"))
    assert plan.make(a_wish("cpus_per_trial=2", topology="single")).specs


def test_a_seeded_set_is_on_the_head_before_its_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_seeded_mnist(tmp_path, monkeypatch)
    session = plan.make(a_wish("data=mnist", topology="single"))
    folder = store.create(tmp_path / "out", session)
    records = tmp_path / "records"
    records.mkdir()
    head = FakeHead(records)
    with a_fake_target(head, session.specs[0].topology) as target:
        perform(folder, session, remaining(folder, session).todo, target=target, listener=Heard(), stop=Stop())
    assert (records / "data" / path.name).read_bytes() == path.read_bytes()
    assert head.accepted
    path.unlink()
    again = replace(session.specs[0], attempt=2)
    with a_fake_target(head, again.topology) as target:
        heard = Heard()
        perform(folder, session, (again,), target=target, listener=heard, stop=Stop())
    assert heard.ended == [(again.folder, "failed")]
    assert "bench data seed mnist PATH" in store.load_run(folder, again).reasons[0]
