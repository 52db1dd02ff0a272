"""Who follows the page of `traceweir diff` with its two judges sees what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.support.command_line import Run
from tests.support.judge_change import FOLDER, scripted_verdict
from tests.support.openai_server import openai_server_apart
from tests.support.paths import ROOT

from traceweir.streams.lab.comparison.document import (
    BoundCheck,
    Diff,
    Difference,
    Flip,
    FlipSide,
    MetricComparison,
    SideFigures,
    SideSummary,
    VerdictAgreement,
)

PAGE = (ROOT / "docs" / "compare.md").read_text("utf-8")
STEPS = re.compile(r"```console\n\$ (?P<command>.*?)\n(?P<output>.*?)```", re.DOTALL)


@pytest.mark.slow
# The command loads litellm.
@pytest.mark.xdist_group("litellm")
def test_the_change_of_a_judge_gives_what_the_page_shows(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FOLDER, tmp_path / "examples" / "judge-change")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEWEIR_JUDGE_API_KEY", "any")
    shown, seen = [], []

    with openai_server_apart(default=scripted_verdict) as server:
        monkeypatch.setenv("TRACEWEIR_JUDGE_API_BASE", server.url)
        for step in STEPS.finditer(PAGE):
            command, _, file = step["command"].partition(" > ")
            ended = run(*shlex.split(command)[1:])
            if file:
                (tmp_path / file).write_text(ended.out, "utf-8")
            shown.append(step["output"])
            seen.append(ended.err if file else ended.out)

    assert len(shown) == 3
    assert seen == shown


def test_the_page_names_every_field_of_the_document() -> None:
    models = (
        Diff,
        SideSummary,
        SideFigures,
        Difference,
        Flip,
        FlipSide,
        VerdictAgreement,
        MetricComparison,
        BoundCheck,
    )
    fields = {name for model in models for name in model.model_fields}
    assert {name for name in fields if f"`{name}`" not in PAGE} == set()
