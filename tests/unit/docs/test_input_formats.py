"""The pages about input formats are true: the table is the registry's, and the guide's format reads the guide's file."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.paths import ROOT
from tests.support.scoring import install

from traceweir.schemas.events import EVENT
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.cli.input_options import DEFAULT_FORMAT
from traceweir.streams.cli.main import main
from traceweir.streams.intake.formats.openai_chat import transcript_events
from traceweir.streams.intake.formats.registry import BUILT_IN, GROUP

GUIDE = (ROOT / "docs" / "guides" / "add-an-input-format.md").read_text("utf-8")


def block(language: str) -> str:
    """The one code block of the guide in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


def test_the_table_of_formats_is_that_of_the_registry() -> None:
    page = (ROOT / "docs" / "input-formats.md").read_text("utf-8")
    rows = [
        f"| `{each.name}`{' (the default)' if each.name == DEFAULT_FORMAT else ''} | {each.description} "
        f"| {'no' if each.read_rows is None else 'yes'} | {each.task_domain} |"
        for each in BUILT_IN.values()
    ]
    assert page.partition("|---|---|---|---|\n")[2].partition("\n\n")[0].splitlines() == rows


def test_the_transcript_of_the_page_has_the_events_and_steps_that_the_page_shows() -> None:
    page = (ROOT / "docs" / "input-formats.md").read_text("utf-8").partition("## Chat transcripts")[2]
    (transcript,), (shown, *_) = (re.findall(rf"```{each}\n(.*?)```", page, re.DOTALL) for each in ("json", "text"))
    events, _, steps = shown.partition("\n\n")

    records = transcript_events(json.loads(transcript), 1, "chats.json", datetime(2026, 1, 1, tzinfo=UTC))
    found = [EVENT.validate_json(record.value) for record in records if record.kind == "event"]
    (trace,) = [ReasoningTrace.model_validate_json(record.value) for record in records if record.kind == "trace"]

    assert [
        f"{event.occurred_at:%H:%M:%S.%f}"[:-3] + f"  {event.invocation_id:<6}  {event.type}" for event in found
    ] == events.splitlines()
    assert [
        f"{step.type:<14}  {step.tool.name if step.tool else step.content}" for step in trace.steps
    ] == steps.splitlines()
    assert {event.session_id for event in found} == {"chat-4711"}


def test_the_format_of_the_guide_reads_the_file_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    group, name, place = re.findall(r'^\[project\.entry-points\."(.+)"\]\n(.+) = "(.+)"\n', block("toml"))[0]
    (tmp_path / f"{place.partition(':')[0]}.py").write_text(block("python"))
    (tmp_path / "answers.csv").write_text(block("csv"))
    (tmp_path / "eval.json").write_text('{"criteria": {"latency": {}}}')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    install(tmp_path, "prompt-answer", {name: place}, group)

    (command,) = block("sh").splitlines()  # no block of bash: it parses only where the format is installed
    with pytest.raises(SystemExit) as ended:
        main([*command.split()[1:], "--embedder", "none", "--json"])

    said = capfd.readouterr()
    assert group == GROUP
    assert [line.split('"value":')[1].split(",")[0] for line in said.out.splitlines()] == ["1.5", "1.5"]
    assert (ended.value.code, said.err) == (1, block("text"))


def test_the_guide_is_short() -> None:
    lines = GUIDE.splitlines()
    assert (len(lines) < 100, max(map(len, lines)) < 120) == (True, True)
