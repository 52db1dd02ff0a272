"""Checks that the command line accepts a command as a document states it, without running the command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from traceweir.streams.cli.main import app
from traceweir.streams.settings import ENV_PREFIX, Settings

VARIABLES = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
"""Every variable that a process reads."""


def parse(arguments: Sequence[str]) -> None:
    """Parses the arguments of `traceweir`, down to the last subcommand.

    Raises:
        click.UsageError: a command or option does not exist, or an argument is missing.
    """
    command: Any = typer.main.get_command(app)
    rest = list(arguments)
    while hasattr(command, "resolve_command"):
        with command.make_context("traceweir", rest) as context:
            left = [*context._protected_args, *context.args]  # noqa: SLF001  # click's own groups read them so
            _, command, rest = command.resolve_command(context, left)
    with command.make_context("traceweir", rest):
        pass


def blocks(markdown: str, language: str) -> list[str]:
    """Returns the code blocks of a page in one language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", markdown, re.DOTALL)


def commands_in(markdown: str) -> Iterator[list[str]]:
    """Yields the arguments of each `traceweir` command in the shell blocks of a page."""
    for block in blocks(markdown, "bash"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["traceweir"]:
                yield words[1 : words.index(">")] if ">" in words else words[1:]


def variables_in(text: str) -> set[str]:
    """Returns every `TRACEWEIR_...` name in a text."""
    return set(re.findall(rf"\b{ENV_PREFIX}[A-Z0-9_]*[A-Z0-9]\b", text))
