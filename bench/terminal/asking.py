"""Makes commands for typer of functions whose arguments are groups of declared options."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from bench.errors import BadInput, did_you_mean
from bench.options import OfTargets, RunRequest, choices, declared, is_option, is_repeatable
from bench.terminal import completion
from bench.terminal.paths import as_path

_PATHS = ("PATH", "FOLDER", "FILE")  # metavars of options that are paths, though their type is text


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Options of which `make` makes one argument."""

    annotations: Mapping[str, Any]
    defaults: Mapping[str, Any]
    make: Callable[[Mapping[str, Any]], Any]


def asking(work: Callable[..., None]) -> Callable[..., None]:
    """`work` as a command for typer. An argument that is a dataclass is asked for field by field.

    So is a mapping that is marked with `OfTargets`: it gets those of the targets' options that are not at their default.
    The defaults of a dataclass's options are those of the argument's default, if it has one.
    """
    hints = get_type_hints(work, include_extras=True)
    groups = {name: _group(name, hints[name], option.default) for name, option in signature(work).parameters.items()}
    annotations = {name: annotation for group in groups.values() for name, annotation in group.annotations.items()}
    asked = [
        _parameter(name, annotation, group.defaults[name])
        for group in groups.values()
        for name, annotation in group.annotations.items()
    ]

    def command(**given: Any) -> None:
        values = {name: _checked(name, annotations[name], value) for name, value in given.items()}
        work(
            **{
                name: group.make({option: values[option] for option in group.annotations})
                for name, group in groups.items()
            }
        )

    command.__signature__ = Signature(asked)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {option.name: option.annotation for option in asked}
    command.__doc__ = work.__doc__
    return command


def _group(name: str, hint: Any, default: Any) -> _Group:
    """What is asked for in place of the argument `name`: itself, if it is declared as an option."""
    if is_dataclass(hint):
        kind: Any = hint
        start = kind() if default is Parameter.empty else default
        return _Group(annotations=declared(kind), defaults=vars(start), make=lambda values: kind(**values))
    for mark in get_args(hint)[1:]:
        if isinstance(mark, OfTargets):
            return _of_targets(mark)
    if not is_option(hint):
        raise TypeError(f"{name} must be Annotated[type, typer.Option(...)], a dataclass or options of targets")
    return _Group(annotations={name: hint}, defaults={name: default}, make=lambda values: values[name])


def _of_targets(mark: OfTargets) -> _Group:
    from bench import targets  # which commands that read records do not need

    defaults, known = targets.defaults(), targets.declared_options()
    annotations = {name: known[name] for name in mark.only or known}

    def given(values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            # A session may be resumed from another folder.
            name: str(as_path(value).resolve()) if get_args(known[name])[1].metavar in _PATHS else value
            for name, value in values.items()
            if value != defaults[name]
        }

    return _Group(annotations=annotations, defaults=defaults, make=given)


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """A parameter as typer reads it, of types that typer knows, with what the shell offers for it."""
    kind, option = get_args(annotation)[0], copy(get_args(annotation)[1])
    option.autocompletion = completion.of_option(name, choices(annotation))
    if Path in (kind, *get_args(kind)):
        option.parser = as_path
    elif get_origin(kind) is Literal:
        kind = str
    elif get_origin(kind) is tuple:
        kind, default = list[str], list(default)
    elif is_repeatable(annotation):
        kind, default = list[str], [default] if default else []
    elif get_origin(kind) is Mapping:  # of RunRequest, the levels that a plan file has
        kind, default, option.parser = Any, None, as_path
        option.is_eager, option.callback = True, _load_plan
    typed = Annotated[kind, option]  # type: ignore[valid-type]  # of which typer makes its option
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=typed)


def _checked(name: str, annotation: Any, value: Any) -> Any:
    """A value as it is handed on. Raises BadInput for a word that is none of the option's."""
    words = choices(annotation)
    if words and value and value not in words:
        raise BadInput(
            f"--{name.replace('_', '-')} must be one of {', '.join(words)}, got {value!r}.",
            f"{did_you_mean(value, words)}See --help.",
        )
    if is_repeatable(annotation):
        return ",".join(value)
    return tuple(value) if get_origin(get_args(annotation)[0]) is tuple else value


def _load_plan(context: typer.Context, path: Path | None) -> Any:
    """Read the plan before the other options are: what it says takes the place of their defaults."""
    if path is None:
        return {}
    from bench.planning import plan_file  # with a parser of YAML, which few commands need

    plan = plan_file.load(path)
    known = declared(RunRequest)
    options = {name: [value] if is_repeatable(known.get(name)) else value for name, value in plan.options.items()}
    context.default_map = {**options, "experiments": list(plan.experiments)}
    return plan.experiments


def typed_command() -> str:
    """What the user typed, to be typed again."""
    return " ".join(["bench", *map(_quoted, sys.argv[1:])])


def _quoted(word: str) -> str:
    """`word` for a shell; bytes that are not UTF-8 as escapes, which bash, zsh and ksh understand within $'...'."""
    if not any("\udc80" <= letter <= "\udcff" for letter in word):
        return shlex.quote(word)
    text = os.fsencode(word.replace("\\", "\\\\").replace("'", "\\'")).decode(errors="backslashreplace")
    return f"$'{text}'"
