"""Messages on stderr are bounded, and keep their end: the end says what to do."""

from __future__ import annotations

import pytest

from traceweir.streams.cli.terminal import complain


def test_a_long_message_keeps_its_beginning_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    complain("the value " + "\x1b[31m" * 10_000 + " is too long; shorten the value")
    shown = capsys.readouterr().err
    assert shown.startswith("the value \\x1b[31m")
    assert shown.endswith(" is too long; shorten the value\n")
    assert len(shown) <= 8_000


def test_a_short_message_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    complain("a" * 4_000)
    assert capsys.readouterr().err == "a" * 4_000 + "\n"
