"""Tests the help of every command, and the version."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest
import typer
from tests.support.command_line import Ended, Run

from traceweir.streams.cli.command_app import Panel
from traceweir.streams.cli.main import app
from traceweir.streams.intake.formats.registry import BUILT_IN

COMMANDS = [
    *("demo", "broker", "worker", "emit", "score", "topics create", "topics check"),
    *("dlq list", "dlq show", "dlq replay", "eval", "evalset add", "migrate", "results", "results export", "sessions"),
    *("label add", "label push", "label list", "label withdraw", "label erase-note"),
    "references push",
    "otlp",
    "dashboard",
    "up",
    "export otlp",
    "export webhook",
    "doctor",
    "canary",
    "diff",
    *("config validate", "config push", "config show", "config history", "config diff", "config rollback"),
    "config withdraw",
    "shadow",
    "size",
    *("judge agree", "judge check", "judge try"),
    *("alerts run", "alerts test", "alerts push", "alerts withdraw", "alerts list", "alerts accept"),
    *("anchors add", "anchors list", "anchors remove", "anchors run"),
    *("trust agreement", "trust plan", "trust rate"),
    "embedder optimize",
    "embedder distill",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_ends_with_an_example(command: str, run: Run) -> None:
    ended = run(*command.split(), "--help")

    text = ended.out[: ended.out.index("─ Options")]
    assert f"traceweir {command}" in text[text.index("Example:") :]
    assert ended.code == 0


def test_the_help_lists_each_command_under_a_panel_and_first_steps_first(run: Run) -> None:
    help_ = run("--help").out

    titles = re.findall(r"^╭─ ([^─]+) ─", help_, flags=re.MULTILINE)
    assert titles == ["Options", *Panel]
    listed = help_.split(f"─ {Panel.FIRST_STEPS} ─")[1].split(f"─ {Panel.KAFKA} ─")[0]
    assert re.findall(r"^│ (\w+)", listed, flags=re.MULTILINE) == ["demo", "up", "score", "sessions", "results"]


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_the_help_at_80_columns_cuts_no_name_and_gives_flags_no_type(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run(*command.split(), "--help").out
    assert [line for line in text.splitlines() if "…" in line or "<bool>" in line or len(line) > 80] == []


@pytest.mark.parametrize("command", ["emit", "score"])
def test_the_help_at_80_columns_has_whole_names_of_formats(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = run(command, "--help").out.split()
    assert [name for name in BUILT_IN if f"{name}:" not in words] == []


@pytest.mark.parametrize("command", ["emit", "score"])
def test_the_help_describes_each_format(command: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    text = run(command, "--help").out
    assert [
        each.name for each in BUILT_IN.values() if f"{each.name}: {each.description.replace('`', '')}." not in text
    ] == []


def test_the_list_of_commands_is_complete() -> None:
    group: Any = typer.main.get_command(app)
    assert sorted(group.commands) == sorted({command.split()[0] for command in COMMANDS})


def test_help_needs_neither_faust_nor_a_kafka_client() -> None:
    heavy = [
        "faust",
        "aiokafka",
        "confluent_kafka",
        "pydantic_settings",
        "numpy",
        "scipy",
        "sentence_transformers",
        "presidio_analyzer",
        "spacy",
    ]
    code = f"import sys, traceweir.streams.cli.main; print([name for name in {heavy} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_the_version_is_the_version_of_the_installed_package(run: Run) -> None:
    assert run("--version") == Ended(0, f"traceweir {version('traceweir')}\n", "")
