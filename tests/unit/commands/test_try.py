"""`bench try` runs an experiment once, prints its samples, and names what a run would be invalid for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import Typed, typist

from bench import experiments

MODULE = '''"""Adding: a sum in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from bench.experiments import Experiment, Profile
from bench.metrics import rate, seconds
from bench.model import Arm

RATE = rate("numbers_per_second", "numbers/s")
SECONDS = seconds("sum_seconds")
ARMS = (Arm(name="python", help="Of Python.", role="subject"),)


@dataclass(frozen=True, kw_only=True)
class Params:
    numbers: Annotated[int, Meta(ge=1)] = 100


def run(params, context):
    (node,) = context.nodes
    for turn in context.turns():
        timed = turn.measure(ARMS[0], lambda: sum(range(params.numbers)), lambda _: {node.name: params.numbers})
        yield timed.sample(RATE, len(timed.results) * params.numbers / timed.interval.seconds)
        yield timed.sample(SECONDS, timed.interval.seconds)


EXPERIMENT = Experiment(
    metrics=(RATE, SECONDS),
    arms=ARMS,
    params=Params,
    profiles={
        "tiny": Profile(
            help="A few.", grids=({"numbers": (10, 20)},), blocks=1, warmups=1, samples=3, sample_seconds=0.1
        )
    },
    guess_pass_seconds=lambda params: {ARMS[0].name: (0.001,)},
    run=run,
)
'''


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    return typist(capsys, monkeypatch, tmp_path)


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of an experiment that needs no Ray, under the name core-rates."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(experiments._MODULES, "core-rates", "adding")
    monkeypatch.delitem(sys.modules, "adding", raising=False)
    path = tmp_path / "adding.py"
    path.write_text(MODULE)
    return path


def test_the_samples_of_one_turn_are_printed_with_unit_and_arm_and_the_credited_work(
    bench: Typed, adding: Path
) -> None:
    code, out, err = bench("try", "core-rates", "--set", "numbers=1000")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "core-rates numbers=1000"
    rate, seconds = (line.split() for line in lines[3:5])
    assert rate[:3] == ["1", "python", "numbers_per_second"]
    assert rate[-1] == "numbers/s"
    assert seconds[:3] == ["1", "python", "sum_seconds"]
    assert seconds[-1].endswith("s")
    assert "  python: head 1,000" in lines


def test_an_experiment_that_needs_no_ray_starts_none(
    bench: Typed, adding: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(ray, "init", lambda *_, **__: pytest.fail("Ray was started"))
    assert bench("try", "core-rates")[0] == 0


def test_as_json_each_sample_is_whole(bench: Typed, adding: Path) -> None:
    answer = json.loads(bench("try", "core-rates", "--samples", "2", "--json")[1])
    assert answer["schema"] == "raymeter.try"
    samples = answer["data"]["samples"]
    assert [(each["turn"], each["metric"]) for each in samples] == [
        (turn, metric) for turn in (1, 2) for metric in ("numbers_per_second", "sum_seconds")
    ]
    assert answer["data"]["work"] == {"python": {"head": 20.0}}
    assert answer["data"]["spec"]["params"] == {"numbers": 10}


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        (
            "{node.name: params.numbers}",
            "{node.name: 1}",
            "python: its nodes were credited with 10.0% of the work that",
        ),
        ("{node.name: params.numbers}", "{}", "no node was credited with any work"),
        (
            "{node.name: params.numbers}",
            "{'hed': params.numbers}",
            "work was credited to 'hed', and the nodes are head",
        ),
        ("metrics=(RATE, SECONDS)", "metrics=(RATE,)", "does not declare the metrics sum_seconds"),
        (
            "metrics=(RATE, SECONDS)",
            "metrics=(seconds('other_seconds'), RATE, SECONDS)",
            "no sample has a value of the",
        ),
        ("timed.sample(SECONDS, ", "timed.sample(rate('sum_seconds', 'B/s'), ", "has the unit 'B/s', and the metric"),
        ("(node,) =", "context.invalid('a sum was wrong'); (node,) =", "a sum was wrong"),
        (
            "lambda: sum(range(params.numbers))",
            "lambda: iter(())",
            "Python: the measured work returned values that are",
        ),
    ],
)
def test_what_makes_a_run_invalid_is_one_line_and_exit_code_7(
    bench: Typed, adding: Path, right: str, wrong: str, reason: str
) -> None:
    assert MODULE.count(right) == 1
    adding.write_text(MODULE.replace(right, wrong))
    code, _, err = bench("try", "core-rates")
    assert code == 7
    assert reason in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            "numbers: Annotated[int, Meta(ge=1)]",
            "numbers: int",
            "adding.py, line 21: params must be a frozen dataclass: Params.numbers must be Annotated[type, Meta(...)]",
        ),
        (
            "numbers: Annotated[int, Meta(ge=1)]",
            "numbers",
            "adding.py, line 21: params must be a frozen dataclass: Params.numbers must be Annotated[type, Meta(...)]",
        ),
        (
            "Meta(ge=1)]",
            "'one']",
            "adding.py, line 21: params must be a frozen dataclass: Params.numbers must be Annotated[type, Meta(...)]",
        ),
        (
            "@dataclass(frozen=True, kw_only=True)\n",
            "",
            "adding.py, line 19: params must be a frozen dataclass: write @dataclass(frozen=True, kw_only=True) above the class",
        ),
        ("from msgspec import Meta\n", "", "name 'Meta' is not defined"),
        (
            "from bench.metrics import rate, seconds",
            "from bench.metrics import rat, seconds",
            "cannot import name 'rat'",
        ),
        ('rate("numbers_per_second", "numbers/s")', 'rate("numbers_per_second", "numbers")', "must match"),
        ('rate("numbers_per_second", "numbers/s")', "{}['rate']", "adding.py, line 14: KeyError: 'rate'."),
        ("(node,) =", "(node =", "adding.py, line 25: '(' was never closed"),
        ("(node,) =", "node.name =", "The experiment raised NameError: name 'node' is not defined"),
        ("EXPERIMENT = ", "EXPERIMENTS = ", "must declare EXPERIMENT = Experiment(...)"),
    ],
)
def test_a_mistake_in_the_module_is_one_line(bench: Typed, adding: Path, right: str, wrong: str, message: str) -> None:
    assert MODULE.count(right) == 1
    adding.write_text(MODULE.replace(right, wrong))
    code, out, err = bench("try", "core-rates")
    assert (code, out) == (6 if "raised" in message else 2, "")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
