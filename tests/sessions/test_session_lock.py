"""One session at a time has an appliance, and ends with its process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_session

from bench.errors import BadInput, DoesNotFit
from bench.sessions import session_lock

HOLDS = """
import sys, time
sys.path.insert(0, {tests!r})
from builders import a_session
from bench.sessions import session_lock
with session_lock.alone(a_session()):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_second_session_on_an_appliance_is_refused_and_one_on_another_is_not() -> None:
    session = a_session()
    with session_lock.alone(session):
        with (
            pytest.raises(DoesNotFit, match="Another session is running"),
            session_lock.alone(replace(session, id="b")),
        ):
            pass
        with session_lock.alone(replace(session, id="b", options={"name": "other"})):
            pass


def test_a_session_that_is_at_rest_cannot_be_begun() -> None:
    session = a_session()
    with session_lock.at_rest(session), pytest.raises(DoesNotFit), session_lock.alone(session):
        pass
    with session_lock.alone(session):
        pass


def test_who_has_not_said_its_name_yet_may_be_this_session(tmp_path: Path) -> None:
    session = a_session()
    with session_lock.alone(session):
        (named,) = tmp_path.rglob("*.session")
        named.unlink()
        with pytest.raises(BadInput, match="is running"), session_lock.at_rest(session):
            pass


def test_a_process_that_was_killed_holds_nothing() -> None:
    session = a_session()
    words = [sys.executable, "-c", HOLDS.format(tests=str(Path(__file__).parents[1]))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BadInput, match=f"{session.id} is running"), session_lock.at_rest(session):
            pass
        with session_lock.at_rest(replace(session, id="another")):
            pass
        process.kill()
    with session_lock.at_rest(session):
        pass
