"""Records how Google ADK reads eval files and pools scores.

Run the script in an environment with google-adk[eval] 2.13.0:

`python tests/parity/record_adk_files.py > tests/parity/data/adk_files.json`
"""

# ruff: noqa: T201
from __future__ import annotations

import json
import os
import tempfile
from importlib.metadata import version
from typing import Any

from pydantic import JsonValue

TEXT = {"parts": [{"text": "Hi"}], "role": "user"}
TURN = {"user_content": TEXT}
RUBRIC = {"rubric_id": "r", "rubric_content": {"text_property": "It is short."}}
SCENARIO = {"starting_prompt": "Hi", "conversation_plan": "Go on."}


def one(**case: Any) -> dict[str, Any]:
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", **case}]}


def turn(**more: Any) -> dict[str, Any]:
    return one(conversation=[{**TURN, **more}])


DOCUMENTS: dict[str, Any] = {
    "conversation": turn(),
    "empty conversation": one(conversation=[]),
    "scenario": one(conversation_scenario=SCENARIO),
    "neither": one(),
    "both": one(conversation=[], conversation_scenario=SCENARIO),
    "conversation null, scenario": one(conversation=None, conversation_scenario=SCENARIO),
    "camelCase within a case": {
        "eval_set_id": "s",
        "eval_cases": [{"evalId": "a", "conversation": [{"userContent": TEXT, "intermediateData": {"toolUses": []}}]}],
    },
    "no eval_set_id": {"eval_cases": []},
    "no eval_cases": {"eval_set_id": "s"},
    "no cases": {"eval_set_id": "s", "eval_cases": []},
    "no eval_id": {"eval_set_id": "s", "eval_cases": [{"conversation": []}]},
    "unknown key of the set": {**one(conversation=[]), "owner": "me"},
    "unknown key of a case": one(conversation=[], tags=[]),
    "unknown key of an invocation": turn(final_reponse=TEXT),
    "unknown key of intermediate data": turn(intermediate_data={"tool_use": []}),
    "unknown key of an event": turn(intermediate_data={"invocation_events": [{"author": "a", "invocationIndex": 1}]}),
    "unknown key beside events": turn(intermediate_data={"invocation_events": [], "x": 1}),
    "unknown key of the session": one(conversation=[], session_input={"app_name": "a", "user_id": "u", "x": 1}),
    "no user_content": one(conversation=[{"final_response": TEXT}]),
    "intermediate data empty": turn(intermediate_data={}),
    "intermediate data null": turn(intermediate_data=None),
    "intermediate responses": turn(intermediate_data={"intermediate_responses": [["a", [{"text": "x"}]]]}),
    "intermediate response without parts": turn(intermediate_data={"intermediate_responses": [["a"]]}),
    "tool use without args": turn(intermediate_data={"tool_uses": [{"name": "x"}]}),
    "args a list": turn(intermediate_data={"tool_uses": [{"name": "x", "args": []}]}),
    "durations": turn(duration=1.5, model_duration=1, tool_duration=None),
    "session without user": one(conversation=[], session_input={"app_name": "a"}),
    "session with an id": one(conversation=[], session_input={"app_name": "a", "user_id": "u", "session_id": "s1"}),
    "final session state": one(conversation=[], final_session_state={"n": 1}),
    "final session state null": one(conversation=[], final_session_state=None),
    "rubric": one(conversation=[], rubrics=[RUBRIC]),
    "rubric without id": one(conversation=[], rubrics=[{"rubric_content": {"text_property": "x"}}]),
    "rubric without content": one(conversation=[], rubrics=[{"rubric_id": "r"}]),
    "parts null": one(conversation=[{"user_content": {"parts": None}}]),
    "role null": one(conversation=[{"user_content": {"parts": [{"text": "x"}], "role": None}}]),
}
POOLED: list[tuple[list[list[float | None]], float]] = [
    ([[1.0, 0.0]], 0.5),
    ([[1.0, 0.0]], 1.0),
    ([[1.0, 1.0], [1.0, 0.0]], 0.75),
    ([[1.0, 1.0], [1.0, 0.0]], 0.76),
    ([[0.5263157894736842], [1.0]], 0.8),
    ([[0.1, 0.2], [0.3]], 0.2),
    ([[None, 1.0], [None]], 0.8),
    ([[None], [None]], 0.8),
]
STATUSES = [
    [],
    ["PASSED"],
    ["PASSED", "FAILED"],
    ["FAILED", "PASSED"],
    ["NOT_EVALUATED"],
    ["NOT_EVALUATED", "PASSED"],
    ["NOT_EVALUATED", "FAILED"],
    ["INFORMATIONAL"],
    ["INFORMATIONAL", "PASSED"],
]
OLD: list[JsonValue] = [
    {
        "query": "Roll",
        "reference": "It is 17.",
        "expected_tool_use": [{"tool_name": "roll_die", "tool_input": {"sides": 19}}],
        "expected_intermediate_agent_responses": [{"author": "roller", "text": "Rolling."}],
    },
    {"query": "Thanks"},
]
SESSION: dict[str, JsonValue] = {"app_name": "dice", "user_id": "u", "state": {"n": 1}}
OLD_SET: list[JsonValue] = [
    {"name": "one", "data": OLD, "initial_session": SESSION},
    {"name": "two", "data": [], "initial_session": {}},
]


def main() -> None:
    from google.adk.evaluation.agent_evaluator import AgentEvaluator
    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_metrics import EvalMetricResult
    from google.adk.evaluation.eval_set import EvalSet
    from google.adk.evaluation.evaluator import EvalStatus
    from google.adk.evaluation.local_eval_service import LocalEvalService
    from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file
    from pydantic import ValidationError

    def accepts(document: Any) -> bool:
        try:
            EvalSet.model_validate_json(json.dumps(document))
        except ValidationError:
            return False
        return True

    def result(score: float | None, threshold: float, status: str | None = None) -> Any:
        if status is None:
            status = "NOT_EVALUATED" if score is None else "PASSED" if score >= threshold else "FAILED"
        return EvalMetricResult(metric_name="m", threshold=threshold, score=score, eval_status=EvalStatus[status])

    def failures(runs: list[list[float | None]], threshold: float) -> list[str]:
        from google.adk.evaluation.agent_evaluator import _EvalMetricResultWithInvocation

        invocation = Invocation.model_validate(TURN)
        pooled = [
            _EvalMetricResultWithInvocation(
                actual_invocation=invocation,
                expected_invocation=invocation,
                eval_metric_result=result(score, threshold),
            )
            for run in runs
            for score in run
        ]
        failed: list[str] = AgentEvaluator._process_metrics_and_get_failures({"m": pooled}, False, "module")
        return failed

    def converted(document: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "old.test.json")
            with open(path, "w", encoding="utf-8") as stream:
                json.dump(document, stream)
            found = load_eval_set_from_file(path, "set").model_dump(mode="json", exclude_none=True)
        for case in found["eval_cases"]:
            for each in case["conversation"]:
                each.pop("invocation_id")
                each.pop("creation_timestamp")
        return found["eval_cases"]

    final = LocalEvalService._generate_final_eval_status
    rows = {
        "google-adk": version("google-adk"),
        "accepted": {name: accepts(document) for name, document in DOCUMENTS.items()},
        "pooled": [[runs, threshold, failures(runs, threshold)] for runs, threshold in POOLED],
        "final": [[each, final(None, [result(None, 0.5, status) for status in each]).name] for each in STATUSES],
        "old": converted(OLD_SET),
    }
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
