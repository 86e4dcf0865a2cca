"""Prints help in panels: plain sections of options and commands, readable in a pipe and without importing rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

OPTIONS, ARGUMENTS = "Options", "Arguments"  # panels of the parameters that declare none


def panels(command: Any, context: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The rows of each panel of a command's help: arguments first, and options without a panel last."""
    rows: dict[str, list[tuple[str, str]]] = {ARGUMENTS: []}
    last: list[tuple[str, str]] = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        panel = getattr(parameter, "rich_help_panel", None)
        if parameter.param_type_name == "argument":
            name, text = record
            rows[ARGUMENTS].append((name.partition(" <")[0], text))  # without its type, which the help tells
        elif panel is None:
            last.append(record)
        else:
            rows.setdefault(panel, []).append(record)
    return ((title, records) for title, records in [*rows.items(), (OPTIONS, last)] if records)


def _write(formatter: Any, sections: Iterable[tuple[str, list[tuple[str, str]]]]) -> None:
    for title, records in sections:
        with formatter.section(title):
            formatter.write_dl(records)


class PanelCommand(TyperCommand):
    """A command whose options are listed by panel."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write(formatter, panels(self, ctx))


class PanelGroup(TyperGroup):
    """A group whose commands are listed by panel, each with its summary."""

    def summaries(self) -> Mapping[str, Mapping[str, str]]:
        """The summary of each command, by panel and name."""
        return {"Commands": {name: command.get_short_help_str(80) for name, command in self.commands.items()}}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        listed = self.summaries()
        width = max(len(name) for commands in listed.values() for name in commands)
        _write(
            formatter,
            ((panel, [(name.ljust(width), text) for name, text in rows.items()]) for panel, rows in listed.items()),
        )
        _write(formatter, panels(self, ctx))
