"""`traceweir config validate` prints when a criterion with a condition is measured."""

import json
from pathlib import Path

import pytest

from traceweir.streams.cli.config.output import validate_file


def test_the_order_of_a_cascade_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "eval.json"
    when = {"any": [{"metric": "completeness", "below": 0.5}], "else": 0.05}
    file.write_text(json.dumps({"criteria": {"safety_v1": {"threshold": 1, "when": when}, "completeness": 0.5}}))

    assert validate_file(file, as_json=False) == 0

    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "safety_v1 is measured if completeness < 0.5, else on 5% of the sessions"


def test_a_criterion_that_waits_for_late_events_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "eval.json"
    file.write_text(json.dumps({"criteria": {"safety_v1": {"threshold": 1, "settle_s": 600}}}))

    assert validate_file(file, as_json=False) == 0

    assert capsys.readouterr().out.splitlines()[-1] == "safety_v1 is measured after 600 s without a later revision"


def test_a_criterion_that_is_asked_twice_because_another_one_waits_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "eval.json"
    criteria = {"safety_v1": {"threshold": 1, "settle_s": 600}, "hallucinations_v1": 1}
    file.write_text(json.dumps({"criteria": criteria, "judge": {"cache": {"max_verdicts": 0}}}))

    assert validate_file(file, as_json=False) == 0

    assert "warning: hallucinations_v1 does not wait, and is asked and paid twice: " in capsys.readouterr().err
