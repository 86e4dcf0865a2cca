"""Plan files: what a command line says, written down, and every mistake found on its line before anything starts."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from repository import ROOT
from typer import Option

from bench import params, targets
from bench.errors import BadInput
from bench.experiments import NAMES
from bench.model import Session, Value
from bench.options import RunRequest
from bench.planning import plan, plan_file, plan_text
from bench.planning.plan_file import Plan
from bench.targets import Given, defaults

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def read(name: str, text: str) -> Plan:
    return plan_file.check(plan_text.parse(name, text))


def as_request(found: Plan) -> tuple[RunRequest, Given, Path]:
    said = dict(found.options)
    out = Path(str(said.pop("out", "results")))
    given = {name: value for name, of in defaults().items() if (value := said.pop(name, of)) != of}
    return RunRequest(experiments=tuple(found.experiments), levels=found.experiments, **said), given, out  # type: ignore[arg-type]


@st.composite
def levels(draw: st.DrawFn, of: str) -> dict[str, tuple[Value, ...]]:
    """Some params of an experiment, over values that each of them may have."""
    declared = params.declared(plan.experiment(of).params)
    found: dict[str, tuple[Value, ...]] = {}
    for name in draw(st.sets(st.sampled_from(sorted(declared)), max_size=3)):
        found[name] = tuple(draw(st.lists(a_value(declared[name]), min_size=1, max_size=3, unique=True)))
    return found


def a_value(parameter: params.Parameter) -> st.SearchStrategy[Value]:
    if parameter.choices:
        return st.sampled_from(parameter.choices)
    if parameter.type is bool:
        return st.booleans()
    if parameter.type is int:
        low = int(parameter.minimum or 0)
        return st.integers(low, int(parameter.maximum) if parameter.maximum is not None else low + 10**6)
    if parameter.type is float:
        return st.floats(parameter.minimum or 0.0, parameter.maximum, allow_nan=False, allow_infinity=False)
    if parameter.unit in params.PATHS:  # the command line has put the home folder in place of `~`
        return TEXTS.filter(lambda text: not text.startswith("~"))
    return TEXTS


@st.composite
def shapes(draw: st.DrawFn) -> tuple[RunRequest, Given, Path]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    nodes = draw(st.integers(2, 4))
    shape = RunRequest(
        experiments=tuple(names),
        levels={name: draw(levels(name)) for name in names},
        topology=draw(st.sampled_from(("both", "single", "multi"))),
        nodes=nodes,
        cpus=draw(st.none() | st.integers(1, 4).map(lambda each: each * nodes)),
        memory_mib=draw(st.integers(4000, 9000)),
        blocks=draw(st.none() | st.integers(1, 8)),
        samples=draw(st.none() | st.integers(1, 40)),
        seed=draw(st.integers(0, 2**70)),
        target=draw(st.sampled_from(("auto", "local", "docker", "k8s"))),
        allow_noise=draw(st.booleans()),
    )
    link_rate, context = draw(st.none() | TEXTS), draw(st.none() | TEXTS)
    said = {"link_rate": link_rate, "context": context, "dev": draw(st.booleans()) or None}
    given = {name: value for name, value in said.items() if value is not None}
    return shape, given, Path(f"r{draw(TEXTS)}")


@pytest.mark.parametrize("name", ["plan.toml", "plan.yaml"])
@given(shapes())
@example((RunRequest(experiments=("inference",), levels={"inference": {}}, target="auto"), {}, Path("r\x85")))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25)
def test_a_saved_plan_asks_for_what_the_command_line_did(name: str, wanted: tuple[RunRequest, Given, Path]) -> None:
    shape, given, out = wanted
    assert as_request(read(name, plan_file.written(plan_file.plan_of(shape, given, out), name))) == (shape, given, out)


@pytest.mark.parametrize("name", ["plan.toml", "plan.yaml"])
@given(batch=st.sets(st.integers(1, 40), min_size=1, max_size=3), seed=st.integers(0, 9), blocks=st.integers(1, 3))
@settings(deadline=None, max_examples=8)
def test_a_saved_plan_gives_the_same_session(name: str, batch: set[int], seed: int, blocks: int) -> None:
    sets = (f"batch={','.join(map(str, batch))}", "inputs=40")
    shape = RunRequest(experiments=("inference",), sets=sets, cpus=2, seed=seed, blocks=blocks)
    text = plan_file.written(plan_file.plan_of(shape, {}, Path("results")), name)
    again, _, _ = as_request(read(name, text))
    sessions = [plan.make(each, now=NOW, suffix="0000") for each in (shape, again)]
    assert sessions[0] == sessions[1]
    assert {spec.params["batch"] for spec in sessions[0].specs} == batch


@pytest.mark.parametrize("extra", ["plan.toml", "plan.yml"])
def test_an_integer_where_a_number_is_asked_for_is_that_number(extra: str) -> None:
    of, name = next(
        (of, each.name)
        for of in NAMES
        for each in params.declared(plan.experiment(of).params).values()
        if each.type is float and (each.minimum or 0) <= 1 and (each.maximum or 1) >= 1
    )
    text = f"[experiments.{of}]\n{name} = 1\n" if extra.endswith("toml") else f"experiments: {{{of}: {{{name}: 1}}}}"
    (value,) = read(extra, text).experiments[of][name]
    assert type(value) is float


TOML = """# what a plan looks like
profile = "tiny"
image = '''
a long name'''

[experiments.inference]
batch = [
  1,
  10,
]
actors = 2
"""
YAML = """# what a plan looks like
profile: tiny
image: >
  a long name

experiments:
  inference:
    batch:
      - 1
      - 10
    actors: 2
"""


@pytest.mark.parametrize(
    ("change", "line_of_toml", "line_of_yaml", "words"),
    [
        (("batch", "btach"), 7, 8, "inference has no parameter btach; did you mean batch?"),
        (("actors", "coulours"), 11, 11, "inference has no parameter coulours. Choose from: actors"),
        (("inference", "inferense"), 6, 7, "unknown experiment inferense; did you mean inference?"),
        (("profile", "profil"), 2, 2, "unknown option profil; did you mean profile?"),
        (("tiny", "huge"), 2, 2, "inference has no profile huge. Choose from: tiny"),
        (("10", "0"), 7, 8, "batch must be an integer from 1 to 100000, got 0."),
        (("10", "true"), 7, 8, "batch must be an integer from 1 to 100000, got true."),
        (("10", "1.5"), 7, 8, "batch must be an integer from 1 to 100000, got 1.5."),
        (("10", '"1"'), 7, 8, "batch must be an integer from 1 to 100000, got '1'."),
        (("image", "topology"), 3, 3, "topology must be one of both, single, multi, got 'a long name"),
        (("experiments", "experimentes"), None, 6, "unknown option experimentes; did you mean experiments?"),
        (("actors", "batch"), 11, 11, "batch "),
    ],
)
def test_a_mistake_is_named_with_its_line(
    change: tuple[str, str], line_of_toml: int | None, line_of_yaml: int, words: str
) -> None:
    for name, text, line in (("plan.toml", TOML, line_of_toml), ("plan.yaml", YAML, line_of_yaml)):
        if line is not None:
            with pytest.raises(BadInput) as told:
                read(name, text.replace(*change))
            assert str(told.value).startswith(f"{name}:{line}: "), told.value
            assert words in str(told.value)
            assert "\n" not in str(told.value)
            for line_end in ("\r\n", "\r\r\n"):
                with pytest.raises(BadInput) as of_windows:
                    read(name, text.replace(*change).replace("\n", line_end))
                assert str(of_windows.value) == str(told.value)


STATEMENTS = [
    'name = """a\n[x] # no comment\n\\""" \n""""" ',
    "name = '''\n\\\n# \"\"\" [\n''''",
    'name = "# [ \\" \\\\"',
    "name = '\\[{'  # it's [ {",
    "name = [\n  '[', # ]\n  [1,\n 2],\n]",
    "name = {a = [\n{b = 1}]}",
    '"na[me".\'"#\' = 1',
    "[name]\na = 1",
    "[[name]]\na = ''\nb = \"\"",
]


@pytest.mark.parametrize("before", STATEMENTS)
def test_what_stands_before_a_mistake_does_not_move_its_line(before: str) -> None:
    text = f"# first\n{before}\n\n[experiments.tune]\n"
    line = plan_text.parse("plan.toml", text).line
    assert line(("experiments", "tune")) == text.count("\n")
    assert line(("nothing",)) == 1


def test_a_mistake_after_a_long_array_is_found_in_a_dozen_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[experiments.inference]\nbatch = [\n" + "1,\n" * 900 + "]\nbtach = 1\n"
    readings, loads = [], plan_text.tomllib.loads

    def counted(part: str) -> object:
        readings.append(len(part))
        return loads(part)

    monkeypatch.setattr(plan_text.tomllib, "loads", counted)
    with pytest.raises(BadInput, match=f"plan.toml:{text.count(chr(10))}: "):
        read("plan.toml", text)
    assert len(readings) <= 12


def test_a_plan_as_it_should_be_is_taken() -> None:
    for name, text in (("plan.toml", TOML), ("plan.yaml", YAML)):
        found = read(name, text)
        assert found.experiments == {"inference": {"batch": (1, 10), "actors": (2,)}}
        assert str(found.options["image"]).strip() == "a long name"


@pytest.mark.parametrize(("name", "text"), [("plan.toml", TOML), ("plan.yaml", YAML)])
def test_a_plan_that_an_editor_of_windows_saved_means_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    found = plan_file.load(tmp_path / name)
    assert found == read(name, text)
    assert found.experiments == {"inference": {"batch": (1, 10), "actors": (2,)}}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-4", 1e-4),  # text to YAML 1.1
        ("5", 5.0),
        (".5", 0.5),
        ("+2.", 2.0),
        ("0x10", 16.0),
        ("0o10", 8.0),
    ],
)
def test_a_number_of_yaml_is_what_it_looks_like(written: str, value: float) -> None:
    text = f"experiments:\n  parameter-server:\n    learning_rate: {written}\n"
    values = plan_text.parse("plan.yaml", text).values["experiments"]["parameter-server"]
    assert values == {"learning_rate": value}


@pytest.mark.parametrize("text", ["yes", "on", "No", "1:30", "2026-01-01", "1_000", "=", "0b1"])
def test_what_only_older_yaml_reads_as_something_else_is_text_where_text_is_asked_for(text: str) -> None:
    found = read("plan.yaml", f"context: {text}\nexperiments: {{inference: }}\n")
    assert found.options == {"context": text}


def test_an_experiment_of_yaml_needs_nothing_after_its_name() -> None:
    assert read("plan.yaml", "experiments:\n  inference:\n  tune:\n").experiments == {"inference": {}, "tune": {}}


@pytest.mark.parametrize("text", ["1e5", "0o10", "010", "1:30", "yes", "true", "~", ".5", "<<", "null", "0x1", "1."])
def test_text_that_some_reader_of_yaml_takes_for_something_else_is_saved_in_quotes(text: str) -> None:
    saved = plan_file.written(Plan(options={"context": text}, experiments={"inference": {}}), "plan.yaml")
    assert f"context: '{text}'" in saved
    assert read("plan.yaml", saved).options == {"context": text}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "plan.yaml:1: anchors and aliases are not allowed in a plan"),
        ("profile: tiny\nseed: *x\n", "plan.yaml:2: anchors and aliases are not allowed"),
        ("seed: !!python/object/apply:os.system ['id']\n", "plan.yaml:1: tags like "),
        ("profile: tiny\nname: !x y\n", "plan.yaml:2: tags like !x are not allowed in a plan"),
        ("profile: tiny\n<<: {seed: 1}\n", "plan.yaml:2: a name must be text, not the merge key"),
        ("profile: tiny\n1: 2\n", "plan.yaml:2: a name must be text"),
        ("seed: " + "[" * 5000, "plan.yaml:1: this is nested deeper"),
        ("seed: 2026-01-01\n", "plan.yaml:1: seed must be an integer of at least 0, got '2026-01-01'."),
        ("profile:\n", "plan.yaml:1: profile must be text, got null."),
        ("- profile\n", "plan.yaml:1: a plan must be a mapping of names to values"),
        ("profile: tiny\n---\nprofile: lab\n", "plan.yaml:2: but found another document"),
        ("profile: [tiny\nseed: 1\n", "plan.yaml:2: "),
        ("profile: tiny\nname: a\x00b\n", "plan.yaml:2: special characters are not allowed"),
        ("seed: " + "9" * 5000, "plan.yaml:1: 9999"),
        ("profile: tiny\n", "plan.yaml:1: a plan must have a mapping of experiments. Write experiments:"),
        ("", "plan.yaml:1: a plan must have a mapping of experiments. Write experiments:"),
        ("experiments: [inference]\n", "plan.yaml:1: a plan must have a mapping of experiments. Write experiments:"),
        ("experiments:\n  inference: 3\n", "plan.yaml:2: inference must be a mapping of its parameters"),
        ("experiments:\n  inference: {batch: []}\n", "plan.yaml:2: batch has no value"),
        ("experiments:\n  inference: {batch: }\n", "plan.yaml:2: batch must be an integer from 1 to 100000, got null."),
        (
            "experiments:\n  inference: {batch: [1, ~]}\n",
            "plan.yaml:2: batch must be an integer from 1 to 100000, got null.",
        ),
        (
            "experiments:\n  inference:\n    batch: 1\n    batch: 2\n",
            "plan.yaml:4: batch is written twice. First on line 3",
        ),
        ("experiments:\n  inference: {batch: 010}\n", "plan.yaml:2: 010 is an octal number to YAML 1.1"),
        ("experiments:\n  inference: {batch: 08}\n", "plan.yaml:2: 08 is an octal number to YAML 1.1"),
        (
            "experiments:\n  inference: {batch: 1:30}\n",
            "plan.yaml:2: batch must be an integer from 1 to 100000, got '1:30'.",
        ),
        (
            "experiments:\n  inference: {batch: 1_0}\n",
            "plan.yaml:2: batch must be an integer from 1 to 100000, got '1_0'.",
        ),
        ("profile: tiny\nallow_noise: yes\n", "plan.yaml:2: allow_noise must be true or false, got 'yes'."),
        ("allow_noise: on\n", "plan.yaml:1: allow_noise must be true or false, got 'on'."),
        ("on: 1\n", "plan.yaml:1: unknown option on"),
        ('"a\\e[31mb\\0": 1\n', "plan.yaml:1: unknown option a\ufffd[31mb\ufffd"),
        ("profile: tiny\n\tseed: 1\n", "plan.yaml:2: "),
        (
            "experiments:\n  inference: {batch: [[1]]}\n",
            "plan.yaml:2: batch must be an integer from 1 to 100000, got [1].",
        ),
    ],
)
def test_yaml_that_is_hostile_or_no_plan_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(BadInput) as told:
        read("plan.yaml", text)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed = " + "[" * 15000, "nested deeper"),
        ("profile = 'tiny'\nseed = " + "9" * 5000, "plan.toml:2: "),
        ("profile = 'tiny'\nseed = \n", "plan.toml:2: Invalid value"),
        ("profile = 'tiny'\nprofile = 'lab'\n", "plan.toml:2: Cannot overwrite a value"),
        ("seed = 2026-01-01\n", "plan.toml:1: seed must be "),
        ("cpus = inf\n", "plan.toml:1: cpus must be an integer"),
        (".".join("a" * 2000) + " = 1\n", "unknown option a"),
        ("# a\nseed = \x1b[31m\x00\n", "plan.toml:2: Invalid value: seed = \ufffd[31m\ufffd"),
        ("seed = 010\n", "plan.toml:1: "),
        ("profile = 'tiny'\rseed = 1\n", "plan.toml:1: "),
        ("[experiments]\n", "plan.toml:1: a plan must have a table of experiments. Write [experiments.inference]"),
    ],
)
def test_toml_that_is_hostile_or_no_plan_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(BadInput) as told:
        read("plan.toml", text)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("plan.json", b"{}", "The name of a plan file must end in .toml"),
        ("plan.toml", b"#" * (plan_text.MOST_BYTES + 1), "larger than 16 KiB"),
        ("plan.toml", b"# a\n# \xff\n", "plan.toml:2: this must be UTF-8"),
        ("plan.yaml", None, "No such file"),
        ("plan.toml", TOML.encode("utf-16"), "plan.toml:1: this is UTF-16 or binary, and must be text in UTF-8"),
        ("plan.yaml", YAML.encode("utf-16-be"), "plan.yaml:1: this is UTF-16 or binary"),
        ("plan.yaml", b"profile: tiny\nname: a\0b\n", "plan.yaml:2: this is UTF-16 or binary"),
    ],
)
def test_a_file_that_cannot_be_a_plan_is_refused(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=words):
        plan_text.read(tmp_path / name)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_no_plan_and_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "plan.toml"
    {"pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero")}[kind]()
    with pytest.raises(BadInput, match="cannot be read: it is not a regular file"):
        plan_text.read(path)


@pytest.mark.parametrize("name", ["plan.toml", "plan.yaml"])
def test_a_plan_of_thousands_of_lines_is_refused_before_it_is_read(name: str) -> None:
    with pytest.raises(BadInput, match="1000 lines"):
        read(name, "#\n" * 1001)


def test_set_goes_before_the_plan_and_only_for_the_parameter_that_it_names() -> None:
    shape = RunRequest(experiments=("inference",), cpus=2, levels={"inference": {"batch": (1, 10), "inputs": (40,)}})
    chosen = plan.chosen_levels(replace(shape, sets=("batch=5",)), "inference")
    assert chosen == {"batch": (5,), "inputs": (40,)}


def test_all_that_the_command_line_takes_a_plan_takes() -> None:
    from typer.main import get_command

    from bench import cli

    options = {each.name for each in get_command(cli.app).commands["run"].params}  # type: ignore[attr-defined]
    assert options - {"experiments", "levels", "sets", "chaos", "as_json", "calibrate"} == set(
        plan_file.known_options()
    )


EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_plan_of_several_cells_or_experiments_with_blocks_enough_for_a_verdict(path: Path) -> None:
    shape, _, _ = as_request(plan_file.load(path))
    session = plan.make(replace(shape, cpus=shape.cpus or 4), now=NOW, suffix="0000")
    assert len({(spec.experiment, spec.cell) for spec in session.specs}) > 1
    assert max(spec.block for spec in session.specs) >= 6


def test_each_study_has_an_example() -> None:
    found = {name for path in EXAMPLES for name in plan_file.load(path).experiments}
    assert found >= {"inference", "tune", "parameter-server", "clustering"}


@pytest.mark.parametrize("name", ["plan.toml", "plan.yaml"])
def test_a_folder_whose_name_is_not_utf8_is_refused_as_no_plan_file_can_hold_it(name: str) -> None:
    with pytest.raises(BadInput, match=r"out caf.* has bytes that are not UTF-8"):
        plan_file.written(Plan(options={"out": os.fsdecode(b"caf\xe9")}, experiments={}), name)


def test_an_option_of_a_kind_that_no_plan_file_can_hold_is_refused() -> None:
    annotation = Annotated[tuple[str, ...], Option(help="Remarks.")]
    with pytest.raises(TypeError, match=r"the option tags must be one of str, int, float, bool, Path, got tuple"):
        plan_file._as_parameter("tags", annotation)


def test_a_text_has_no_unit_and_a_number_has_its_own() -> None:
    known = plan_file.known_options()
    assert (known["budget"].unit, known["out"].unit, known["blocks"].unit) == ("", "FOLDER", "N")


def test_names_of_options_and_of_what_a_session_keeps_beside_them_are_different_and_options_have_defaults() -> None:
    asked = {each.name: each for each in fields(RunRequest)}
    own, given = set(Session.__annotations__), set(targets.declared_options())
    assert not asked.keys() & own
    assert not given & (asked.keys() | own)
    assert not [name for name, each in asked.items() if each.default is MISSING and each.default_factory is MISSING]
