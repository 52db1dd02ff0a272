"""Tests the options that `traceweir dlq` rejects, and how it prints a hostile dead letter."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.streams.cli.dlq import output as dlq_output
from traceweir.streams.cli.main import main
from traceweir.streams.cli.times import read_time
from traceweir.streams.tools.dead_letters.reader import FoundDeadLetter, LetterId

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOSTILE = "[red]x[/nope]\x1b[31m\r\n\u202e\x9b"
ESCAPED = r"[red]x[/nope]\x1b[31m\r\n\u202e\x9b"


def run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["dlq", *arguments])
    return ended.value.code


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", "2026-01-31T11:58:30Z"),
        ("30m", "2026-01-31T11:30:00Z"),
        ("2h", "2026-01-31T10:00:00Z"),
        ("1d", "2026-01-30T12:00:00Z"),
        ("1w", "2026-01-24T12:00:00Z"),
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("2026-01-31T10:00", "2026-01-31T10:00:00Z"),
        ("2026-01-31T10:00:00.5+09:00", "2026-01-31T01:00:00.500Z"),
    ],
)
def test_a_time_is_iso_8601_or_a_duration_before_now(text: str, moment: str) -> None:
    assert read_time(text, NOW) == datetime.fromisoformat(moment).timestamp() * 1000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay"], "name ids, or use filters"),
        (["replay", "--dry-run"], "name ids, or use filters"),
        (["replay", "--all", "2:17"], "cannot be combined with ids or filters"),
        (["replay", "--all", "--reason", "late"], "cannot be combined with ids or filters"),
        (["replay", "2:17", "--reason", "late"], "remove the filters"),
        (["replay", "2-17"], "'2-17' is not the id of a dead letter"),
        (["show", "x"], "'x' is not the id of a dead letter"),
        (["list", "--reason", "because"], "choose from empty, too_large"),
        (["list", "--stage", "join"], "choose from collect, assemble, score, gate"),
        (["list", "--topic", "network"], "choose from otlp_spans, otlp_logs, traceweir.spans, traceweir.traces"),
        (["list", "--since", "5y"], "'5y' is not a time"),
        (["list", "--limit", "0"], "--limit"),
    ],
    ids=" ".join,
)
def test_invalid_options_are_rejected_without_a_connection_to_kafka(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err


def hostile(**changes: Any) -> FoundDeadLetter:
    raw = HOSTILE.encode()
    about: dict[str, Any] = {
        "value": raw + b"\xff\x00",
        "key": raw,
        "headers": [(HOSTILE, raw)],
        "timestamp": 10**18,
        **changes,
    }
    letter = DeadLetter("late", HOSTILE, HOSTILE, HOSTILE, 0, 0, **about)
    return FoundDeadLetter(LetterId(0, 1), -(10**18), letter, replayed=False)


def test_hostile_text_is_escaped_in_the_page_the_table_and_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    dlq_output.print_page(hostile(origin=HOSTILE, replay_of=HOSTILE))
    page = capsys.readouterr().out
    dlq_output.print_letters([hostile()], as_json=False)
    line = capsys.readouterr().out
    dlq_output.print_letters([hostile()], as_json=True)
    document = capsys.readouterr().out

    for text in (page, line, document):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert page.splitlines()[-1] == ESCAPED + r"\xff\x00"
    assert f"key:         {ESCAPED}" in page
    assert f"header:      {ESCAPED}: {ESCAPED}" in page
    assert (line.count("\n"), ESCAPED in line) == (1, True)
    assert json.loads(document)["key"] == HOSTILE


def test_hostile_text_does_not_colour_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    dlq_output.print_letters([hostile()], as_json=False)
    shown = capsys.readouterr().out
    assert "written (UTC)" in shown
    assert ESCAPED in shown
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize(
    ("value", "said"), [(None, "value:       (none)"), (b"", "value:       0 bytes"), (b"\n" * 70_000, r"\n" * 70_000)]
)
def test_the_page_shows_the_complete_value(value: bytes | None, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    dlq_output.print_page(hostile(value=value))
    assert said in capsys.readouterr().out
