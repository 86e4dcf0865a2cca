"""What `bench up` takes where no target was named."""

from __future__ import annotations

import pytest

from bench.errors import TargetFailed
from bench.targets import Given, autodetection


@pytest.fixture(autouse=True)
def _clusters_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autodetection.kubectl.Kubectl, "answers", lambda self: self.context != "kind-stopped")


@pytest.mark.parametrize(
    ("contexts", "engine", "given", "expected"),
    [
        (["prod", "kind-raymeter"], True, {}, ("k8s", "kind-raymeter")),
        (["kind-stopped"], True, {}, ("docker", "Docker engine answers")),
        (["minikube"], False, {}, ("k8s", "minikube")),
        (["prod"], True, {}, ("docker", "Docker engine answers")),
        (None, True, {}, ("docker", "Docker engine answers")),
        (["prod"], False, {}, ("local", "kubectl knows no context")),
        (None, False, {"context": "prod"}, ("k8s", "--context prod")),
    ],
)
def test_the_fullest_deployment_that_is_at_hand_is_taken(
    contexts: list[str] | None,
    engine: bool,
    given: Given,
    expected: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known() -> tuple[list[str], str | None]:
        if contexts is None:
            raise TargetFailed("kubectl is not there.")
        return contexts, None

    monkeypatch.setattr(autodetection.kubectl, "contexts", known)
    monkeypatch.setattr(autodetection, "_missing_engine", lambda: "" if engine else "it does not answer")
    choice = autodetection.find(given)
    assert choice.target.name == expected[0]
    assert expected[1] in choice.reason


def test_the_context_that_was_found_is_used_and_not_whichever_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autodetection.kubectl, "contexts", lambda: (["prod", "kind-raymeter"], "prod"))
    assert autodetection.find({}).options.given()["context"] == "kind-raymeter"
