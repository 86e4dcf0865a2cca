"""Who goes on with a session hears what is not as it was when its runs were measured."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from builders import a_topology
from made_up import a_facts, made_up

from bench import identity
from bench.model import Run
from bench.runner import changed

A_RUN = made_up(cells=1, blocks=1)[1][0]
HERE = {"python": platform.python_version(), "msgspec": version("msgspec")}


def runs(*facts: dict[str, Any]) -> list[Run]:
    known = {"kernel": platform.release(), "code_hash": identity.code_hash(), "versions": HERE}
    return [replace(A_RUN, facts=a_facts(a_topology("multi", nodes=2), **{**known, **each})) for each in facts]


def test_what_is_as_it_was_is_not_told_and_neither_is_a_run_without_facts() -> None:
    assert changed.since(runs({}, {}), is_local=True) == []
    assert changed.since([replace(A_RUN, facts=None)], is_local=True) == []


def test_code_versions_and_kernel_that_have_changed_are_told_with_both_values() -> None:
    old = {"code_hash": "0123", "kernel": "4.4", "versions": {**HERE, "msgspec": "0.1", "no-such-package": "1.0"}}
    assert changed.since(runs({}, old), is_local=True) == [
        f"raymeter code was {identity.code_hash()} or 0123 and is {identity.code_hash()}",
        f"msgspec was {HERE['msgspec']} or 0.1 and is {HERE['msgspec']}",
        f"kernel was {platform.release()} or 4.4 and is {platform.release()}",
        "no-such-package was 1.0 and is not installed",
    ]


def test_of_nodes_elsewhere_the_code_alone_is_compared() -> None:
    old = {"code_hash": "0123", "kernel": "4.4", "versions": {"python": "3.0", "kuberay": "1.0"}}
    assert changed.since(runs(old), is_local=False) == [f"raymeter code was 0123 and is {identity.code_hash()}"]
