"""Searches on a real Ray: every trial once, and the same result by every arm."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tune_trials import TRAINING, a_trial

from bench.data import images
from bench.errors import BadInput
from bench.experiments import tune
from bench.experiments.tune import Params, arms, search
from bench.experiments.tune.actor import trainable
from bench.experiments.tune.storage import storage
from bench.model import Sample
from bench.record.store import DONE

SMALL = {"trials": 3, "hidden_below": 48, "iteration_samples": 2_000, "max_iterations": 4, "target_accuracy": 0.8}


def values(samples: Sequence[Sample], metric: str, arm: str = "ray", point: str = "") -> list[float | None]:
    return [s.value for s in samples if (s.metric, s.arm, s.point) == (metric, arm, point)]


@pytest.mark.parametrize(("seconds", "said"), [(0.0, [1, 1, 1]), (1.5, [2, 1]), (9.0, [3])])
def test_a_trial_says_what_it_did_in_so_many_seconds_and_no_later_than_it_is_done(
    seconds: float, said: list[int], local_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = iter(a_trial(0, 0.5, 0.6, 0.95).reports)
    training = SimpleNamespace(iterate=lambda: next(reports), is_done=lambda report: report.iteration == 3)
    actor = object.__new__(trainable())
    actor.setup({"lr": 0.1, "momentum": 0.5, "hidden": 32}, [], TRAINING, seconds, is_empty=False)
    monkeypatch.setattr(actor, "begun", lambda: training)
    results = [actor.step() for _ in said]
    assert [len(result["reports"]) for result in results] == said
    assert [result["done"] for result in results] == [False] * (len(said) - 1) + [True]
    assert results[-1]["accuracy"] == 0.95


def test_a_folder_that_nodes_do_not_share_is_refused_and_a_shared_one_is_left_clean(
    context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with storage(str(tmp_path), context.nodes, is_shared=True) as folder:
        assert list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(Path, "is_file", lambda _: False)  # what a worker wrote is not to be seen here
    with (
        pytest.raises(BadInput, match=r"what head writes into .* is not there"),
        storage(str(tmp_path), context.nodes, is_shared=True),
    ):
        pass


def done_numbers(path: Path) -> list[int]:
    """The trials in a journal."""
    return [json.loads(line.split(" ", 1)[1])["item"]["number"] for line in path.read_text().splitlines()]


@pytest.mark.timeout(280)
def test_every_arm_does_every_trial_to_the_same_end_and_a_second_attempt_only_what_is_missing(
    context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = Params(**SMALL)  # type: ignore[arg-type]
    context.passes = 1
    samples = list(tune.run(params, context))
    assert not context.is_invalid, context.reasons
    assert context.sets == {
        "mnist-small": images.checksum("mnist-small", context.seed)
    }  # else other data could be beside it
    (results,) = [digests for name, digests in context.digests.items() if "what came of" in name]
    assert len(results) == 1
    for arm in ("ray", "empty-trials", "sequential", "pool"):
        (seconds,) = values(samples, "search_seconds", arm)
        assert 0 < (seconds or 0) < 250
    (overhead,) = values(samples, "overhead_per_trial_seconds", "empty-trials")
    assert (overhead or 0) > 0
    curves = [(s.point, s.step) for s in context.recorded if s.metric == "training_accuracy"]
    assert {point for point, _ in curves} == {"trial-00", "trial-01", "trial-02"}
    assert all(1 <= (step or 0) <= 4 for _, step in curves)
    assert context.steps[-1] == (3, 3)

    path, earlier = context.folder / DONE, tmp_path / "earlier.jsonl"
    lines = path.read_text().splitlines()
    numbers = done_numbers(path)
    assert sorted(numbers) == [0, 1, 2]
    earlier.write_text(lines[0] + "\n" + lines[1] + "\n")
    context.earlier = [earlier]
    path.unlink()
    monkeypatch.setattr(arms, "ARMS", (arms.RAY,))
    again = list(tune.run(params, context))
    assert done_numbers(path) == sorted({0, 1, 2} - set(numbers[:2]))
    assert values(again, "search_seconds") == [None]
    assert len([s for s in again if s.metric == "trial_seconds" and s.point]) == 3
    assert not context.is_invalid, context.reasons  # and all came to the same as before


@pytest.mark.timeout(280)
@pytest.mark.parametrize("how", [{"scheduler": "asha"}, {"scheduler": "pbt"}, {"search": "optuna"}])
def test_other_searches_and_schedulers_do_as_many_trials(context: Any, how: dict[str, Any], monkeypatch: Any) -> None:
    monkeypatch.setattr(arms, "ARMS", (arms.POOL, arms.RAY) if "search" in how else (arms.RAY,))
    context.passes = 1
    samples = list(tune.run(Params(**{**SMALL, **how}), context))
    assert not context.is_invalid, context.reasons
    if "search" in how:  # the pool does what was chosen, to the same end
        (ends,) = [found for name, found in context.digests.items() if "what came of trials" in name]
        assert len(ends) == 1
        assert values(samples, "search_seconds", "pool") != []
    (seconds,) = values(samples, "search_seconds")
    assert math.isfinite(seconds or math.inf)
    assert len({s.point for s in samples if s.metric == "trial_seconds" and s.point}) == 3


@pytest.mark.timeout(280)
@pytest.mark.parametrize("moment", ["in the midst of a trial", "while another trial hands it on"])
def test_a_trial_whose_process_is_killed_is_done_again_counted_and_makes_the_run_invalid(
    context: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moment: str
) -> None:
    killed = tmp_path / "killed"

    def mortal() -> Any:
        class Mortal(trainable()):  # type: ignore[misc]
            def step(self) -> dict[str, Any]:
                said: dict[str, Any] = super().step()
                self.die("in the midst of a trial")
                return said

            def reset_config(self, new_config: dict[str, Any]) -> bool:
                if hasattr(self, "_config"):
                    self.die("while another trial hands it on")
                return bool(super().reset_config(new_config))

            def die(self, now: str) -> None:
                if now == moment:
                    with suppress(FileExistsError):
                        killed.touch(exist_ok=False)  # one process alone does
                        os.kill(os.getpid(), signal.SIGKILL)

        return Mortal

    monkeypatch.setattr(search, "trainable", mortal)
    monkeypatch.setattr(arms, "ARMS", (arms.RAY,))
    context.passes = 1
    samples = list(tune.run(Params(**SMALL), context))  # type: ignore[arg-type]
    assert killed.exists()
    assert values(samples, "trial_failures") == [1]
    assert len({s.point for s in samples if s.metric == "trial_seconds" and s.point}) == 3
    assert any("1 times a trial lost its actor" in reason for reason in context.reasons)
