"""Typer's app, with a help in which a flag has no type (`--json`, and not `--json <bool>`), and options that are text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

# Any in this module: the types come from typer's own copy of click or from the package click, depending on its version.

_NAMES_OF_FILES = ("FILE", "DIR")
"""The metavars of options whose value is the name of a file or a folder, which can have any bytes."""


class Panel(StrEnum):
    """A titled part of the list of commands in `traceweir --help`, in the order of the list."""

    FIRST_STEPS = "First steps"
    KAFKA = "Run on Kafka"
    WATCH = "Find and mend faults"
    CONFIGS = "Change a config"
    EVAL_SETS = "Eval sets"
    LABELS = "Labels of people"


_POSITION_OF_PANEL = {str(panel): position for position, panel in enumerate(Panel)}


class PlainCommand(TyperCommand):
    """A command whose flags have no type in its help. The values of its options are text, or names of files."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line.

        Raises:
            typer.BadParameter: the value of an option is no text.
        """
        rest: list[str] = super().parse_args(ctx, args)
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.metavar not in _NAMES_OF_FILES:
                _check_text(ctx.params.get(parameter.name), parameter.opts[0])
        return rest

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters, with `--help`."""
        return _without_flag_types(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands, listed by their panels, whose own flags have no type in its help."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names in the order of their panels; in a panel, in the order in which they were added."""
        positions = {
            name: _POSITION_OF_PANEL.get(getattr(command, "rich_help_panel", None) or "", len(Panel))
            for name, command in self.commands.items()
        }
        return sorted(super().list_commands(ctx), key=positions.__getitem__)

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


def _check_text(value: object, option: str) -> None:
    """Refuses bytes that Python could not decode: such a text can be neither a record nor JSON."""
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, str) and not _is_text(each):
            raise typer.BadParameter(
                f"{each!r:.80} is not text in the encoding of this system, {sys.getfilesystemencoding()}; write the value in "
                "that encoding",
                param_hint=option,
            )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption) and parameter.is_flag and parameter.metavar is None:
            parameter.metavar = ""
    return parameters
