"""Lets mypy accept actors: a class under `@ray.remote` has `remote` and `options`, which mypy cannot read from a decorator."""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import ClassDefContext, Plugin


class RayPlugin(Plugin):
    """Gives a class under `@ray.remote` any attribute; its instances keep those that it declares."""

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _allow_class_attributes if fullname == "ray.remote" else None


def _allow_class_attributes(context: ClassDefContext) -> None:
    context.cls.info.meta_fallback_to_any = True


def plugin(_version: str) -> type[Plugin]:
    """The plugin for any version of mypy."""
    return RayPlugin
