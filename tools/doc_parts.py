"""Writes the parts of README and docs/ that come from the code: tables of commands, options, experiments, dashboards, exit codes, coverage."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import typer
from typer.main import get_command

from bench import errors, experiments
from bench.errors import BadInput
from bench.params import declared

MARK = re.compile(r"(?P<begin><!-- bench docs: (?P<name>[a-z -]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


OPENING = "After this page you"
"""The first words of every page: it opens with what its reader can do afterwards."""

COMPLETION = {"--install-completion", "--show-completion"}
UNSAID: tuple[Any, ...] = (None, "", [], (), False)
"""Defaults that a table leaves empty: the help says what happens then."""

HEADINGS = (
    "What it asks",
    "How it is measured",
    "How to read it",
    "What the study found",
    "What we find",
    "Parameters, metrics, arms, profiles",
)


def new_page(name: str) -> str:
    """The page of an experiment as its author finds it: what the code cannot know is left to write."""
    sections = "\n\n".join(f"## {heading}" for heading in HEADINGS)
    return f"# {name}\n\n{OPENING} ...\n\n{_summary(name)}\n\n{sections}\n\n<!-- bench docs: experiment {name} -->\n<!-- end -->\n"


def fill(text: str, app: typer.Typer) -> str:
    """`text` with every marked part generated again. Raises BadInput on an unknown part."""

    def written(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in PARTS:
            raise BadInput(f"A part {name!r} is asked for.", f"Choose from: {', '.join(PARTS)}.")
        return f"{match['begin']}\n{PARTS[name](app)}\n\n{match['end']}"

    return MARK.sub(written, text)


def commands(app: typer.Typer) -> str:
    """A row for each command: what it does, and an example."""
    group = get_command(app)
    rows = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]  # a group, typed as a command
        text = inspect.cleandoc(command.help or "")
        what, _, example = text.partition("Example: ")
        rows.append((f"`bench {name}`", " ".join(what.split()), _code(example.strip())))
    return _table(("command", "what it does", "for example"), rows)


def options(app: typer.Typer) -> str:
    """A row for each option: the commands that have it, what it sets, its default."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name, command in _each_command(app):
        for option in command.params:
            if option.param_type_name == "option" and not COMPLETION & set(option.opts):
                spelled = " ".join(filter(None, (", ".join(option.opts), option.metavar)))
                what, _, told = (option.help or "").partition(" [default: ")
                default = told.rstrip("]") if option.default in UNSAID else str(option.default)
                rows.setdefault((f"`{spelled}`", what, default), []).append(name)
    return _table(
        ("option", "what it sets", "default", "commands"),
        [(*key, ", ".join(names)) for key, names in rows.items()],
    )


def _each_command(app: typer.Typer) -> Iterator[tuple[str, Any]]:
    """Each command with its name, those of a group with the group's name before theirs."""
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]  # a group, typed as a command
        members = getattr(command, "commands", None)
        yield from ((f"{name} {each}", member) for each, member in members.items()) if members else ((name, command),)


def _code(text: str) -> str:
    """`text` as code in a cell of a table, where a bar would begin the next cell."""
    if "|" in text:
        return f"<code>{text.replace('|', '&#124;')}</code>"
    return f"`{text}`" if text else ""


def exit_codes(_app: typer.Typer) -> str:
    """A row for each cause of failure."""
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.BenchError)]
    rows = [
        (str(kind.exit_code), kind.__name__, kind.__doc__ or "") for kind in classes if kind is not errors.BenchError
    ]
    rows += [
        ("0", "", "Success."),
        ("1", "", "A bug: the traceback shows where. `--debug` shows a traceback for the other codes too."),
    ]
    return _table(("exit code", "name", "what happened"), sorted(rows, key=lambda row: int(row[0])))


def all_experiments(_app: typer.Typer) -> str:
    """A row for each experiment: what it asks."""
    return _experiments("docs/experiments/")


def pages_of_experiments(_app: typer.Typer) -> str:
    """The same, as seen from where those pages are."""
    return _experiments("")


def _experiments(folder: str) -> str:
    rows = [(f"[`{name}`]({folder}{name}.md)", _summary(name)) for name in experiments.NAMES]
    return _table(("experiment", "what it is"), rows)


def answers(_app: typer.Typer) -> str:
    """A row for each schema of what `--json` prints."""
    from bench.terminal.schemas import SCHEMAS

    rows = [(f"`raymeter.{name}`", str(version), what) for name, (version, what) in SCHEMAS.items()]
    return _table(("schema", "version", "what prints it, and what it has"), rows)


def boards(_app: typer.Typer) -> str:
    """Each panel of each board, its unit, and what it means."""
    from bench.prometheus import boards as committed
    from bench.prometheus.board_queries import panels

    loaded = committed.load()
    rows = [
        (loaded[name]["title"], panel["title"], _unit(panel), panel["description"])
        for name in committed.NAMES
        for panel in panels(loaded[name])
    ]
    return _table(("board", "panel", "unit", "what it means"), rows)


_UNITS = {"percentunit": "%", "percent": "%", "bytes": "B", "decbytes": "B", "Bps": "B/s", "pps": "packets/s", "s": "s"}
"""What Grafana's units are called; others say nothing, and the title does."""


def _unit(panel: Mapping[str, Any]) -> str:
    return _UNITS.get(panel["fieldConfig"]["defaults"].get("unit", ""), "")


def frames(_app: typer.Typer) -> str:
    """What a row of each data frame is, and each column with its type and unit."""
    from bench.analysis.frame_columns import FRAMES

    return "\n\n".join(
        f"### {name}\n\nA row is {frame.row}.\n\n"
        + _table(
            ("column", "type", "unit", "what it is"),
            [(f"`{each.name}`", each.type, each.unit, each.help) for each in frame.columns],
        )
        for name, frame in FRAMES.items()
    )


def coverage(_app: typer.Typer) -> str:
    """How often each interval holds the true value, by simulation, and how wide it is."""
    from tools.interval_coverage import INTERVALS, simulate

    rows: dict[tuple[str, str], list[str]] = {}
    for each in simulate():
        cell = f"{100 * each.covered:.1f} % ({100 * each.width:.1f} %)"
        rows.setdefault((each.noise, str(each.n)), []).append(cell)
    return _table(("noise", "n", *INTERVALS), [(*key, *cells) for key, cells in rows.items()])


def _summary(name: str) -> str:
    return experiments.summary(name).partition(": ")[2]


def _experiment(_app: typer.Typer, *, name: str) -> str:
    """Params, metrics, arms and profiles of one experiment."""
    found = experiments.load(name)
    params = [
        (f"`{p.name}`", p.range.replace("|", "\\|"), p.unit, str(p.default), p.help)
        for p in declared(found.params).values()
    ]
    metrics = [(f"`{m.name}`", m.unit, m.direction, m.help) for m in found.metrics]
    arms = [(f"`{arm.name}`", arm.role, arm.help) for arm in found.arms]
    profiles = [(f"`{key}`", p.help) for key, p in found.profiles.items()]
    return "\n\n".join(
        (
            _table(("parameter", "values", "unit", "default", "what it is"), params),
            _table(("metric", "unit", "", "what it is"), metrics),
            _table(("arm", "role", "what it is"), arms),
            _table(("profile", "what it is"), profiles),
        )
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PARTS: dict[str, Callable[[typer.Typer], str]] = {
    "answers": answers,
    "boards": boards,
    "commands": commands,
    "coverage": coverage,
    "experiments": all_experiments,
    "exit codes": exit_codes,
    "frames": frames,
    "options": options,
    "pages of experiments": pages_of_experiments,
    **{f"experiment {name}": partial(_experiment, name=name) for name in experiments.NAMES},
}
