"""Defines the app and its commands, and prints each expected failure as one line with its exit code."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.main import get_command

from bench import commands, process_environment
from bench.errors import BadInput, BenchError, CannotWrite, Stopped
from bench.sanitize import clean_line, clean_text
from bench.terminal.asking import asking
from bench.terminal.help import PanelCommand, PanelGroup
from bench.terminal.output import Level, set_level
from bench.terminal.streams import outlive_readers

PANELS: Mapping[str, tuple[str, ...]] = {
    "Measure": ("run", "plan", "resume", "pilot", "selfcheck", "try"),
    "Results": ("report", "compare", "show", "list", "history", "baseline", "rm"),
    "Share": ("export", "verify", "replay"),
    "Cluster": ("up", "down", "status", "doctor", "manifest", "image", "data"),
}
"""The commands by panel of the help. Each is a module of bench.commands, whose docstring is the command's help."""
NAMES = tuple(name for names in PANELS.values() for name in names)

HOW: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": None}


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is used."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        if name not in self._made:
            module = import_module(f"bench.commands.{name}")
            self._made[name] = get_command(getattr(module, "app", None) or _alone(name, module))
            self._made[name].name = name
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


def _alone(name: str, module: ModuleType) -> typer.Typer:
    """The app of a module with one command."""
    app = typer.Typer(add_completion=False, **HOW)
    app.command(name, cls=PanelCommand, help=module.__doc__)(asking(module.command))
    return app


def summary(name: str) -> str:
    """The first line of a command's help, read from its file: to import all commands takes half a second."""
    with (Path(commands.__file__).parent / f"{name}.py").open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').rstrip(".")


_UsageError: Any = typer.BadParameter.__mro__[1]
"""The usage error of typer, which has no public name."""


@contextmanager
def _one_line() -> Iterator[None]:
    """Turn usage errors and Ctrl-C into errors of raymeter, which are printed in one line."""
    try:
        yield
    except _UsageError as error:
        help_text = error.ctx.get_help() if error.ctx else ""
        if error.message == help_text:  # no arguments: the help is printed
            raise
        raise BadInput(error.format_message(), f"See `{_typed(error.ctx)} --help`." if error.ctx else "") from None
    except KeyboardInterrupt:  # typer would print nothing
        raise Stopped("Stopped by Ctrl-C.", "`bench down` removes what is still running.") from None


def _typed(context: Any) -> str:
    """The command as the user types it, however this process was started."""
    return f"{_typed(context.parent)} {context.info_name}" if context.parent else "bench"


class _Group(PanelGroup):
    def summaries(self) -> Mapping[str, Mapping[str, str]]:
        return {panel: {name: summary(name) for name in names} for panel, names in PANELS.items()}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # nothing is added to it

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with _one_line():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _one_line():
            return super().invoke(ctx)


app = typer.Typer(
    name="bench",
    cls=_Group,
    help="Measure Ray on one node and on several, and compare the results.\n\nExample: bench run inference --profile tiny",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    **HOW,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"raymeter {version('raymeter')}, Ray {version('ray')}, Python {platform.python_version()}")
        raise typer.Exit


Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of a failure.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the results and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every step and the parameters of each run.")]
Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_print_version, help="Print the versions of raymeter and Ray."),
]


@app.callback()
def settings(  # noqa: D103, its docstring would take the place of the app's help
    debug: Debug = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    show_version: Version = False,  # noqa: ARG001, its callback has printed it
) -> None:
    global _debug  # noqa: PLW0603, read once by main, after typer has gone
    _debug = debug
    if quiet and verbose:
        raise BadInput("--quiet and --verbose exclude each other.", "Use one of them.")
    set_level(Level.QUIET if quiet else Level.VERBOSE if verbose else Level.USUAL)


_debug = False


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    if sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__:
        outlive_readers()
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # for characters that the terminal's encoding lacks
    try:
        process_environment.settle(main)
        app()
    except BenchError as error:
        if _debug:
            raise
        typer.echo(f"bench: {clean_line(str(error))}", err=True)
        for line in error.details:
            typer.echo(clean_text(line), err=True)
        sys.exit(error.exit_code)
    except OSError as error:  # of a disk, a folder or a socket, wherever it is raised
        if _debug:
            raise
        subject = f"{error.filename} cannot be used" if error.filename else "The operating system refused a call"
        refused = CannotWrite(
            f"{subject}: {error.strerror or error}.",
            "Check its permissions and free space; --debug prints the traceback.",
        )
        typer.echo(f"bench: {clean_line(str(refused))}", err=True)
        sys.exit(refused.exit_code)


if __name__ == "__main__":
    main()
