"""Which target `bench up` takes where none was named and none is up: what is at hand, the fullest appliance first."""

from __future__ import annotations

from bench.errors import BenchError
from bench.targets import Options, docker_engine, kubectl


def find(options: Options) -> tuple[str, str]:
    """The name of a target, and why it is that one."""
    if options.context:
        return "k8s", f"--context {options.context} was given"
    context = _laptop_context()
    if context:
        return "k8s", f"kubectl knows the context {context}"
    if _engine_answers():
        return "docker", "a Docker engine answers, and kubectl knows no context of kind or minikube"
    return "local", "neither a context of kind or minikube nor a Docker engine is at hand"


def _laptop_context() -> str | None:
    """A context of kind or minikube: what is anyone else's cluster has to be named."""
    try:
        known, _ = kubectl.contexts()
    except BenchError:
        return None
    return next((name for name in known if name.startswith("kind-") or name == "minikube"), None)


def _engine_answers() -> bool:
    try:
        docker_engine.connect().close()
    except BenchError:
        return False
    return True
