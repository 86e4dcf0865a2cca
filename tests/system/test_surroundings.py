"""In whatever surroundings a command is started: no trace, its own exit code, and the answer of plain surroundings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import readme
from made_up_sessions import a_session_on_disk
from recording_proxy import recording_proxy
from surroundings import BENCH, SURROUNDINGS, WORST, Ended, Surroundings, give_to_user, plain_environment, run

PLAIN = Surroundings(name="plain")
COMMANDS = (
    ("report", "latest"),
    ("plan", "inference", "--topology", "single", "--cpus", "1", "--target", "local", "--save", "plan.toml"),
)
# What stands a cluster up is typed by the test below, and what ends one may not meet it.
STANDING_UP = ("bench run", "bench up", "bench down")
# What needs the checkout, a second session of the line before, or Kubernetes.
NEEDING_MORE = ("examples/", "bench compare", "bench manifest")
IN_PARALLEL = 2
NAME = "hostile"
A_CPU = ("--target", "local", "--topology", "single", "--cpus", "1", "--name", NAME)
INFERENCE = ("actors=1", "batch=1000", "inputs=2000", "data_path=by-value", "open_loop_seconds=0.1")
A_RUN = ("inference", "--blocks", "1", *(word for setting in INFERENCE for word in ("--set", setting)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder with one session in it."""
    made = tmp_path_factory.mktemp("hostile")
    for each in made.parents[:2]:
        each.chmod(0o755)  # pytest's own are for root alone
    (made / "home").mkdir()
    a_session_on_disk(made / "results", cells=2)  # pages ask what the change between them brought
    give_to_user(made)
    return made


@pytest.fixture(scope="module")
def plain(folder: Path) -> dict[tuple[str, ...], Ended]:
    """What each command answers where nothing is odd."""
    return dict(zip(COMMANDS, typed(PLAIN, folder), strict=True))


def typed(surroundings: Surroundings, folder: Path) -> list[Ended]:
    def one(words: tuple[str, ...]) -> Ended:
        return run(surroundings, [BENCH, *words], folder=folder, environment=plain_environment(folder))

    with ThreadPoolExecutor(IN_PARALLEL) as pool:
        return list(pool.map(one, COMMANDS))


@pytest.mark.parametrize("surroundings", SURROUNDINGS, ids=str)
def test_a_command_does_in_bad_surroundings_what_it_does_in_good_ones(
    surroundings: Surroundings, folder: Path, plain: dict[tuple[str, ...], Ended]
) -> None:
    for words, found in zip(COMMANDS, typed(surroundings, folder), strict=True):
        expected = plain[words]
        assert not expected.fault
        assert not found.fault, words
        assert found.code in {expected.code, *surroundings.codes}, (words, found.err)
        if surroundings.prints_the_same and not surroundings.codes:
            assert found.out == expected.out, words


def documented() -> list[str]:
    """The commands of README and pages that need no cluster."""
    lines = (line.partition("  #")[0].strip().replace(".venv/bin/", "") for line in readme.executed())
    found = [line for line in lines if line.startswith("bench ")]
    return [line for line in found if not any(words in line for words in (*STANDING_UP, *NEEDING_MORE))]


def test_every_documented_command_works_in_the_worst_surroundings(folder: Path) -> None:
    assert len(documented()) > 15
    with recording_proxy() as proxy:
        environment = plain_environment(folder) | proxy.environment

        def one(command: str) -> Ended:
            return run(WORST, ["/bin/sh", "-c", command], folder=folder, environment=environment)

        with ThreadPoolExecutor(IN_PARALLEL) as pool:
            ended = dict(zip(documented(), pool.map(one, documented()), strict=True))
    assert {command: each.fault for command, each in ended.items() if each.fault} == {}
    # A machine may be unfit, or have too few CPUs: that is said in one line.
    assert {command for command, each in ended.items() if each.code} <= {"bench doctor"}
    assert proxy.received == []


@pytest.mark.ray
def test_a_cluster_with_a_token_works_in_the_worst_surroundings_and_the_token_stays_where_it_is(
    folder: Path, temporary: Path
) -> None:
    """An ordinary user without an account and without HOME, whose environment names a proxy for everything."""
    (folder / "home" / ".netrc").write_text("machine 127.0.0.2 login somebody password of-another-program\n")
    said: dict[str, Ended] = {}
    seen_in_commands: list[str] = []
    with recording_proxy() as proxy:
        environment = {**plain_environment(folder), **proxy.environment, "NETRC": str(folder / "home" / ".netrc")}
        environment |= {"TMPDIR": str(temporary)}
        give_to_user(folder)

        def bench(*words: str) -> Ended:
            found = run(WORST, [BENCH, *words], folder=folder, environment=environment, deadline_seconds=400)
            said[" ".join(words[:1])] = found
            return found

        try:
            up = bench("up", *A_CPU)
            assert up.code == 0, up.err
            (token_file,) = temporary.glob(f"raymeter-home-*/.local/state/raymeter/local/{NAME}/token")
            token = token_file.read_text().strip()
            assert len(token) == 64
            ran = bench("run", *A_RUN, *A_CPU)
            assert ran.code == 0, ran.err
            seen_in_commands += [line for line in every_command_line() if token in line]
            assert b"single is up" in bench("status", "--target", "local", "--name", NAME).out
            (token_again,) = {each.read_text().strip() for each in temporary.rglob(f"{NAME}/token")}
            everything = [*files(folder), *files(temporary)]
            token_lies_in = {path.name for path in everything if token_again.encode() in path.read_bytes()}
        finally:
            down = bench("down", "--target", "local", "--name", NAME)
    assert down.code == 0, down.err
    assert {name: each.fault for name, each in said.items() if each.fault} == {}
    assert token_lies_in == {"token"}
    assert seen_in_commands == []
    assert not any(secret.encode() in each.out + each.err for each in said.values() for secret in (token, token_again))
    assert proxy.received == []
    assert not list(temporary.glob("rm-*"))


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A short folder for temporary files: sockets of Ray lie in it."""
    with tempfile.TemporaryDirectory(prefix="rmh-", dir="/tmp") as made:
        give_to_user(Path(made))
        yield Path(made)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def every_command_line() -> list[str]:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_folder_whose_name_is_not_utf8_is_used_like_any_other(folder: Path) -> None:
    out = b"caf\xe9"
    shutil.copytree(folder / "results", folder / os.fsdecode(out))
    give_to_user(folder)
    environment = plain_environment(folder)

    def bench(*words: str | bytes) -> Ended:
        return run(PLAIN, [BENCH, *words, b"--out", out], folder=folder, environment=environment)

    planned = bench("plan", *A_RUN, *A_CPU, "--json")
    assert planned.code == 0, planned.err
    assert json.loads(planned.out)["data"]["session"]["command"].endswith(r"--out $'caf\xe9'")
    assert json.loads(bench("report", "--json").out)["schema"] == "raymeter.report"
    saved = bench("plan", *A_RUN, *A_CPU, "--save", "unsaved.toml")
    assert (saved.code, saved.fault) == (2, "")
    assert b"has bytes that are not UTF-8" in saved.err
    assert not (folder / "unsaved.toml").exists()


def test_python_without_docstrings_has_all_help_texts(folder: Path) -> None:
    optimizing = Surroundings(name="Python optimizes", environment={"PYTHONOPTIMIZE": "2"})
    for words in (("run", "--help"), ("list", "inference")):
        plain, found = (
            run(each, [BENCH, *words], folder=folder, environment=plain_environment(folder))
            for each in (PLAIN, optimizing)
        )
        assert found == plain
        assert len(plain.out) > 1000


def test_in_a_hook_of_another_repository_a_session_names_the_commit_of_raymeter(tmp_path: Path) -> None:
    def git(folder: Path, *words: str) -> str:
        command = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    if not (readme.ROOT / ".git").exists():
        pytest.skip("needs a checkout of raymeter")
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "another")
    hook = {"GIT_DIR": str(tmp_path / ".git"), "GIT_WORK_TREE": str(tmp_path), "GIT_INDEX_FILE": str(tmp_path / "i")}
    done = subprocess.run(
        [BENCH, "plan", *A_RUN, *A_CPU, "--json"],
        cwd=tmp_path,
        env={**plain_environment(tmp_path), **hook},
        capture_output=True,
        timeout=120,
        check=True,
    )
    revision = json.loads(done.stdout)["data"]["session"]["revision"]
    assert revision.removesuffix(" with changes") == git(readme.ROOT, "rev-parse", "HEAD")[:12]
