"""What `bench up` takes where no target was named."""

from __future__ import annotations

import pytest

from bench.errors import TargetFailed
from bench.targets import Options, autodetection


@pytest.fixture(autouse=True)
def _clusters_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autodetection.kubectl.Kubectl, "answers", lambda self: self.context != "kind-stopped")


@pytest.mark.parametrize(
    ("contexts", "engine", "options", "expected"),
    [
        (["prod", "kind-raymeter"], True, Options(), ("k8s", "kind-raymeter")),
        (["kind-stopped"], True, Options(), ("docker", "Docker engine answers")),
        (["minikube"], False, Options(), ("k8s", "minikube")),
        (["prod"], True, Options(), ("docker", "Docker engine answers")),
        (None, True, Options(), ("docker", "Docker engine answers")),
        (["prod"], False, Options(), ("local", "at hand")),
        (None, False, Options(context="prod"), ("k8s", "--context prod")),
    ],
)
def test_the_fullest_appliance_that_is_at_hand_is_taken(
    contexts: list[str] | None,
    engine: bool,
    options: Options,
    expected: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known() -> tuple[list[str], str | None]:
        if contexts is None:
            raise TargetFailed("kubectl is not there.")
        return contexts, None

    monkeypatch.setattr(autodetection.kubectl, "contexts", known)
    monkeypatch.setattr(autodetection, "_missing_engine", lambda: "" if engine else "it does not answer")
    choice = autodetection.find(options)
    assert choice.target.name == expected[0]
    assert expected[1] in choice.why


def test_the_context_that_was_found_is_used_and_not_whichever_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autodetection.kubectl, "contexts", lambda: (["prod", "kind-raymeter"], "prod"))
    assert autodetection.find(Options()).options.context == "kind-raymeter"
