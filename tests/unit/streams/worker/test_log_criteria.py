"""A worker says at its start which criteria are on, and which will never be measured."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from traceweir.scorers import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.run import log_criteria


def test_criteria_without_a_value_are_warnings_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    plan = read_plan({"criteria": {"safety_v1": 1, "response_match_score": 0.5}})
    with caplog.at_level(logging.INFO):
        log_criteria(plan, Path("eval.json"), Settings(), {})
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "INFO"]
    assert "safety_v1 is never measured: the judge gemini-2.5-flash has no key" in caplog.messages[1]
    assert "measured only where a reference says what was expected: response_match_score" in caplog.messages[2]


def test_a_worker_with_a_key_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    plan = read_plan({"criteria": {"safety_v1": 1}})
    with caplog.at_level(logging.WARNING):
        log_criteria(plan, None, Settings(), {"GEMINI_API_KEY": "a-key-that-is-not-shown"})
    assert not caplog.messages


def test_criteria_that_leave_their_guidelines_to_references_are_lines_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plan = read_plan({"criteria": {"conversational_guidelines": 1, "response_match_score": 0.5}})
    with caplog.at_level(logging.INFO):
        log_criteria(plan, None, Settings(), {"GEMINI_API_KEY": "a-key-that-is-not-shown"})
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "INFO", "INFO"]
    assert "conversational_guidelines is measured only where a reference has guidelines: set criteria." in caplog.text


def test_a_challenger_is_warned_of_too(caplog: pytest.LogCaptureFixture) -> None:
    when = {"any": [{"metric": "answered", "below": 0}]}
    config: Any = {"criteria": {"answered": 1, "no_tool_errors": {"threshold": 1, "when": when}}}
    plan = read_plan({"criteria": {"answered": 1}, "challenger": {"name": "new", "sample": 0.5, "config": config}})
    with caplog.at_level(logging.WARNING):
        log_criteria(plan, None, Settings(), {})
    [message] = caplog.messages
    assert message.startswith(
        "challenger: no_tool_errors is never measured: no condition of `when` can hold (answered < 0"
    )


def test_a_window_of_a_model_that_nobody_asks_is_a_warning_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    plan = read_plan({"criteria": {"safety_v1": 1}, "judge": {"window_tokens": {"gemini-2.5-flash": 32_768}}})
    with caplog.at_level(logging.WARNING):
        log_criteria(plan, None, Settings(), {"GEMINI_API_KEY": "a-key-that-is-not-shown"})
    [message] = caplog.messages
    assert message.startswith("judge.window_tokens.gemini-2.5-flash has no effect: ")
    assert "did you mean 'gemini/gemini-2.5-flash'?" in message


def test_a_config_that_measures_nothing_without_references_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    needing: Any = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    with caplog.at_level(logging.WARNING):
        log_criteria(read_plan({"criteria": needing | {"answered": 1}}), None, Settings(), {})
        log_criteria(read_plan({}), None, Settings(), {})
        assert not caplog.messages
        log_criteria(read_plan({"criteria": needing}), None, Settings(), {})
    [message] = caplog.messages
    assert message.startswith("every criterion of the config needs a reference")
    assert "`traceweir references push FILE`" in message
