"""Which target `bench up` takes where none was named and none is up: what is at hand, the fullest appliance first."""

from __future__ import annotations

from dataclasses import replace

from bench.errors import BenchError
from bench.targets import Choice, Options, create
from bench.targets.docker import engine
from bench.targets.k8s import kubectl


def find(options: Options) -> Choice:
    """A target and its options, and why it is that one. A context that was found is named: the current may be another."""
    context = options.context or _laptop_context()
    if context:
        why = f"--context {context} was given" if options.context else f"kubectl knows the context {context}"
        return _choice("k8s", replace(options, context=context), why)
    if not (missing := _missing_engine()):
        return _choice("docker", options, "a Docker engine answers, and kubectl knows no context of kind or minikube")
    return _choice("local", options, f"no context of kind or minikube is at hand, and no Docker engine: {missing}")


def _choice(name: str, options: Options, why: str) -> Choice:
    return Choice(target=create(name, options), options=options, why=why)


def _laptop_context() -> str | None:
    try:
        return kubectl.laptop_context()
    except BenchError:
        return None


def _missing_engine() -> str:
    """Why no Docker engine can be used; empty where one can."""
    try:
        engine.connect().close()
    except BenchError as error:
        return error.what.rstrip(".")
    return ""
