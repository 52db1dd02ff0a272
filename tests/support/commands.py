"""Checks that the command line accepts a command as a document states it, without running the command."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import typer
from tests.support.paths import ROOT

from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.main import app

VARIABLES = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
"""Every variable that a process reads."""


@functools.cache
def _whole_command() -> Any:
    return typer.main.get_command(app)


def parse(arguments: Sequence[str]) -> None:
    """Parses the arguments of `traceweir`, down to the last subcommand.

    Raises:
        click.UsageError: a command or option does not exist, or an argument is missing.
    """
    command = _whole_command()
    rest = list(arguments)
    while hasattr(command, "resolve_command"):
        with command.make_context("traceweir", rest) as context:
            left = [*context._protected_args, *context.args]  # noqa: SLF001  # click's own groups read them so
            if not left and command.invoke_without_command:
                return
            _, command, rest = command.resolve_command(context, left)
    with command.make_context("traceweir", rest):
        pass


def blocks(markdown: str, language: str) -> list[str]:
    """Returns the code blocks of a page in one language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", markdown, re.DOTALL)


class Shown(NamedTuple):
    """A `traceweir` command as a page shows it."""

    arguments: tuple[str, ...]
    folder: PurePosixPath
    """The folder in which the command runs, relative to the root of a clone."""
    output: str | None = None
    """The file to which the command's output is redirected."""

    def __str__(self) -> str:
        return shlex.join(self.arguments)

    @property
    def needs_kafka(self) -> bool:
        """Whether the command connects to Kafka."""
        match self.arguments:
            case ["score" | "migrate", *_]:
                return False
            case ["eval", *_]:
                return "--from-kafka" in self.arguments
            case ["evalset", *_]:
                return "--sessions" not in self.arguments
        return True


def shown_in(markdown: str) -> Iterator[Shown]:
    """Yields each `traceweir` command of the shell blocks of a page; a `cd` is in force until the end of the page."""
    folder = PurePosixPath()
    for block in blocks(markdown, "bash"):
        for line in block.splitlines():
            match shlex.split(line, comments=True):
                case ["cd", target]:
                    folder /= target
                case ["traceweir", *words]:
                    output = words[words.index(">") + 1] if ">" in words else None
                    yield Shown(tuple(takewhile(lambda word: word not in {">", "|"}, words)), folder, output)


def commands_in(markdown: str) -> Iterator[list[str]]:
    """Yields the arguments of each `traceweir` command in the shell blocks of a page."""
    for command in shown_in(markdown):
        yield list(command.arguments)


def variables_in(text: str) -> set[str]:
    """Returns every `TRACEWEIR_...` name in a text."""
    return set(re.findall(rf"\b{ENV_PREFIX}[A-Z0-9_]*[A-Z0-9]\b", text))


def documented_commands() -> list[Shown]:
    """Returns the commands of README, of the documents and of the list of examples, each once.

    The guides are left out: the files of their commands are in the guides themselves, and they have tests of their own.
    """
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    shown = [command for page in pages for command in shown_in(page.read_text("utf-8"))]
    examples = (ROOT / "examples" / "README.md").read_text("utf-8")
    shown += [
        Shown(tuple(shlex.split(code)), PurePosixPath()) for code in re.findall(r"`traceweir ([^`]+ [^`]+)`", examples)
    ]
    return list(dict.fromkeys(shown))
