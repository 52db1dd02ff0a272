"""Spans of judges' calls do not come back as an agent's."""

from __future__ import annotations

import pytest
from opentelemetry import context
from tests.support.spans import span

from traceweir.streams.base.judge_mark import JUDGE_MARK
from traceweir.streams.intake.spans.kinds import is_own
from traceweir.streams.scoring.judges.instrumentation import SUPPRESSING_KEYS, trace_headers, uninstrumented


def test_instrumentations_are_suppressed_in_the_block_alone() -> None:
    with uninstrumented():
        assert [context.get_value(key) for key in SUPPRESSING_KEYS] == [True, True]
    assert [context.get_value(key) for key in SUPPRESSING_KEYS] == [None, None]


def test_a_call_without_a_traced_session_is_not_sampled_by_a_gateway() -> None:
    headers = trace_headers()
    assert headers["traceparent"].endswith("-00")
    assert headers["tracestate"] == JUDGE_MARK


@pytest.mark.parametrize(
    ("state", "own"),
    [("", False), (f"ot=th:8, {JUDGE_MARK}", True), ("traceweir=judges", False), ("x=traceweir", False)],
)
def test_a_span_that_continues_the_call_is_left_out(state: str, own: bool) -> None:
    assert is_own(span(1, 0, "chat", {}, trace_state=state)) is own
