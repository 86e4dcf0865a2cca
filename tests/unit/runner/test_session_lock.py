"""One process at a time holds a deployment, says who it is, and holds it no longer than it lives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from builders import a_session
from repository import SUPPORT

from bench.errors import BadInput, DoesNotFit
from bench.model import Session
from bench.runner import session_lock

HOLDS = """
import sys, time
from pathlib import Path
sys.path.insert(0, {support!r})
from builders import a_session
from bench.runner import session_lock
with session_lock.alone(a_session(), Path("results/s1"), "bench run inference"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session_lock, "PATIENCE_SECONDS", 0.1)


def held(session: Session) -> AbstractContextManager[None]:
    return session_lock.alone(session, Path("results") / session.id, f"bench resume {session.id}")


@contextmanager
def another_process() -> Iterator[subprocess.Popen[str]]:
    """Runs session s1, until it is killed."""
    words = [sys.executable, "-c", HOLDS.format(support=str(SUPPORT))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_session_on_a_deployment_is_refused_and_one_on_another_is_not() -> None:
    session = a_session()
    with held(session):
        with pytest.raises(DoesNotFit, match="is in use by session s1"), held(replace(session, id="b")):
            pass
        with held(replace(session, id="b", options={"name": "other"})):
            pass


def test_a_session_that_is_at_rest_cannot_be_begun() -> None:
    session = a_session()
    with session_lock.at_rest(session), pytest.raises(DoesNotFit), held(session):
        pass
    with held(session):
        pass


def test_who_has_not_said_its_name_yet_may_be_this_session(tmp_path: Path) -> None:
    session = a_session()
    with held(session):
        (named,) = tmp_path.rglob("*.session")
        for text in ("", "of another version"):
            named.write_text(text)
            with pytest.raises(BadInput, match="is running"), session_lock.at_rest(session):
                pass
        named.unlink()
        with pytest.raises(BadInput, match="is running"), session_lock.at_rest(session):
            pass
        assert session_lock.running() == {}


def test_a_deployment_that_a_session_runs_on_is_not_changed_and_who_runs_is_said() -> None:
    session = a_session()
    with another_process() as process:
        with (
            pytest.raises(
                DoesNotFit, match=rf"session s1, process {process.pid}, since 20.*: bench run inference\. .*--force"
            ),
            session_lock.changing("local", "raymeter", "bench down"),
        ):
            pass
        with (
            session_lock.changing("local", "other", "bench down"),
            session_lock.changing("k8s", "raymeter", "bench down"),
        ):
            pass
        with pytest.raises(BadInput, match=f"{session.id} is running"), session_lock.at_rest(session):
            pass
        with session_lock.at_rest(replace(session, id="another")):
            pass
        (running,) = session_lock.running().items()
        assert (running[0], running[1].pid) == (str(Path("results/s1").resolve()), process.pid)
    assert session_lock.running() == {}  # though its process was killed and left its name behind
    with session_lock.changing("local", "raymeter", "bench down"):
        with pytest.raises(DoesNotFit, match=r"in use by process .*: bench down"), held(session):
            pass
        assert session_lock.running() == {}
    with session_lock.at_rest(session):
        pass


def test_a_holder_without_a_command_is_described_without_one() -> None:
    session = a_session()
    with (
        session_lock.alone(session, Path("results/s1"), ""),
        pytest.raises(DoesNotFit) as refused,
        held(replace(session, id="b")),
    ):
        pass
    assert f"session {session.id}, process {os.getpid()}, since 2" in refused.value.what
    assert ": ." not in str(refused.value)
    assert re.search(r"since [\d:T+-]+\. Wait for it", str(refused.value))
