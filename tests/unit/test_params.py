"""A parameter is declared once; everything that is said of it comes from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from bench.errors import BadInput
from bench.params import check, complete, declared, parse, settings


@dataclass(frozen=True, kw_only=True)
class Params:
    size: Annotated[int, Meta(ge=1, le=9, description="Object size.", extra={"unit": "MIB"})] = 4
    path: Annotated[Literal["near", "far"], Meta(description="Where it lies.")] = "near"
    share: Annotated[float, Meta(ge=0, description="Of the whole.")] = 0.5
    eager: Annotated[bool, Meta(description="At once.")] = False


def test_a_declaration_says_type_bounds_default_unit_and_help() -> None:
    size = declared(Params)["size"]
    assert (size.type, size.minimum, size.maximum, size.default, size.unit, size.help) == (
        int,
        1,
        9,
        4,
        "MIB",
        "Object size.",
    )
    assert declared(Params)["path"].choices == ("near", "far")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size=3", (3,)),
        ("size=3,3,5", (3, 5)),
        ("path=far", ("far",)),
        ("share=0.25,1", (0.25, 1.0)),
        ("eager=yes", (True,)),
    ],
)
def test_set_gives_values_of_the_declared_type(text: str, expected: tuple[object, ...]) -> None:
    assert list(settings(Params, [text]).values()) == [expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("size=0", "from 1 to 9, got '0'"),
        ("size=10", "from 1 to 9, got '10'"),
        ("size=x", "size must be an integer from 1 to 9, got 'x'."),
        ("size=1.5", "an integer from 1 to 9, got '1.5'"),
        ("path=fare", "path must be one of near, far, got 'fare'. Did you mean far?"),
        ("share=nan", "share must be a number of at least 0, got 'nan'"),
        ("share=inf", "a number of at least 0, got 'inf'"),
        ("share=-1", "at least 0, got '-1'"),
        ("eager=perhaps", "eager must be true or false, got 'perhaps'"),
        ("sise=1", "Choose from: size, path"),
        ("size", "name=value"),
        ("size=", "name=value"),
    ],
)
def test_bad_input_is_refused_in_the_words_of_the_declaration(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words.replace("|", r"\|").replace(".", r"\.")):
        settings(Params, [text])


def test_a_parameter_that_is_set_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="twice"):
        settings(Params, ["size=1", "size=2"])


def test_defaults_fill_what_is_not_given_and_strangers_are_refused() -> None:
    assert complete(Params, {"size": 2}) == {"size": 2, "path": "near", "share": 0.5, "eager": False}
    with pytest.raises(BadInput, match="no parameter colour"):
        complete(Params, {"colour": "red"})


def test_a_value_from_a_file_is_checked_like_one_that_was_typed() -> None:
    size = declared(Params)["size"]
    for wrong in (True, "3", 3.5, 0):
        with pytest.raises(BadInput):
            check(size, wrong)
    assert check(declared(Params)["share"], 1) == 1
    assert parse(size, "9") == 9
