"""Typer's app, with a help in which a flag has no type: `--json`, and not `--json <bool>`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption


# Any in this module: the types come from typer's own copy of click or from the package click, depending on its version.
class PlainCommand(TyperCommand):
    """A command whose flags have no type in its help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters, with `--help`."""
        return _without_flag_types(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands whose own flags have no type in its help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters, with `--help`."""
        return _without_flag_types(super().get_params(ctx))


class CommandApp(typer.Typer):
    """An app whose commands and groups are plain ones, where they name no other class."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": PlainGroup, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Returns a decorator that registers a function as a command."""
        return super().command(name, **{"cls": PlainCommand, **options})


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption) and parameter.is_flag and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
