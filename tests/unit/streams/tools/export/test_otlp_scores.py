"""The attributes of an exported score say what a judge lacked."""

from __future__ import annotations

from tests.support.results import make_score

from traceweir.streams.tools.export.otlp_scores import attributes


def test_the_cause_is_an_attribute_beside_the_type_of_the_error() -> None:
    found = attributes(make_score(value=None, not_evaluated_because="error", cause="judge_refused"), "full")
    assert (found["error.type"], found["traceweir.cause"]) == ("error", "judge_refused")
    assert "traceweir.cause" not in attributes(make_score(value=None), "full")
