"""Which names a deployment may have, wherever a name is taken."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.commands import doctor, down, manifest, status
from bench.errors import BadInput
from bench.targets import Options

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?", re.ASCII)


@given(st.one_of(st.from_regex(LABEL, fullmatch=True), st.text(max_size=40)))
def test_a_name_is_a_label_of_rfc_1123_or_it_is_refused(name: str) -> None:
    reserved = name == "default" or name.startswith(("kube-", "kuberay-"))
    if LABEL.fullmatch(name) and not reserved:
        assert Options(name=name).name == name
    else:
        with pytest.raises(BadInput, match="--name"):
            Options(name=name)


@pytest.mark.parametrize("name", ["a b", "kube-system", "default", "kuberay-system", "Mine", "-a", "a-", "", "a" * 33])
def test_what_kubernetes_would_refuse_or_has_itself_is_refused_by_the_manifests_too(name: str) -> None:
    with pytest.raises(BadInput, match="--name"):
        manifest.command(experiment="inference", given={"name": name})


@pytest.mark.parametrize("command", [down.command, status.command, doctor.command])
def test_commands_that_look_refuse_it_as_well(command: object) -> None:
    with pytest.raises(BadInput, match="reserved"):
        command({"name": "kube-system"})  # type: ignore[operator]
