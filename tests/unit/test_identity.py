"""A session says from which revision of a checkout it was planned, and whether that had changes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up

from bench import analysis, identity
from bench.analysis.two_sessions import Stored, compare
from bench.options import RunRequest
from bench.planning import plan


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "one.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    monkeypatch.setattr(identity, "SOURCE", tmp_path / "bench")
    identity.revision.cache_clear()
    return tmp_path


def test_a_session_has_the_revision_and_whether_there_were_changes(a_checkout: Path) -> None:
    revision = git(a_checkout, "rev-parse", "HEAD")
    assert plan.make(RunRequest(experiments=("inference",), cpus=2)).revision == revision[:12]
    (a_checkout / "bench" / "two.py").write_text("")
    identity.revision.cache_clear()
    assert plan.make(RunRequest(experiments=("inference",), cpus=2)).revision == f"{revision[:12]} with changes"
    identity.revision.cache_clear()


def test_outside_a_checkout_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SOURCE", tmp_path / "bench")
    identity.revision.cache_clear()
    assert identity.revision() == (None, None)
    assert identity.describe_revision() == ""
    identity.revision.cache_clear()


def test_the_report_says_it_and_two_sessions_name_another_one_without_a_refusal() -> None:
    session, runs = made_up(cells=1)
    one, other = (replace(session, id=name, revision=name) for name in ("abc", "def with changes"))
    assert analysis.build(other, runs).versions["revision"] == "def with changes"
    found = compare(Stored(session=one, runs=runs), Stored(session=other, runs=runs))
    (difference,) = (each for each in found.differences if each.what == "revision")
    assert (difference.text, difference.confounds) == ("revision: abc, then def with changes", False)
