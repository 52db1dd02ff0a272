"""What the guides show works: code blocks are the files that they quote, or run as they stand."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer.main
from tests.support.command_line import Run, build_commands
from tests.support.commands import blocks, commands_in
from tests.support.paths import ROOT
from tests.support.scoring import install

from traceweir.schemas.score import Score
from traceweir.streams.cli.command_app import Panel
from traceweir.streams.cli.main import app

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
METRIC = (ROOT / "docs" / "guides" / "add-a-metric.md").read_text("utf-8")
COMMAND = (ROOT / "docs" / "guides" / "add-a-command.md").read_text("utf-8")
PLUGIN = ROOT / "examples" / "plugin"


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_name_that_a_guide_mentions_exists(page: Path) -> None:
    for name in re.findall(r"`(traceweir(?:\.\w+)+)`", page.read_text("utf-8")):
        assert pkgutil.resolve_name(name)


def test_the_guide_to_a_metric_shows_the_example_plugin() -> None:
    (scorer,) = blocks(METRIC, "python")
    (entry_point,) = blocks(METRIC, "toml")
    module = (PLUGIN / "traceweir_brevity" / "__init__.py").read_text("utf-8")

    assert scorer == below_docstring(module)
    assert entry_point in (PLUGIN / "pyproject.toml").read_text("utf-8")


def test_the_config_and_the_command_of_the_guide_score_by_the_plugin(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "traceweir-brevity", {"brevity": "traceweir_brevity:Brevity"})
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "eval.json").write_text("".join(blocks(METRIC, "json")), "utf-8")
    monkeypatch.chdir(tmp_path)
    (command,) = commands_in(METRIC)

    ended = run(*command)

    scores = [Score.model_validate_json(line) for line in ended.out.splitlines()]
    brevity = [score for score in scores if score.metric == "brevity" and score.level == "invocation"]
    assert brevity
    assert {(score.threshold, score.rationale.split()[1]) for score in brevity} == {(0.5, "words")}


def test_the_command_of_the_guide_runs_and_passes_the_guides_test(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typer.main, "get_command", build_commands)
    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])
    module: dict[str, Any] = {"app": app, "Panel": Panel}
    command, registration, test = blocks(COMMAND, "python")
    exec(command, module)
    exec(registration, module)
    exec(test, module)

    module["test_metrics_are_listed_by_name"](run)

    help_text = run("metrics", "--help").out
    assert "traceweir metrics --json" in help_text[help_text.index("Example:") :]
    assert orjson.loads(run("metrics", "--json").out) == run("metrics").out.splitlines()


def below_docstring(module: str) -> str:
    docstring = ast.parse(module).body[0]
    return "".join(module.splitlines(keepends=True)[docstring.end_lineno :]).lstrip()
