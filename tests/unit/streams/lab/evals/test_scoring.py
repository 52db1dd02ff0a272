"""Tests scoring recorded sessions against eval cases: matching, pooling of runs, and why a case does not pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.eval_sets import case, content, eval_set, invocation, scenario, write
from tests.support.scoring import NOW

from traceweir.schemas.config import GateConfig
from traceweir.scorers import Measurement, Metric, Plan, Scorer, Subject, TraceValue, read_plan
from traceweir.scorers.scripted_judge import ScriptedJudge
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.evaluate import evaluate_files
from traceweir.streams.lab.evals.files import Chosen, read_eval_file
from traceweir.streams.lab.evals.recordings import read_recordings
from traceweir.streams.lab.evals.results import CaseResult, Report
from traceweir.streams.lab.evals.scoring import ScoredFile, score_files
from traceweir.streams.lab.evals.text import detail_lines, failure_lines, summary_lines

FIND = [{"name": "find", "args": {"n": 1}}]
BOTH = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
NO_REFERENCE = {"criteria": {"trajectory_single_tool_use": {"threshold": 1.0, "tool_name": "find"}}}


async def score(folder: Path, expected: Any, actual: Any, config: Any = BOTH, **options: Any) -> Report:
    file = write(folder / "a.test.json", expected)
    sessions = write(folder / "a.sessions.json", actual)
    plan = config if isinstance(config, Plan) else read_plan(config)
    runs = read_recordings([str(sessions)])
    scored = ScoredFile(read_eval_file(Chosen(file)), plan, runs, options.pop("session_ids", {}))
    return await score_files([scored], now=lambda: NOW, **options)


def status_and_values(result: CaseResult) -> tuple[str, dict[str, float | None]]:
    return result.status, {each.metric: each.value for each in result.criteria}


async def test_each_case_is_compared_with_the_session_of_the_same_id(tmp_path: Path) -> None:
    turn = invocation("Hi", "Hello there.", FIND)
    report = await score(
        tmp_path,
        eval_set(case("good", turn), case("bad", turn)),
        eval_set(case("bad", invocation("Hi", "Bye now.", [])), case("good", turn)),
    )
    assert [status_and_values(each) for each in report.cases] == [
        ("PASSED", {"tool_trajectory_avg_score": 1.0, "response_match_score": 1.0}),
        ("FAILED", {"tool_trajectory_avg_score": 0.0, "response_match_score": 0.0}),
    ]
    assert list(summary_lines(report))[1:] == ["Eval Run Summary", "set1:", "  Tests passed: 1", "  Tests failed: 1"]
    assert not report.passed


async def test_a_missing_expectation_counts_as_an_expected_empty_response_and_no_calls(tmp_path: Path) -> None:
    report = await score(
        tmp_path,
        eval_set(case("a", {"user_content": content("Hi")})),
        eval_set(case("a", invocation("Hi", "Hello.", FIND))),
    )
    assert status_and_values(report.cases[0]) == (
        "FAILED",
        {"tool_trajectory_avg_score": 0.0, "response_match_score": 0.0},
    )


async def test_a_case_without_a_session_is_not_evaluated_and_counts_as_failed(tmp_path: Path) -> None:
    report = await score(tmp_path, eval_set(case("a", invocation("Hi"))), eval_set())
    [result] = report.cases
    assert (result.status, result.problem) == ("NOT_EVALUATED", "there is no recorded session under the id 'a'")
    assert list(summary_lines(report))[-1] == "  Tests failed: 1"


async def test_a_case_can_be_recorded_under_another_session_id(tmp_path: Path) -> None:
    turn = invocation("Hi", "Hello there.", FIND)
    report = await score(
        tmp_path, eval_set(case("a", turn)), eval_set(case("chat-1", turn)), session_ids={"a": "chat-1"}
    )
    assert report.passed


async def test_with_different_numbers_of_invocations_only_metrics_without_a_reference_are_measured(
    tmp_path: Path,
) -> None:
    config = {"criteria": BOTH["criteria"] | NO_REFERENCE["criteria"]}
    turn = invocation("Hi", "Hello.", FIND)
    [result] = (await score(tmp_path, eval_set(case("a", turn, turn)), eval_set(case("a", turn)), config)).cases
    assert status_and_values(result) == (
        "NOT_EVALUATED",
        {"tool_trajectory_avg_score": None, "response_match_score": None, "trajectory_single_tool_use": 1.0},
    )
    first, *_ = failure_lines(result)
    assert first == (
        f"{tmp_path}/a.test.json:a: conversation: has 2 invocations, and the recorded session has 1; invocations are "
        "compared in pairs, so both must have the same number"
    )


async def test_a_scenario_is_scored_by_metrics_without_a_reference(tmp_path: Path) -> None:
    config = {"criteria": BOTH["criteria"] | NO_REFERENCE["criteria"]}
    actual = eval_set(case("a", invocation("Hi", "Hello.", FIND), invocation("More", "No.", FIND)))
    [result] = (await score(tmp_path, eval_set(scenario("a")), actual, config)).cases
    assert status_and_values(result)[0] == "PASSED"
    assert list(failure_lines(result)) == []

    [result] = (await score(tmp_path, eval_set(scenario("a")), actual)).cases
    assert result.status == "NOT_EVALUATED"
    assert "every criterion needs a reference" in next(failure_lines(result))


async def test_an_empty_conversation_is_not_evaluated(tmp_path: Path) -> None:
    [result] = (await score(tmp_path, eval_set(case("a")), eval_set(case("a")))).cases
    assert (result.status, [each.because for each in result.criteria]) == ("NOT_EVALUATED", ["missing_input"] * 2)


async def test_every_case_is_measured_regardless_of_the_sampling(tmp_path: Path) -> None:
    turn = invocation("Hi", "Hello there.", FIND)
    report = await score(tmp_path, eval_set(case("a", turn)), eval_set(case("a", turn)), BOTH | {"sampling": 0.0})
    assert report.passed


async def test_num_runs_limits_the_pooled_runs_and_missing_runs_are_reported(tmp_path: Path) -> None:
    one, other = invocation("Hi", "Hello there.", FIND), invocation("Hi", "Bye now.", [])
    expected, actual = eval_set(case("a", one)), eval_set(case("a", one), case("a", other), case("a", other))

    [pooled] = (await score(tmp_path, expected, actual)).cases
    assert (pooled.runs, [each.value for each in pooled.criteria]) == (3, [1 / 3, 1 / 3])
    assert [turn.run for turn in pooled.turns] == [1, 2, 3]

    [first] = (await score(tmp_path, expected, actual, num_runs=1)).cases
    assert status_and_values(first)[0] == "PASSED"

    [few] = (await score(tmp_path, expected, actual, num_runs=4)).cases
    assert few.problem == "there are 3 recorded runs under the id 'a', and 4 are needed"
    assert few.status == "NOT_EVALUATED"


class Rubrics(Scorer):
    """Returns the number of rubrics of an invocation, and for a session the largest number."""

    range = (0.0, 10.0)

    def score(self, subject: Subject) -> Measurement:
        names = [each.rubric_id for each in (subject.invocation and subject.invocation.rubrics) or ()]
        return Measurement(value=len(names), details={"names": list(names)})

    def aggregate(self, measured: Sequence[Measurement]) -> float:
        return max(each.value or 0.0 for each in measured)


def rubric_counting_plan() -> Plan:
    return Plan((Metric("rubrics", 0.0, Rubrics(), "d"),), TraceValue(), GateConfig(), {"rubrics": 1.0}, "")


def rubric(name: str) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": "x"}}


async def test_rubrics_of_the_case_and_the_expected_turn_are_added_to_the_actual_turn(tmp_path: Path) -> None:
    turns = [{**invocation("Hi"), "rubrics": [rubric("turn")]}, invocation("More")]
    actual = [{**invocation("Hi"), "rubrics": [rubric("case"), rubric("own")]}, invocation("More")]
    [result] = (
        await score(
            tmp_path,
            eval_set(case("a", *turns, rubrics=[rubric("case")])),
            eval_set(case("a", *actual)),
            rubric_counting_plan(),
        )
    ).cases
    assert [turn.scores[0].details["names"] for turn in result.turns] == [["case", "turn", "own"], ["case"]]


async def test_a_single_run_has_the_aggregate_of_the_metric_and_pooled_runs_have_the_mean(tmp_path: Path) -> None:
    turns = [{**invocation("Hi"), "rubrics": [rubric("turn")]}, invocation("More")]
    expected, actual = eval_set(case("a", *turns)), eval_set(case("a", invocation("Hi"), invocation("More")))
    assert status_and_values((await score(tmp_path, expected, actual, rubric_counting_plan())).cases[0])[1] == {
        "rubrics": 1.0
    }
    assert status_and_values((await score(tmp_path, expected, actual, rubric_counting_plan(), pooled=True)).cases[0])[
        1
    ] == {"rubrics": 0.5}


async def test_a_case_with_no_thresholds_is_not_evaluated(tmp_path: Path) -> None:
    turn = invocation("Hi", "Hello there.", FIND)
    config: dict[str, JsonValue] = {"criteria": {"tool_call_count_v1": {}}}
    [result] = (await score(tmp_path, eval_set(case("a", turn)), eval_set(case("a", turn)), config)).cases
    assert result.status == "NOT_EVALUATED"
    assert "no criterion has a threshold" in next(failure_lines(result))


async def test_control_characters_in_agent_text_are_escaped_in_the_output(tmp_path: Path) -> None:
    hostile = "one\ntwo\x1b[31m\u202e\rred"
    turn = invocation("Hi", hostile, [{"name": "x\x1b]0;", "args": {"a\n": "\x07"}}])
    [result] = (await score(tmp_path, eval_set(case("a\x1b", turn)), eval_set(case("a\x1b", turn)))).cases
    lines = [*detail_lines(result), *failure_lines(result)]
    assert all(line.isprintable() for line in lines)
    assert any(line.endswith(r"two\x1b[31m\u202e\rred") for line in lines)


async def test_progress_counts_cases(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    turn = invocation("Hi", "Hello there.", FIND)
    document = eval_set(case("a", turn), case("b", turn))
    await score(tmp_path, document, document, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]


# --- from Python


def write_files(folder: Path, answer: str = "Hello there.", name: str = "a") -> Path:
    write(folder / f"{name}.sessions.json", eval_set(case("a", invocation("Hi", answer, FIND))))
    return write(folder / f"{name}.test.json", eval_set(case("a", invocation("Hi", "Hello there.", FIND))))


def test_evaluate_files_returns_the_report_when_every_case_passes(tmp_path: Path) -> None:
    report = evaluate_files(write_files(tmp_path))
    assert (report.passed, len(report.cases)) == (True, 1)
    assert evaluate_files(str(tmp_path)).passed


def test_evaluate_files_raises_an_assertion_error_with_the_wording_of_adk(tmp_path: Path) -> None:
    path = write_files(tmp_path, "Bye now.")
    with pytest.raises(AssertionError) as failed:
        evaluate_files(path)
    assert str(failed.value) == (
        "Following are all the test failures. Run it again with print_detailed_results=True for the details.\n"
        f"response_match_score for {path}:a Failed. Expected 0.8, but got 0.0."
    )


def test_print_detailed_results_prints_the_details(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        evaluate_files(write_files(tmp_path, "Bye now."), print_detailed_results=True)
    assert "  actual_response:            Bye now." in capsys.readouterr().out.splitlines()


def test_runs_of_several_files_are_pooled_and_missing_runs_are_an_error(tmp_path: Path) -> None:
    path, other = write_files(tmp_path), write_files(tmp_path / "other", "Bye now.")
    sessions = [each.with_name("a.sessions.json") for each in (path, other)]
    with pytest.raises(AssertionError, match=r"Expected 0\.8, but got 0\.5\."):
        evaluate_files(path, sessions, num_runs=2)
    with pytest.raises(AssertionError, match="2 recorded runs under the id 'a', and 3 are needed"):
        evaluate_files(path, sessions, num_runs=3)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        evaluate_files(path, sessions, num_runs=0)


async def test_evaluate_files_can_be_called_within_a_running_event_loop(tmp_path: Path) -> None:
    assert evaluate_files(write_files(tmp_path)).passed


def test_an_unsupported_criterion_fails_as_in_adk(tmp_path: Path) -> None:
    path = write_files(tmp_path)
    config = write(
        tmp_path / "mine.json", {"criteria": {"response_match_score": 0.8, "response_evaluation_score": 3.0}}
    )
    with pytest.raises(AssertionError, match=r"response_evaluation_score for .* was not evaluated\. unsupported"):
        evaluate_files(path, config=config)


def test_an_eval_set_without_cases_fails(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", eval_set())
    write(tmp_path / "a.sessions.json", eval_set())
    with pytest.raises(AssertionError, match="No eval cases were evaluated"):
        evaluate_files(path)


def test_a_missing_sessions_file_is_reported_with_the_expected_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.test.json", json.dumps(eval_set()))
    with pytest.raises(InputError, match=r"neither a\.sessions\.json nor a\.sessions\.jsonl exists in its folder"):
        evaluate_files(path)


async def test_a_criterion_of_a_session_stands_at_the_last_invocation_as_in_adk(tmp_path: Path) -> None:
    rated = json.dumps({"rationale": "r", "turns": [2], "result": "no"})
    options = {"judge_model_options": {"num_samples": 1}}
    config = {"criteria": {"multi_turn_task_success_v1": {"threshold": 0.5, **options}, "response_match_score": 0.8}}
    turn = invocation("Hi", "Hello there.", FIND)
    recorded = eval_set(case("a", turn, turn, turn), case("a", turn, turn, turn))
    report = await score(
        tmp_path, eval_set(case("a", turn, turn, turn)), recorded, config, judge=ScriptedJudge(rated, rated)
    )

    [result] = report.cases
    assert status_and_values(result) == ("FAILED", {"multi_turn_task_success_v1": 0.0, "response_match_score": 1.0})
    assert result.criteria[0].rationale == "over 2 of 2 values of 2 runs"
    first = [[(each.metric, each.status, each.value) for each in turn.scores] for turn in result.turns[:3]]
    answered = ("response_match_score", "PASSED", 1.0)
    assert first == [
        [("multi_turn_task_success_v1", "NOT_EVALUATED", None), answered],
        [("multi_turn_task_success_v1", "NOT_EVALUATED", None), answered],
        [("multi_turn_task_success_v1", "FAILED", 0.0), answered],
    ]
    assert [line.split() for line in detail_lines(result) if "task_success_v1: " in line] == [
        ["multi_turn_task_success_v1:", *said] for said in 2 * [*2 * [["NOT_EVALUATED", "(None)"]], ["FAILED", "(0.0)"]]
    ]


async def test_a_criterion_of_a_session_without_a_value_has_none_at_any_invocation(tmp_path: Path) -> None:
    config = {"criteria": {"conversational_guidelines": 1.0}}
    turn = invocation("Hi", "Hello there.")
    [result] = (
        await score(
            tmp_path,
            eval_set(case("a", turn, turn)),
            eval_set(case("a", turn, turn)),
            config,
            judge=ScriptedJudge(),
        )
    ).cases
    assert [[each.status for each in turn.scores] for turn in result.turns] == [["NOT_EVALUATED"], ["NOT_EVALUATED"]]
    assert [turn.scores[0].not_evaluated_because for turn in result.turns] == [None, "missing_input"]
    assert result.criteria[0].because == "missing_input"
