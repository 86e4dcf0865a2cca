"""The command line: what a person types, sees and gets as an exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from builders import a_sample, a_session, a_spec, a_topology
from command_line import Typed, typist
from fakes import FakeHead, FakeTarget, a_fake_target, good_driver
from filelock import FileLock
from made_up import a_facts

from bench import cli, experiments, identity, targets
from bench.cluster.recorder import Recorder
from bench.commands import run
from bench.errors import TargetFailed
from bench.experiments import network
from bench.model import Spec
from bench.options import RunRequest
from bench.planning import plan
from bench.record import store
from bench.runner import run as run_module
from bench.runner import session_lock
from bench.targets import Choice, Cluster, Options, local


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    """Type a command; get its exit code, stdout and stderr."""
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)

    return typist(capsys, monkeypatch, tmp_path)


@pytest.fixture
def head(tmp_path: Path) -> FakeHead:
    (tmp_path / "records").mkdir()
    return FakeHead(tmp_path / "records")


@pytest.fixture
def target(head: FakeHead, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTarget]:
    with a_fake_target(head, a_topology()) as fake:
        choice = Choice(target=fake, options=Options(), reason="it is a fake")
        monkeypatch.setattr(run, "choose", lambda name, options: choice)
        monkeypatch.setattr("bench.commands.resume.create", lambda name, options: fake)
        yield fake


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "inferense"], 2, "Choose from: inference"),
        (["run", "inference", "--profile", "huge"], 2, "Choose from: tiny"),
        (["run", "inference", "--set", "actors=0"], 2, "actors must be an integer from 1 to 1000, got '0'."),
        (["run", "inference", "--set", "colour=red"], 2, "Choose from: actors"),
        (["run", "inference", "--topology", "ring"], 2, "both, single, multi"),
        (["run", "inference", "--cpus", "4096"], 3, "4096"),
        (["run", "inference", "--target", "moon"], 2, "--target must be one of auto, local, docker, k8s, got 'moon'."),
        (["run", "inference", "--isolation", "air"], 2, "auto, namespace, loopback"),
        (["run", "inference", "--target", "local", "--link-rate", "fast"], 2, "fast"),
        (["run", "inference", "--target", "local", "--dev"], 2, "The target local does not take --dev."),
        (["run", "inference", "--out", "/proc/none"], 10, "--out"),
        (["plan", "inference", "--blocks", "0"], 2, "at least 1"),
        (["report", "nothing"], 2, "no session nothing"),
        (["resume", "latest"], 2, "no session latest"),
        (["show", "latest"], 2, "no session latest"),
        (["list", "everything"], 2, "experiments, sessions, targets"),
        (["report"], 2, "There is no session latest in results, nor any other. Measure one with `bench run`"),
        (["up", "--topology", "both"], 2, "Use single or multi"),
        (["up", "--name", "No Name"], 2, "not a valid deployment name"),
        (["plan", "inference", "--blocks", "1000000000"], 2, "the limit is 50,000"),
        (["list", "sessions", "--out", "TYPO"], 2, "--out TYPO: it does not exist. Name the folder that has"),
        (["list", "sessions", "--out", "/dev/null"], 2, "--out /dev/null: it is no folder"),
        (["history", "throughput_inputs_per_second", "--out", "TYPO"], 2, "--out TYPO: it does not exist"),
        (["report", "--out", "TYPO"], 2, "--out TYPO: it does not exist"),
        (["baseline", "list", "--out", "TYPO"], 2, "--out TYPO: it does not exist"),
        (["list", "sessions", "--out", ""], 2, "Invalid value for '--out': it must be a path, got ''. See `bench list"),
        (["plan", "inference", "--out", " "], 2, "Invalid value for '--out': it must be a path, got ' '."),
        (["plan", "inference", "--save", ""], 2, "Invalid value for '--save': it must be a path, got ''."),
        (["plan", "--plan", ""], 2, "Invalid value for '--plan': it must be a path, got ''."),
        (["verify", ""], 2, "it must be a path, got ''."),
        (
            ["plan", "inference", "--out", "~nobody-here/a"],
            2,
            "~nobody-here/a: the home folder ~nobody-here is not known",
        ),
        (
            ["list", "sessions", "--since", "yesterday"],
            2,
            "--since must be a date such as 2026-01-31 or 2026-01, got 'yesterday'",
        ),
        (["list", "sessions", "--since", "2026-02-30"], 2, "got '2026-02-30'"),
        (["list", "sessions", "--since", "2026-1"], 2, "got '2026-1'"),
        (["history", "throughput_inputs_per_second", "--since", "31.1.2026"], 2, "--since must be a date such as"),
        (["rn"], 2, "No such command 'rn'. Did you mean 'run'? See `bench --help`."),
        (["--loud"], 2, "No such option: --loud"),
        (["show"], 2, "Missing argument 'SESSION'. See `bench show --help`."),
        (["plan", "inference", "--cpus", "many"], 2, "Invalid value for '--cpus'"),
        (
            ["plan", "inference", "--blok", "2"],
            2,
            "No such option: --blok (Possible options: --blocks) See `bench plan --help`.",
        ),
        (["data", "sed"], 2, "No such command 'sed'. Did you mean 'seed'? See `bench data --help`."),
        (["data", "seed", "mnist"], 2, "Missing argument 'PATH'. See `bench data seed --help`."),
    ],
)
def test_bad_input_is_one_line_and_its_own_exit_code(bench, words: list[str], code: int, said: str) -> None:  # type: ignore[no-untyped-def]
    exit_code, out, err = bench(*words)
    assert exit_code == code
    assert said in err
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_nothing_is_written_when_the_input_is_bad(bench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    bench("run", "inference", "--set", "actors=0")
    assert not (tmp_path / "results").exists()


def test_a_name_that_the_terminal_has_no_letters_for_is_written_out(tmp_path: Path) -> None:
    (tmp_path / "☃").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "from bench.cli import main; main()", "list", "sessions", "--out", "☃"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "No sessions in \\u2603.\n", "")


def test_ctrl_c_at_any_moment_is_one_line(bench, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    def interrupted(*_: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "find", interrupted)
    for words in (["report"], ["baseline", "set", "main", "latest"]):
        assert bench(*words) == (130, "", "bench: Stopped by Ctrl-C. `bench down` removes what is still running.\n")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_is_closed_ends_a_session_like_ctrl_c(  # type: ignore[no-untyped-def]
    bench, target: FakeTarget, head: FakeHead, which: signal.Signals
) -> None:
    def struck(spec: Spec, folder: Path) -> str:
        os.kill(os.getpid(), which)
        time.sleep(0.2)
        return good_driver(spec, folder)

    head.driver = struck
    before = signal.signal(which, lambda *_: None)  # whatever this test was started under
    try:
        code, _, err = bench("run", "inference", "--blocks", "1", "--cpus", "2", "--set", "batch=1")
    finally:
        signal.signal(which, before)
    assert code == 130
    assert "Continue with: bench resume" in err
    assert not target.is_up


def test_a_folder_that_refuses_is_one_line_wherever_that_is_met(  # type: ignore[no-untyped-def]
    bench, target: FakeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a file"))  # where the lock of the deployment would be
    code, out, err = bench("run", "inference", "--blocks", "1", "--cpus", "2", "--set", "batch=1")
    assert (code, out) == (10, "")
    assert err.splitlines()[-1].startswith(f"bench: {tmp_path / 'a file'}")
    assert "--debug prints the traceback" in err
    assert "Traceback" not in err


def test_a_target_that_cannot_be_asked_hides_no_other(bench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    state = tmp_path / "state/raymeter/local/raymeter/state.json"
    state.parent.mkdir(parents=True)
    state.write_text("spoilt")

    code, out, err = bench("status")
    assert (code, out) == (4, "docker: nothing is up\nk8s: nothing is up\n")
    assert err.startswith(f"bench: The state of this deployment, {state}, cannot be read: ")
    assert err.count("\n") == 1

    code, out, _ = bench("status", "--json")
    assert (code, [each["target"] for each in json.loads(out)["data"]]) == (4, ["docker", "k8s"])

    code, out, err = bench("doctor")
    assert (code, "good  target k8s" in out) == (4, True)
    assert "bad   target local" in out
    assert "target local" in err


def test_down_ends_what_it_can_reach_and_tells_what_it_cannot(bench, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    class Stub:
        def __init__(self, name: str) -> None:
            self.name = name

        def down(self) -> tuple[str, ...]:
            if self.name == "docker":
                raise TargetFailed("The engine does not answer.")
            return (f"all of {self.name}",)

    monkeypatch.setattr(targets, "create", lambda name, options: Stub(name))
    ended = "local: all of local\nk8s: all of k8s\n"
    assert bench("down") == (4, ended, "bench: The engine does not answer.\n")


def test_debug_shows_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.cli", "--debug", "run", "inferense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_session_runs_reports_and_is_listed(bench, target: FakeTarget, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, err = bench("run", "inference", "--blocks", "1", "--cpus", "2", "--set", "batch=1")
    assert code == 0, err
    assert "a verdict needs 6" in out
    (folder,) = store.session_folders(tmp_path / "results")
    assert (folder / "report.txt").read_text().strip() == out.strip()
    assert "</html>" in (folder / "report.html").read_text()
    assert folder.name in bench("list", "sessions")[1]
    runs = bench("show", "latest")[1].splitlines()
    assert all(" ok " in line for line in runs)
    whole = bench("show", "latest", runs[0].split()[0])[1]
    assert "reconciled: yes" in whole
    assert json.loads(bench("report", "--format", "json")[1])
    assert not target.is_up


def test_a_failed_run_is_shown_and_is_no_success(bench, target: FakeTarget, head: FakeHead) -> None:  # type: ignore[no-untyped-def]
    head.driver = lambda spec, folder: "FAILED"
    code, out, err = bench("run", "inference", "--blocks", "1", "--cpus", "2", "--set", "batch=1")
    assert code == 6
    assert "bench resume" in err
    assert "failed" in out


def test_a_second_session_on_the_same_deployment_is_refused(bench, target: FakeTarget, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "state/raymeter").mkdir(parents=True)
    with FileLock(tmp_path / "state/raymeter/local-raymeter.session.lock"):
        code, _, err = bench("run", "inference", "--blocks", "1", "--cpus", "2", "--set", "batch=1")
    assert code == 3
    assert "The deployment raymeter on target local is in use" in err
    assert target.ups == []
    assert store.session_folders(tmp_path / "results") == []


def test_a_deployment_with_a_session_on_it_is_neither_taken_down_nor_stood_up_but_by_force(
    bench: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downs: list[str] = []
    ups: list[str] = []
    standing = Cluster(topology=a_topology(), dashboard_url="", exporter_url="", token="", nodes=("head",), link="none")
    monkeypatch.setattr("bench.targets.local.target.LocalTarget.down", lambda self: downs.append(self.name) or ("it",))
    monkeypatch.setattr(
        "bench.targets.local.target.LocalTarget.up", lambda self, _, **__: ups.append(self.name) or standing
    )
    monkeypatch.setattr(session_lock, "PATIENCE_SECONDS", 0.1)
    typed = (["down", "--target", "local"], ["up", "--target", "local", "--topology", "single", "--cpus", "1"])
    for words in typed:
        assert bench(*words)[0] == 0
    assert (len(downs), len(ups)) == (1, 1)
    with session_lock.alone(a_session(), tmp_path / "results" / "s1", "bench run inference"):
        for words in typed:
            code, out, err = bench(*words)
            assert (code, out) == (3, "")
            assert f"session s1, process {os.getpid()}, since" in err.splitlines()[-1]
        assert (len(downs), len(ups)) == (1, 1)
        assert bench("down", "--target", "local", "--name", "other")[0] == 0
        for words in typed:
            assert "session s1" in bench(*words, "--force")[2]
    assert (len(downs), len(ups)) == (3, 2)


def test_what_was_up_stays_up(bench, target: FakeTarget) -> None:  # type: ignore[no-untyped-def]
    target.is_up = True
    bench("run", "inference", "--blocks", "1", "--cpus", "2", "--set", "batch=1")
    assert target.is_up


def test_resume_does_what_is_missing_and_then_has_nothing_to_do(bench, target: FakeTarget, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    spec = a_spec(params={})
    store.create(tmp_path / "results", a_session((spec,)))
    code, _, err = bench("resume", "s1")
    assert code == 0, err
    assert "0 runs kept, 0 again, 1 new" in err
    code, _, err = bench("resume", "s1")
    assert code == 2
    assert "is complete" in err


def test_an_old_session_resumes_and_reports_though_its_experiment_no_longer_answers(
    bench: Typed, target: FakeTarget, head: FakeHead, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measures(spec: Spec, into: Path) -> str:
        recorder = Recorder(into, spec)
        recorder.sample(a_sample(metric=network.METRICS[0].name))
        recorder.close("ok", ())
        return "SUCCEEDED"

    head.driver = measures
    shape = RunRequest(experiments=("network",), sets=("chunk_bytes=1048576",), topology="single", cpus=2, blocks=1)
    planned = plan.make(shape)
    folder = store.create(tmp_path / "results", planned)

    def silent(*_: object) -> None:
        pytest.fail("the experiment was asked")

    for asked in ("Params", "guess_pass_seconds", "ray_settings", "check_fits"):
        monkeypatch.setattr(network, asked, silent)
    code, _, err = bench("resume", planned.id)
    assert (code, target.settings) == (0, [{"object_manager_default_chunk_size": "1048576"}]), err
    assert {run.status for run in store.load_runs(folder, planned)} == {"ok"}
    code, out, err = bench("report", planned.id)
    assert code == 0, err
    assert planned.id in out


def test_resume_tells_before_it_starts_that_the_code_has_changed(
    bench: Typed, target: FakeTarget, head: FakeHead, tmp_path: Path
) -> None:
    def with_facts(spec: Spec, folder: Path) -> str:
        recorder = Recorder(folder, spec)
        recorder.facts(a_facts(spec.topology, code_hash="of-before"))
        recorder.sample(a_sample())
        recorder.close("ok", ())
        return "SUCCEEDED"

    specs = tuple(a_spec(id=f"b0{block}-single-inference-c01", params={}, block=block) for block in (1, 2))
    folder = store.create(tmp_path / "results", a_session(specs))
    head.driver = lambda spec, into: with_facts(spec, into) if spec.block == 1 else "FAILED"
    assert bench("resume", "s1")[0] == 6
    ups = len(target.ups)
    told = bench("resume", "s1")[2].splitlines()
    (line,) = [line for line in told if line.startswith("Changed since the earlier runs: ")]
    assert f"raymeter code was of-before and is {identity.code_hash()}" in line
    assert told.index(line) < next(number for number, line in enumerate(told) if "starting" in line)
    assert len(target.ups) == ups + 1

    plan = json.loads((folder / "session.json").read_text())
    for spec in plan["specs"]:
        spec["params"] = {"batch": 60}
    (folder / "session.json").write_text(json.dumps(plan))
    said = "Run b01-single-inference-c01 was started with different settings (params.batch was None and is 60)"
    code, out, err = bench("resume", "s1")
    assert (code, out) == (8, "")
    assert said in err
    assert said in bench("show", "s1")[1]
    assert said in " ".join(bench("report", "s1", "--detail")[1].split())
    packed = bench("export", "s1")[1].strip()
    assert "different settings" in " ".join("".join(bench("verify", packed)[1:]).split())
    assert len(target.ups) == ups + 1


def test_a_plan_says_what_runs_in_which_order_and_how_long(bench) -> None:  # type: ignore[no-untyped-def]
    code, out, err = bench(
        "plan", "inference", "--cpus", "2", "--blocks", "2", "--set", "batch=1,10", "--set", "inputs=100"
    )
    assert code == 0, err
    for words in ("Cells (", "batch=10", "2 blocks", "single", "multi", "runs, about", "needs at least 6"):
        assert words in out


def test_one_experiment_is_listed_by_its_name_and_a_wrong_one_is_helped(bench) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = bench("list", "network")
    assert code == 0
    assert out.startswith("network: ")
    assert "inference: " not in out
    assert "    tiny: " in out
    assert "      growth=1024 most_streams=1\n      2 blocks, 1 warm-up, 1 sample a run" in out
    assert [each["name"] for each in json.loads(bench("list", "network", "--json")[1])["data"]] == ["network"]
    assert "Did you mean network?" in bench("list", "netwrok")[2]


def test_experiments_are_listed_in_a_line_each_with_their_profiles(bench: Typed) -> None:
    code, out, _ = bench("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(experiments.NAMES)
    assert all("tiny lab full" in line for line in out.splitlines())


def test_a_plan_says_what_would_show_once_for_all_cells_of_which_nothing_is_known(bench) -> None:  # type: ignore[no-untyped-def]
    out = bench("plan", "inference", "--cpus", "2", "--blocks", "6", "--set", "batch=1,10")[1]
    (said,) = [line for line in out.splitlines() if "if pairs spread" in line]
    assert said.split("  ")[1] == "every cell"
    minutes = [line.index("actors=") for line in out.splitlines() if "actors=" in line and "beside" not in line]
    assert len(minutes) == 4
    assert len(set(minutes)) == 1


def test_a_plan_of_one_block_says_once_that_it_shows_no_difference(bench) -> None:  # type: ignore[no-untyped-def]
    code, out, err = bench("plan", "inference", "--cpus", "2", "--blocks", "1", "--samples", "5")
    assert code == 0, err
    for words in ("1 node, each", "each measured 5 times after 1 warm-up", "1 block gives values and no verdict"):
        assert words in out
    assert "One pair cannot show a difference" in out
    assert "if pairs spread" not in out


def test_a_plan_lists_the_contrasts_and_says_what_cannot_be_told_apart(bench: Typed) -> None:
    asked = (
        "plan",
        "inference",
        "--cpus",
        "2",
        "--set",
        "data_path=local",
        "--set",
        "actors=1,2",
        "--set",
        "batch=1,10",
    )
    out = bench(*asked)[1]
    assert "Contrasts (4)\n  inference c03 beside c01  actors 1 -> 2, batch=1\n" in out
    assert (
        "Contrasts (2)\n  inference c02 beside c01  batch 1 -> 10, actors=1\n"
        in bench(*asked, "--contrast", "batch")[1]
    )
    assert "Contrasts (4)" in bench(*asked, "--contrast", "batch", "--contrast", "actors")[1]
    bench(*asked, "--contrast", "batch", "--save", "plan.toml")
    assert "Contrasts (2)\n" in bench("plan", "--plan", "plan.toml")[1]
    joined = bench(*asked, "--contrast", "actors+batch")[1]
    assert "  inference c04 beside c01  actors 1 -> 2, batch 1 -> 10 (at once: cannot be told apart)\n" in joined
    assert "Contrasts" not in bench("plan", "inference", "--cpus", "2", "--set", "data_path=local")[1]


def test_a_contrast_of_a_wrong_name_is_refused_in_one_line_before_anything_starts(bench: Typed) -> None:
    code, out, err = bench("plan", "inference", "--cpus", "2", "--set", "batch=1,10", "--contrast", "bacth")
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert "--contrast bacth: there is no parameter bacth. Did you mean batch? Varied are: batch, data_path." in line


def test_help_and_list_import_nothing_heavy() -> None:
    heavy = (
        "ray",
        "numpy",
        "torch",
        "tensorflow",
        "scipy",
        "pandas",
        "pyarrow",
        "matplotlib",
        "sklearn",
        "statsmodels",
    )
    for words in (["--help"], ["list"]):
        code = (
            "import sys; from bench import cli\n"
            f"sys.argv = ['bench', *{words!r}]\n"
            "try: cli.main()\n"
            f"except SystemExit: print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr.strip() == "[]"


def test_a_command_imports_nothing_that_only_others_need() -> None:
    code = (
        "import sys; from bench import cli\n"
        "sys.argv = ['bench', 'list', 'sessions']\n"
        "try: cli.main()\n"
        "except SystemExit: print([m for m in ('requests', 'yaml', 'psutil', 'rich', 'bench.runner.session', 'bench.planning.plan', 'bench.targets',"
        " 'bench.experiments') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_every_module_of_commands_is_a_command() -> None:
    there = {path.stem for path in (Path(cli.__file__).parent / "commands").glob("[a-z]*.py")}
    assert there == set(cli.NAMES)


def test_every_command_has_help_and_an_example() -> None:
    from typer.main import get_command

    for name, command in get_command(cli.app).commands.items():  # type: ignore[attr-defined]
        assert f"Example: bench {name}" in (command.help or ""), name
        for option in command.params:
            assert getattr(option, "help", None), f"{name} {option.name}"


def _help_of(bench: Typed, *words: str) -> str:
    code, out, err = bench(*words)
    assert (code, err) == (0, "")
    return out


def test_the_help_lists_every_command_in_a_panel_with_an_uncut_summary(bench: Typed) -> None:
    lines = _help_of(bench, "--help").splitlines()
    for panel, names in cli.PANELS.items():
        start = lines.index(f"{panel}:") + 1
        for line, name in zip(lines[start : start + len(names)], names, strict=True):
            assert line.split(maxsplit=1) == [name, cli.summary(name)]
            assert len(cli.summary(name)) <= 50
    assert max(map(len, lines)) < 80


@pytest.mark.parametrize("name", cli.NAMES)
def test_the_summary_of_a_command_is_the_first_line_of_its_help(bench: Typed, name: str) -> None:
    first = next(line for line in _help_of(bench, name, "-h").splitlines()[1:] if line)
    assert first.strip() == f"{cli.summary(name)}."


def test_options_are_listed_by_panel_and_those_without_one_last(bench: Typed) -> None:
    lines = _help_of(bench, "run", "-h").splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles[0] == "Arguments:"
    assert titles[-1] == "Options:"
    assert {"What to measure:", "Session:", "Cluster:", "Report:", "Deployment:", "Target k8s:"} < set(titles)
    deployment = lines[lines.index("Deployment:") + 1 : lines.index("Target local:")]
    assert [line.split()[0] for line in deployment if line.startswith("  --")] == ["--target", "--name"]


def test_the_help_of_an_option_is_at_most_70_characters_long() -> None:
    def options(command: Any, path: str) -> Iterator[tuple[str, str]]:
        for option in command.params:
            yield f"{path} --{option.name}", (option.help or "").partition(" [default")[0]
        for name, inner in getattr(command, "commands", {}).items():
            yield from options(inner, f"{path} {name}")

    from typer.main import get_command

    helps = dict(options(get_command(cli.app), "bench"))
    too_long = {name for name, text in helps.items() if len(text) > 70 and not name.endswith("--show_completion")}
    assert too_long == {"bench report --format"}  # which lists nine formats


def test_the_version_names_raymeter_and_ray(bench: Typed) -> None:
    said = _help_of(bench, "--version")
    assert said.startswith(f"raymeter {metadata.version('raymeter')}, Ray {metadata.version('ray')}, Python 3.")


def test_a_run_without_arguments_lists_the_experiments_and_is_a_usage_error(bench: Typed) -> None:
    code, out, err = bench("run")
    lines = err.splitlines()
    assert (code, out) == (2, "")
    assert lines[0] == "bench: No experiment named. Name one or more, e.g. `bench run inference --profile tiny`."
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(experiments.NAMES)
    assert max(map(len, lines[1:])) <= 80


def test_the_options_of_a_target_come_back_from_a_session() -> None:
    import msgspec

    options = local.Options(name="a", link_rate="1gbit")
    assert options.given() == {"name": "a", "link_rate": "1gbit"}
    assert msgspec.convert(options.given(), local.Options) == options


def test_a_plan_names_the_cells_that_will_have_more_workers_than_cpus(bench: Typed) -> None:
    one_node = (
        "--target",
        "local",
        "--topology",
        "single",
        "--cpus",
        "1",
        "--memory-mib",
        "1024",
        "--object-store-mib",
        "256",
    )
    code, out, _ = bench("plan", "inference", *one_node, "--set", "actors=1,8", "--set", "batch=1")
    assert code == 0
    cells = [line for line in out.splitlines() if "batch=" in line]
    assert {line.endswith("(oversubscribed: 8 workers on 1 CPU)") for line in cells if "actors=8" in line} == {True}
    assert not [line for line in cells if "actors=1 " in line and "oversubscribed" in line]
