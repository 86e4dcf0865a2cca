"""Chooses a target if none is named and none is up: k8s, docker or local, the first one that can be used."""

from __future__ import annotations

from bench.errors import BenchError
from bench.targets import Choice, Given, chosen
from bench.targets.docker import engine
from bench.targets.k8s import kubectl


def find(given: Given) -> Choice:
    """The first target that can be used. Its options name the context, as the current one may be another."""
    context = given.get("context") or _laptop_context()
    if context:
        reason = f"--context {context} was given" if given.get("context") else f"kubectl knows the context {context}"
        return chosen("k8s", {**given, "context": context}, reason)
    if not (missing := _missing_engine()):
        return chosen("docker", given, "a Docker engine answers, and kubectl knows no context of kind or minikube")
    return chosen(
        "local", given, f"kubectl knows no context of kind or minikube, and there is no Docker engine: {missing}"
    )


def _laptop_context() -> str | None:
    try:
        return kubectl.laptop_context()
    except BenchError:
        return None


def _missing_engine() -> str:
    """Why no Docker engine can be used; empty if one can."""
    try:
        engine.connect().close()
    except BenchError as error:
        return error.what.rstrip(".")
    return ""
