"""Tests the messages that a command writes to stderr."""

from __future__ import annotations

import pytest

from traceweir.streams.cli.terminal import complain, rate_bar, steps


@pytest.mark.parametrize("filler", ["x", "\x1b"])
def test_a_message_that_is_cut_keeps_its_beginning_and_its_way_out(
    capsys: pytest.CaptureFixture[str], filler: str
) -> None:
    complain(f"file.json: is not valid: {filler * 10_000}; run `traceweir topics create`")

    said = capsys.readouterr().err.strip()
    assert said.startswith("file.json: is not valid: ")
    assert said.endswith("; run `traceweir topics create`")
    assert "… " in said
    assert len(said) <= 4_000


def test_a_message_of_4000_characters_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    complain("x" * 4_000)
    assert capsys.readouterr().err.strip() == "x" * 4_000


def test_a_slow_step_is_named_and_a_quick_one_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    said = ""
    with steps("checking", slow_after_s=0.0) as step:
        step("the topics")
        while "still checking the topics" not in said:
            said += capsys.readouterr().err
    with steps("checking", slow_after_s=1_000.0) as step:
        step("the inputs")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("hidden", [False, True])
def test_a_bar_shows_what_was_paid_so_far_without_control_characters(
    hidden: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    with rate_bar(
        "sessions scored", "sessions", hidden=hidden, phrase=lambda: "3 questions, 0.0150 USD\x07"
    ) as advance:
        advance(1, 2)
    said = capsys.readouterr()

    assert ("3 questions, 0.0150 USD\\x07" in said.err) is not hidden
    assert (said.out, "\x07" in said.err) == ("", False)
