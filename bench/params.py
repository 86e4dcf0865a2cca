"""Parameters as an experiment declares them: read once here, for the command line, the plan, the list and the docs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from bench.errors import BadInput, did_you_mean
from bench.model import Value
from bench.record.files import expand_home

PATHS = ("PATH", "FOLDER", "FILE")  # units of parameters


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What can be varied: its type, bounds, default, unit and help."""

    name: str
    type: type
    default: Value
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    unit: str = ""
    help: str = ""

    @property
    def is_path(self) -> bool:
        """Whether its values are paths, which may begin with `~`."""
        return self.unit in PATHS

    @property
    def range(self) -> str:
        """The values that may be given, in words."""
        if self.choices:
            return " | ".join(self.choices)
        if self.type is bool:
            return "true | false"
        if self.minimum is None and self.maximum is None:
            return self.type.__name__
        low = "" if self.minimum is None else f"{self.minimum:g}"
        high = "" if self.maximum is None else f"{self.maximum:g}"
        return f"{low}..{high}"


def declared(params: type[Any]) -> Mapping[str, Parameter]:
    """The parameters that the dataclass `params` declares, by name.

    The one clever function: it reads `Annotated[int, typer.Option(min=1, metavar="INPUTS", help="...")] = 10`, so that
    a parameter is written down in one place and everything else carries it without naming it.
    """
    return _declared(params)  # type: ignore[arg-type]  # mypy takes no class for hashable


@cache  # each cell of a plan asks, and to read the types takes milliseconds
def _declared(params: type[Any]) -> Mapping[str, Parameter]:
    hints = get_type_hints(params, include_extras=True)
    found = {}
    for field in dataclasses.fields(params):
        if get_origin(hints[field.name]) is not Annotated:
            raise TypeError(f"{params.__qualname__}.{field.name} must be Annotated[type, typer.Option(...)]")
        found[field.name] = as_declared(field.name, hints[field.name], default=cast(Value, field.default))
    return MappingProxyType(found)


def as_declared(name: str, annotation: Any, *, default: Value) -> Parameter:
    """What `Annotated[type, typer.Option(...)]` says of the parameter `name`."""
    kind, option = get_args(annotation)[:2]
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    return Parameter(
        name=name,
        type=str if choices else kind,
        default=default,
        choices=tuple(str(choice) for choice in choices),
        minimum=option.min,
        maximum=option.max,
        unit=option.metavar or "",
        help=option.help or "",
    )


def parse(parameter: Parameter, text: str) -> Value:
    """The value that a person typed. Raises BadInput in the words of the declaration."""
    try:
        value: Value = _BOOLEANS[text.lower()] if parameter.type is bool else parameter.type(text)
    except (ValueError, KeyError):
        raise BadInput(
            f"{parameter.name}={text}: that is no {parameter.type.__name__}.", f"It takes {parameter.range}."
        ) from None
    return check(parameter, value)


def check(parameter: Parameter, value: Value) -> Value:
    """`value`, if `parameter` may have it, a path with the home folder in place of `~`. Raises BadInput."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    wrong = (
        not isinstance(value, (float, int) if parameter.type is float else parameter.type)
        or (parameter.type is not bool and isinstance(value, bool))
        or (bool(parameter.choices) and value not in parameter.choices)
        or (number is not None and parameter.minimum is not None and number < parameter.minimum)
        or (number is not None and parameter.maximum is not None and number > parameter.maximum)
        or (isinstance(number, float) and not math.isfinite(number))
    )
    if wrong:
        raise BadInput(f"{parameter.name}={value} is out of bounds.", f"It takes {parameter.range}: {parameter.help}")
    return expand_home(value) if parameter.is_path and isinstance(value, str) else value


def settings(params: type[Any], texts: list[str]) -> dict[str, tuple[Value, ...]]:
    """`--set name=v1,v2` as values to vary. Raises BadInput, naming the choices."""
    known = declared(params)
    chosen: dict[str, tuple[Value, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise BadInput(f"--set {text}: it must be name=value or name=value,value.")
        if name not in known:
            raise BadInput(
                f"--set {text}: there is no parameter {name}.",
                f"{did_you_mean(name, known)}There are: {', '.join(known)}.",
            )
        if name in chosen:
            raise BadInput(f"--set {text}: {name} is set twice.", "Give its values in one: name=v1,v2.")
        chosen[name] = tuple(dict.fromkeys(parse(known[name], value) for value in values.split(",")))
    return chosen


def complete(params: type[Any], given: Mapping[str, Value]) -> dict[str, Value]:
    """`given` with every default filled in, checked."""
    known = declared(params)
    unknown = given.keys() - known.keys()
    if unknown:
        raise BadInput(
            f"There is no parameter {', '.join(sorted(unknown))}.",
            f"{did_you_mean(min(unknown), known)}There are: {', '.join(known)}.",
        )
    return {name: check(parameter, given.get(name, parameter.default)) for name, parameter in known.items()}


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
