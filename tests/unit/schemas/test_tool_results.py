"""A result says that its call failed if it has the form of a failure, and not because it has the word error in it."""

from __future__ import annotations

from typing import Any

import pytest

from traceweir.schemas.invocation import FunctionCall, FunctionResponse
from traceweir.schemas.tool_results import is_failure, is_pending, places_of_results


@pytest.mark.parametrize(
    "result",
    [
        {"error": "no such user"},
        {"error": {"code": 7}},
        {"error": True, "data": None},
        {"isError": True, "content": [{"type": "text", "text": "x"}]},
        {"is_error": True},
        {"success": False, "message": "sold out"},
        {"ok": False},
        {"status": "error", "error_message": "unknown city"},
        {"status": "ERROR"},
        '{"error": "no such user"}',
        {"result": "Error: no such user"},
        {"result": {"output": {"error": "x"}}},
        "Error: no such user",
        "  error calling the tool",
        "[Error] timeout",
        "KeyError: 'user'",
        "Exception: boom",
        "requests.exceptions.ConnectionError: refused",
        "Traceback (most recent call last):\n ...",
    ],
)
def test_a_failure_is_recognised(result: Any) -> None:
    assert is_failure(result)


@pytest.mark.parametrize(
    "result",
    [
        None,
        "",
        [],
        7,
        "Errors: 0 found",
        "Error: 0",
        "Error: none",
        "Error rate: 3 %",
        "Error messages in Python are texts.",
        "error-free build",
        "error-prone, but it works",
        {"success": 0},
        "error margin 0.2",
        "errors.log",
        "Terror: a film of 1998",
        "The call ended without an error.",
        {"error": ""},
        {"error": None, "rows": []},
        {"error": False},
        {"error": "None"},
        {"error": 0.02, "mean": 1.5},
        {"errors": []},
        {"id": 7, "status": "error"},
        {"id": 7, "status": "failed"},
        {"result": "Transfer successful", "error": None},
        {"success": True},
        '{"error": ',
        "{" * 2_000,
    ],
)
def test_what_only_speaks_of_errors_is_no_failure(result: Any) -> None:
    assert not is_failure(result)


def test_a_result_belongs_to_the_call_with_its_id_else_to_the_next_call_of_its_tool() -> None:
    calls = [
        FunctionCall(id="1", name="a"),
        FunctionCall(name="b"),
        FunctionCall(id="2", name="a"),
        FunctionCall(name="b"),
    ]
    results = [
        FunctionResponse(id="2", name="a"),
        FunctionResponse(name="b"),
        FunctionResponse(id="2", name="a"),
        FunctionResponse(name="c"),
    ]
    assert places_of_results(calls, results) == ([None, 1, 2, None], [3])


@pytest.mark.parametrize(
    "result",
    [
        {"status": "pending", "ticket": "t-1"},
        {"state": "WAITING_FOR_APPROVAL"},
        {"result": {"status": "in-progress"}},
        {"task": {"taskId": "t", "status": "working"}},
        '{"status": "pending"}',
        {"result": "pending"},
        "Pending approval",
    ],
)
def test_a_promise_of_a_result_is_recognised(result: Any) -> None:
    assert is_pending(result)


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"status": "approved"},
        {"status": "failed"},
        {"orders": [{"status": "pending"}]},
        {"task": "pending", "id": 1},
        "Pending orders: 3, which were found in the list",
        "[1]",
        "pending " * 1_000,
    ],
)
def test_a_result_is_no_promise(result: Any) -> None:
    assert not is_pending(result)
