"""The cells of a score without a value say why, and what its judge lacked."""

from __future__ import annotations

import pytest
from tests.support.results import make_score

from traceweir.streams.cli.score.cells import reason_of


@pytest.mark.parametrize(
    ("cause", "shown"),
    [("judge_truncated", "error: it was cut off (cause: judge_truncated)"), (None, "error: it was cut off")],
)
def test_a_reason_names_the_cause_of_the_judge(cause: str | None, shown: str) -> None:
    found = make_score(value=None, not_evaluated_because="error", cause=cause, rationale="it was cut off")
    assert reason_of(found) == shown
