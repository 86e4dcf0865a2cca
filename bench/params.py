"""Reads the parameters that an experiment declares, and checks the values that are given for them."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec

from bench.errors import BadInput, did_you_mean
from bench.model import Value
from bench.record.files import expand_home

PATHS = ("PATH", "FOLDER", "FILE")  # units of parameters
_EXAMPLE = "Annotated[type, Meta(...)], e.g. {name}: Annotated[int, Meta(ge=1)] = 1"
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What can be varied: its type, bounds, default, unit and help."""

    name: str
    annotation: Any  # Annotated[type, Meta(...)]: what msgspec checks values against
    type: type
    default: Value
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    unit: str = ""
    help: str = ""
    is_scaling: bool = False  # it counts workers: cells that differ in it alone are a scaling series
    is_size: bool = False  # an amount of work, which `--scale` shrinks
    is_amount: bool = False  # an amount of work, whether `--scale` shrinks it or not
    changes: str = ""  # what one unit of work is called whose size or kind it changes: "job"

    @property
    def range(self) -> str:
        """The values that may be given: 1..100, near | far."""
        if self.choices or self.type is bool:
            return " | ".join(self.choices or ("true", "false"))
        if self.minimum is None and self.maximum is None:
            return self.type.__name__
        return f"{_bound(self.minimum)}..{_bound(self.maximum)}"

    def describe_range(self) -> str:
        """The values that may be given, as a message has them: an integer from 1 to 100, one of near, far."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        match self.minimum, self.maximum:
            case None, None:
                return _KINDS[self.type]
            case low, None:
                return f"{_KINDS[self.type]} of at least {_bound(low)}"
            case None, high:
                return f"{_KINDS[self.type]} of at most {_bound(high)}"
            case low, high:
                return f"{_KINDS[self.type]} from {_bound(low)} to {_bound(high)}"

    def as_json(self) -> dict[str, Any]:
        """What a program is told of it."""
        return {key: value for key, value in vars(self).items() if key != "annotation"} | {"type": self.type.__name__}


def _bound(bound: float | None) -> str:
    return "" if bound is None else str(bound) if isinstance(bound, int) else f"{bound:g}"


class BadDeclaration(TypeError):
    """The class that declares parameters, or a field of it, is not what it must be."""

    def __init__(self, what: str, params: type[Any], name: str = "") -> None:
        super().__init__(what)
        self.line = _line_of(params, name)  # now: a module that cannot be imported has no source afterwards


def _line_of(params: type[Any], name: str) -> str:
    """The file and line of a field, or of the class; empty where there is no source."""
    try:
        lines, first = inspect.getsourcelines(params)
    except (OSError, TypeError):
        return ""
    fields = (number for number, line in enumerate(lines) if re.match(rf"\s+{name}\s*[:=]", line))
    return f"{inspect.getsourcefile(params)}, line {first + (next(fields, 0) if name else 0)}"


def declared(params: type[Any]) -> Mapping[str, Parameter]:
    """The parameters that `params`, a frozen dataclass, declares, by name.

    Each is `Annotated[int, Meta(ge=1, description="...", extra={"unit": "INPUTS"})] = 10`: it is written down in one place,
    and everything else carries it without naming it.
    """
    return _declared(params)  # type: ignore[arg-type]  # mypy takes no class for hashable


@cache  # each cell of a plan asks, and to read the types takes milliseconds
def _declared(params: type[Any]) -> Mapping[str, Parameter]:
    if not dataclasses.is_dataclass(params) or "__dataclass_fields__" not in vars(params):
        raise BadDeclaration(
            f"write @dataclass(frozen=True, kw_only=True) above the class {params.__qualname__}", params
        )
    hints = get_type_hints(params, include_extras=True)
    untyped = [name for name, value in vars(params).items() if type(value) in _KINDS and name not in hints]
    for name in (name for name in untyped if not name.startswith("__")):
        raise BadDeclaration(f"{params.__qualname__}.{name} must be {_EXAMPLE.format(name=name)}", params, name)
    parameters = {}
    for field in dataclasses.fields(params):
        name, annotation = field.name, hints[field.name]
        kind, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (None,)
        wrong = ""
        if not any(isinstance(mark, msgspec.Meta) for mark in marks[:1]):
            wrong = f"must be {_EXAMPLE.format(name=name)}"
        elif kind not in _KINDS and get_origin(kind) is not Literal:
            wrong = f"must be bool, int, float, str or Literal, got {kind}"
        elif field.default is dataclasses.MISSING:
            wrong = "must have a default"
        if wrong:
            raise BadDeclaration(f"{params.__qualname__}.{name} {wrong}", params, name)
        parameters[name] = as_declared(name, annotation, default=cast(Value, field.default))
    return MappingProxyType(parameters)


def as_declared(name: str, annotation: Any, *, default: Value) -> Parameter:
    """The parameter `name` that `annotation`, Annotated[type, Meta(...)], declares."""
    kind, meta = get_args(annotation)[:2]
    extra = meta.extra or {}
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    return Parameter(
        name=name,
        annotation=annotation,
        type=str if choices else kind,
        default=default,
        choices=choices,
        minimum=meta.ge,
        maximum=meta.le,
        unit=extra.get("unit", ""),
        help=meta.description or "",
        is_scaling=bool(extra.get("scaling")),
        is_size=bool(extra.get("size")),
        is_amount=bool(extra.get("size") or extra.get("amount")),
        changes=extra.get("changes", ""),
    )


def counts_of_workers(params: type[Any]) -> tuple[str, ...]:
    """The parameters that are marked for scaling series."""
    return tuple(name for name, parameter in declared(params).items() if parameter.is_scaling)


def amounts_of_work(params: type[Any]) -> tuple[str, ...]:
    """The parameters that are marked as an amount of work."""
    return tuple(name for name, parameter in declared(params).items() if parameter.is_amount)


def changed_units(params: type[Any]) -> dict[str, str]:
    """The parameters that change what one unit of work is, with what it is called: points of clustering change a job."""
    return {name: parameter.changes for name, parameter in declared(params).items() if parameter.changes}


def parse(parameter: Parameter, text: str) -> Value:
    """The value that `text` is for `parameter`. Raises BadInput."""
    words = {"yes": "true", "no": "false"} if parameter.type is bool else {}
    return _convert(parameter, words.get(text.lower(), text), is_text=True)


def check(parameter: Parameter, value: Any) -> Value:
    """`value`, if `parameter` may have it, a path with the home folder in place of `~`. Raises BadInput."""
    return _convert(parameter, value, is_text=False)


def _convert(parameter: Parameter, given: Any, *, is_text: bool) -> Value:
    try:
        value: Value = msgspec.convert(given, parameter.annotation, strict=not is_text)
    except msgspec.ValidationError:
        raise _refused(parameter, given) from None
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused(parameter, given)
    return expand_home(value) if parameter.unit in PATHS and isinstance(value, str) else value


def _refused(parameter: Parameter, given: Any) -> BadInput:
    written = repr(given) if isinstance(given, str) else json.dumps(given, default=str, ensure_ascii=False)
    shortened = written if len(written) <= 40 else f"{written[:40]}..."
    hint = did_you_mean(given, parameter.choices) if isinstance(given, str) else ""
    return BadInput(f"{parameter.name} must be {parameter.describe_range()}, got {shortened}.", hint.strip())


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
                f"{did_you_mean(name, known)}Choose from: {', '.join(known)}.",
            )
        if name in chosen:
            raise BadInput(f"--set {text}: {name} is set twice.", "Give its values in one: name=v1,v2.")
        try:
            chosen[name] = tuple(dict.fromkeys(parse(known[name], value) for value in values.split(",")))
        except BadInput as error:
            raise BadInput(f"--set {text}: {error.what}", error.hint) from None
    return chosen


def complete(params: type[Any], given: Mapping[str, Value]) -> dict[str, Value]:
    """`given` with every default filled in, checked."""
    known = declared(params)
    unknown = given.keys() - known.keys()
    if unknown:
        raise BadInput(
            f"There is no parameter {', '.join(sorted(unknown))}.",
            f"{did_you_mean(min(unknown), known)}Choose from: {', '.join(known)}.",
        )
    return {name: check(parameter, given.get(name, parameter.default)) for name, parameter in known.items()}


def shrink(parameter: Parameter, value: Value, scale: float) -> Value:
    """That share of a size, within the bounds of its parameter."""
    if isinstance(value, bool | str):
        raise TypeError(f"{parameter.name} is marked as a size, and must be a number")
    least = parameter.minimum if parameter.minimum is not None else 0
    shrunk = max(value * scale, least)
    return float(shrunk) if isinstance(value, float) else round(shrunk)
