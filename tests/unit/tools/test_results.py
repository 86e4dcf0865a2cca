"""The pages of docs/results say what their capsules say, and a sentence that the numbers contradict is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_changes import session_of

from bench import analysis
from bench.errors import BadInput
from tools import results
from tools.results import Result, Results

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def result() -> Result:
    """Batches bring 9.8 on one node and 12 on several, and several nodes do 0.9 of what one does unbatched."""
    cells = [
        ({"batch": 1, "actors": 1}, {"single": 10.0, "multi": 9.0}),
        ({"batch": 10, "actors": 1}, {"single": 98.0, "multi": 108.0}),
    ]
    return Result(name="made-up", file="made-up.capsule.zip", report=analysis.build(*session_of(cells, noise=0.001)))


def page(folder: Path, words: str, **named: Result) -> str:
    (folder / "page.md.jinja").write_text(words)
    (text,) = results.pages(folder, Results(named)).values()
    return text


def test_a_page_has_factors_values_and_shares_of_the_record_in_its_sentences(result: Result, tmp_path: Path) -> None:
    words = """{% set made = results["made"] %}
{{ made.change("batch", "single", "faster") }}; {{ made.several("slower", batch=1) }}; {{ made.interaction("batch", "faster") }}; {{ made.value("multi", batch=10) }}
"""
    factor, several, interaction, value = page(tmp_path, words, made=result).split("; ")
    assert float(factor.split()[0]) == pytest.approx(9.8, rel=0.01)
    assert float(several.split()[0]) == pytest.approx(0.9, rel=0.01)
    assert float(interaction.split()[0]) == pytest.approx(12 / 9.8, rel=0.01)
    assert "[" in value


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (
            lambda made: made.change("batch", "single", "slower"),
            "batch 1 -> 10 on single is faster, and the page says slower",
        ),
        (lambda made: made.several("faster", batch=1), "is slower, and the page says faster"),
        (lambda made: made.change("actors", "single", "faster"), "no change of actors"),
        (lambda made: made.change("batch", "several", "faster"), "a change of batch on several"),
        (lambda made: made.several("slower", actors=1), "several cell with"),
        (lambda made: made.value("single", "no_such_metric", batch=1), "no metric no_such_metric"),
        (lambda made: made.share("nobody", "single", "faster", batch=1), "arm nobody on single"),
    ],
)
def test_what_the_record_does_not_say_is_refused(result: Result, ask: Callable[[Result], str], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        ask(result)


def test_a_page_that_asks_for_a_capsule_that_is_not_there_is_refused(result: Result, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no capsule maid\. Did you mean made"):
        page(tmp_path, '{{ results["maid"].answer }}', made=result)


def test_every_number_that_is_published_follows_from_the_samples_of_its_capsule() -> None:
    folder = ROOT / results.FOLDER
    found = results.read(folder)  # which computes every report again, and compares each number
    assert found
    for path, text in results.pages(folder, found).items():
        assert path.read_text() == text, f"{path} is not what `task results` writes"
