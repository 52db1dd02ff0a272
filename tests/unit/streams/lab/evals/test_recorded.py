"""Tests that eval cases made from recorded sessions of a real agent pass with the same sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.eval_sets import eval_set, write
from tests.support.recorded import recorded_sessions

from traceweir.streams.lab.evals.capture import eval_case
from traceweir.streams.lab.evals.evaluate import evaluate_files
from traceweir.streams.lab.evals.recordings import read_recordings


@pytest.mark.slow
def test_every_case_made_from_a_recorded_session_has_the_tool_calls_of_that_session(tmp_path: Path) -> None:
    sessions = str(recorded_sessions())
    recorded = read_recordings([sessions])
    cases = [eval_case(run, name) for name, [run] in recorded.items()]
    file = write(tmp_path / "all.evalset.json", eval_set(*cases))
    write(tmp_path / "test_config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})

    report = evaluate_files(file, sessions)

    assert len(report.cases) == len(recorded) > 0
    assert sum(len(turn.actual.tool_uses) for case in report.cases for turn in case.turns) > 0
