"""What steers raymeter from outside is taken out, and a home and a user are there."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from pathlib import Path

import pytest

from bench import process_environment
from bench.errors import CannotWrite
from bench.process_environment import settled


@pytest.fixture
def no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without an account; the folder for temporary files."""
    monkeypatch.setattr(process_environment, "_account", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_git_sets_for_a_hook_is_dropped() -> None:
    said = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True).stdout
    # Settings that a user gives by GIT_CONFIG_COUNT are for downloads too, as a proxy is.
    names = [*said.split(), "GIT_NAMESPACE"]
    kept = settled({"HOME": "/home/user", **dict.fromkeys(names, "x")})
    assert kept.keys() - {"HOME", "USER"} <= {"GIT_CONFIG_COUNT", "GIT_INTERNAL_SUPER_PREFIX"}


def test_what_a_users_own_tools_need_stays() -> None:
    given = {"HOME": "/home/user", "USER": "user", "HTTPS_PROXY": "http://proxy:3128", "GIT_SSH_COMMAND": "ssh -q",
             "KUBECONFIG": "/k", "PYTHONPATH": "/p", "XDG_STATE_HOME": "/state", "LC_ALL": "tr_TR.UTF-8"}  # fmt: skip
    assert settled(given) == given


def test_a_relative_folder_of_xdg_is_ignored_as_its_specification_asks() -> None:
    assert settled({"HOME": "/h", "USER": "u", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": ""}) == {
        "HOME": "/h",
        "USER": "u",
    }


@pytest.mark.parametrize("given", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_the_accounts_is_taken(given: dict[str, str]) -> None:
    assert settled(given)["HOME"] == pwd.getpwuid(os.getuid()).pw_dir


def test_a_user_without_an_account_and_a_home_gets_a_private_folder_and_a_name(no_account: Path) -> None:
    kept = settled({})
    home = no_account / f"raymeter-home-{os.getuid()}"
    assert kept == {"HOME": str(home), "USER": f"uid-{os.getuid()}"}
    assert home.stat().st_mode & 0o777 == 0o700
    assert settled({}) == kept
    assert settled({"HOME": "/h", "LOGNAME": "me"}) == {"HOME": "/h", "LOGNAME": "me"}


def test_a_folder_that_another_user_has_prepared_is_refused(no_account: Path) -> None:
    (no_account / "theirs").mkdir()
    (no_account / f"raymeter-home-{os.getuid()}").symlink_to(no_account / "theirs")
    with pytest.raises(CannotWrite, match="Set HOME to a folder that is yours"):
        settled({})
