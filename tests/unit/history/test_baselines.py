"""Names for sessions: kept beside them, whole or not at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from made_up_sessions import a_session_on_disk

from bench.errors import BadInput, RecordDamaged
from bench.history import baselines

FIRST, SECOND = "20260105-100000-inference-lab-0001", "20260206-100000-inference-lab-0002"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    a_session_on_disk(tmp_path, FIRST, blocks=1)
    a_session_on_disk(tmp_path, SECOND, blocks=1)
    return tmp_path


def test_a_name_stands_for_a_session_until_it_is_given_to_another(out: Path) -> None:
    assert baselines.put(out, "main", FIRST[:8]) == FIRST
    assert baselines.find(out, "main") == out / FIRST
    baselines.put(out, "v1.2", FIRST)
    assert baselines.put(out, "main", "latest") == SECOND
    assert baselines.known(out) == {"main": SECOND, "v1.2": FIRST}
    assert json.loads((out / baselines.FILE).read_text()) == baselines.known(out)


def test_what_is_no_name_is_a_session_as_everywhere(out: Path) -> None:
    assert baselines.find(out, "latest") == out / SECOND
    assert baselines.find(out, "20260105") == out / FIRST
    with pytest.raises(BadInput, match="no session main"):
        baselines.find(out, "main")


@pytest.mark.parametrize("name", ["latest", "2026", "a/b", "", "-x", "a b", "x" * 65])
def test_a_name_that_a_session_or_a_path_could_have_is_refused(out: Path, name: str) -> None:
    with pytest.raises(BadInput, match="cannot name a baseline"):
        baselines.put(out, name, FIRST)
    assert not (out / baselines.FILE).exists()


def test_a_session_elsewhere_is_refused(out: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = a_session_on_disk(tmp_path_factory.mktemp("elsewhere"), FIRST, blocks=1)
    with pytest.raises(BadInput, match="is not in"):
        baselines.put(out, "main", str(elsewhere))


def test_a_name_is_forgotten_and_the_session_stays(out: Path) -> None:
    baselines.put(out, "main", FIRST)
    baselines.remove(out, "main")
    assert baselines.known(out) == {}
    assert (out / FIRST / "session.json").is_file()
    with pytest.raises(BadInput, match="There are none"):
        baselines.remove(out, "main")


def test_a_baseline_whose_session_is_gone_says_so(out: Path) -> None:
    baselines.put(out, "main", FIRST)
    shutil.rmtree(out / FIRST)
    with pytest.raises(BadInput, match="bench baseline set main SESSION"):
        baselines.find(out, "main")


def test_a_damaged_file_is_damage_and_no_empty_list(out: Path) -> None:
    (out / baselines.FILE).write_text('{"main": 1}')
    with pytest.raises(RecordDamaged, match=baselines.FILE):
        baselines.known(out)
