"""The attributes of an exported score say what a judge lacked, and whether the score is a verdict."""

from __future__ import annotations

from tests.support.results import make_score

from traceweir.streams.tools.export.otlp_scores import attributes


def test_the_cause_is_an_attribute_beside_the_type_of_the_error() -> None:
    found = attributes(make_score(value=None, not_evaluated_because="error", cause="judge_refused"), "full")
    assert (found["error.type"], found["traceweir.cause"]) == ("error", "judge_refused")
    assert "traceweir.cause" not in attributes(make_score(value=None), "full")


def test_a_value_without_a_threshold_is_informational_and_has_no_label() -> None:
    label = "gen_ai.evaluation.score.label"
    found = attributes(make_score(metric="token_usage_v1", value=900.0, threshold=None), "full")
    assert (found["traceweir.status"], label in found) == ("INFORMATIONAL", False)
    assert [attributes(make_score(value=value), "full")[label] for value in (0.9, 0.1)] == ["pass", "fail"]
