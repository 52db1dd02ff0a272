"""A command that is shown gives its words back to a shell, whole, and nothing in them runs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traceweir.schemas.text import shell_command

HOSTILE = (
    "'; touch owned; '",
    "$(touch owned) `touch owned` ${HOME} !!",
    '"\\" \\',
    "a\nb\r\n\tc",
    "\x03\x04\x15\x1b[201~touch owned\r",
    "!x\x1b'\\'; touch owned #",
    "-rf",
    "=ls",
    "~root",
    "*.py {a,b} [a-z] <(ls) >owned &",
    "",
    " two  spaces ",
    "\u202egnp.exe\u200b\u00a0\ufeff",
    "日本語 é 🚉",
    "\x7f\x9b\u2028",
    "'\n" * 5_000,
    "y" * 10_000,
)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
printable_words = words.filter(str.isprintable)


def read_by_bash(command: str, locale: str) -> list[str]:
    """Returns the arguments that a command gives to the program `show`."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash: run `apt-get install bash`")
    script = f"show() {{ (( $# )) && printf '%s\\0' \"$@\"; }}; {command}"
    environment = {"PATH": os.environ["PATH"], "LC_ALL": locale}
    ran = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, env=environment, check=True)
    assert ran.stderr == b""
    return ran.stdout.decode().split("\0")[:-1]


@given(st.lists(words, min_size=1, max_size=20), st.sampled_from(["C", "C.UTF-8"]))
@example(list(HOSTILE), "C")
@example(list(HOSTILE), "C.UTF-8")
def test_a_shell_reads_the_words_back(given_words: list[str], locale: str) -> None:
    command = shell_command("show", *given_words)

    assert command is not None
    assert command.isprintable()
    assert read_by_bash(command, locale) == given_words


@given(st.lists(printable_words))
@example([each for each in HOSTILE if each.isprintable()])
def test_printable_words_need_no_more_than_the_rules_of_every_posix_shell(given_words: list[str]) -> None:
    command = shell_command("show", *given_words)

    assert command is not None
    assert shlex.split(command) == ["show", *given_words]


@given(words, words)
def test_a_word_that_no_command_line_can_pass_gives_no_command(before: str, after: str) -> None:
    assert shell_command("show", before, f"{before}\0{after}") is None
