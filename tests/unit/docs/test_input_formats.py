"""The pages about input formats are true: the table is the registry's, and the guide's format reads the guide's file."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.commands import blocks
from tests.support.paths import ROOT
from tests.support.scoring import install

from traceweir.schemas.events import EVENT
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.cli.input_options import DEFAULT_FORMAT
from traceweir.streams.cli.main import main
from traceweir.streams.intake.formats.openai_chat import transcript_events
from traceweir.streams.intake.formats.registry import BUILT_IN, GROUP

EXAMPLE = ROOT / "examples" / "formats"
GUIDE = (ROOT / "docs" / "guides" / "add-an-input-format.md").read_text("utf-8")


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


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The files of the example in the current folder, and its formats installed; each message of the guide by its command."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    offered = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"][GROUP]
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    install(tmp_path, "formats-of-the-guide", offered, GROUP)
    # No blocks of bash: the commands parse only where the formats are installed.
    return dict(zip((each.strip() for each in blocks(GUIDE, "sh")), blocks(GUIDE, "text"), strict=True))


def run_of_guide(command: str, *more: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split()[1:], *more])
    return ended.value.code


def test_the_format_of_rows_of_the_guide_reads_the_table_of_the_guide(
    guide: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    (command,) = (each for each in guide if each.startswith("traceweir score"))
    code = run_of_guide(command, "--embedder", "none", "--json")

    said = capfd.readouterr()
    assert [line.split('"value":')[1].split(",")[0] for line in said.out.splitlines()] == ["1.5", "1.5"]
    assert (code, said.err) == (1, guide[command])


def test_the_format_of_documents_of_the_guide_reads_the_documents_of_the_guide(
    guide: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    (command,) = (each for each in guide if each.startswith("traceweir sessions"))
    code = run_of_guide(command)

    said = capfd.readouterr()
    assert [line.strip() for line in said.out.splitlines()][2:] == [
        "question: Where is it?",
        'tool track({"id":7})',
        'result: "Oslo"',
        "answer: In Oslo.",
        "tokens: missing",
    ]
    assert (code, said.err) == (1, guide[command])


def test_the_lines_of_the_guide_are_short() -> None:
    assert max(map(len, GUIDE.splitlines())) < 120
