"""Tests pairs, samples, flips, values that are missing, and the correction for many metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.comparing import compared, only_metric
from tests.support.results import make_score

from traceweir.schemas.score import Cost, Score
from traceweir.streams.lab.comparison.compare import NoOverlapError

# Importing SciPy takes most of the time of these tests; the group keeps it to one process.
pytestmark = pytest.mark.xdist_group("scipy")


def scores(values: Sequence[float | None], prefix: str = "s", **changes: Any) -> list[Score]:
    return [make_score(f"{prefix}{number}", value=value, **changes) for number, value in enumerate(values)]


def test_results_of_the_same_subject_are_compared_as_pairs() -> None:
    found = only_metric(compared(scores([0.5, 0.7, 0.9]), scores([0.4, 0.7, 0.5])))
    assert found.value is not None
    assert (found.pairing, found.pairs, found.value.sessions) == ("paired", 3, 3)
    assert found.value.difference == pytest.approx(-0.5 / 3)
    assert found.value.base_mean == pytest.approx(0.7)


def test_results_without_a_partner_are_left_out_of_the_means_of_pairs() -> None:
    found = only_metric(compared(scores([0.5, 0.7, 0.0]), scores([0.4, 0.6])))
    assert found.value is not None
    assert (found.pairing, found.base.results, found.value.base_values) == ("paired", 3, 2)
    assert found.value.difference == pytest.approx(-0.1)


def test_sides_with_few_pairs_are_compared_as_two_samples_with_all_their_values() -> None:
    found = only_metric(compared(scores([0.0, 0.2, 0.4]), [*scores([0.5, 0.7, 0.9], "t"), *scores([0.1])]))
    assert found.value is not None
    assert (found.pairing, found.pairs, found.value.base_values, found.value.challenger_values) == ("unpaired", 1, 3, 4)
    assert found.value.difference == pytest.approx(0.55 - 0.2)


def test_a_result_in_another_revision_has_no_partner() -> None:
    found = only_metric(compared(scores([0.5, 0.7]), scores([0.5, 0.7], revision=1)))
    assert (found.pairing, found.pairs, found.other_revision) == ("unpaired", 0, 2)


def test_a_value_that_is_missing_is_counted_and_is_not_zero() -> None:
    found = only_metric(compared(scores([0.5, 0.7, None, None]), scores([0.5, None, 0.3, None])))
    assert found.value is not None
    assert (found.value.base_values, found.value.difference) == (1, 0.0)
    assert (found.lost_values, found.gained_values) == (1, 1)
    assert (found.base.not_evaluated, found.challenger.not_evaluated) == ({"missing_input": 2}, {"missing_input": 2})


def test_a_side_without_any_value_has_no_difference() -> None:
    found = only_metric(compared(scores([0.5, 0.7]), scores([None, None])))
    assert (found.value, found.pass_rate, found.verdicts) == (None, None, None)


def test_values_are_counted_by_the_judge_that_gave_them() -> None:
    base = [*scores([1.0, 0.0, None], judge="one"), *scores([1.0], "t", judge="two"), *scores([1.0], "u")]
    found = only_metric(compared(base, scores([1.0, 1.0], judge="one")))
    assert (found.base.judges, found.challenger.judges) == ({"one": 2, "two": 1}, {"one": 2})
    assert found.has_several_judges


@pytest.mark.parametrize("judges", [("one", "one"), (None, "one"), (None, None)])
def test_a_comparison_within_one_judge_has_not_several(judges: tuple[str | None, str | None]) -> None:
    found = only_metric(compared(scores([1.0, 0.0], judge=judges[0]), scores([1.0, 0.0], judge=judges[1])))
    assert not found.has_several_judges


def test_flips_are_counted_in_both_directions_with_exact_mcnemar_and_kappa() -> None:
    found = only_metric(compared(scores([1.0] * 9 + [0.0]), scores([0.0] * 7 + [1.0] * 3))).verdicts
    assert found is not None
    assert (found.both_passed, found.both_failed, found.to_failed, found.to_passed) == (2, 0, 7, 1)
    assert found.p_value == pytest.approx(2 * (1 + 8) / 2**8)
    assert found.kappa == pytest.approx((0.2 - (0.9 * 0.3 + 0.1 * 0.7)) / (1 - (0.9 * 0.3 + 0.1 * 0.7)))


def test_the_worst_flips_come_first_with_both_rationales() -> None:
    base = scores([0.8, 1.0, 0.9, 0.1], rationale="was so")
    challenger = scores([0.7, 0.0, 0.5, 1.0], rationale="is so")
    found = only_metric(compared(base, challenger, flips=2)).verdicts
    assert found is not None
    assert [(flip.session_id, flip.challenger.value) for flip in found.flips] == [("s1", 0.0), ("s2", 0.5)]
    assert (found.flips[0].base.rationale, found.flips[0].challenger.rationale) == ("was so", "is so")
    assert found.flips_left_out == 2


def test_a_flip_names_its_invocation_and_the_thresholds_of_both_sides() -> None:
    base = [make_score("s", value=0.8, invocation_id="i", level="invocation", segment=2)]
    challenger = [base[0].model_copy(update={"threshold": 0.9, "status": "FAILED"})]
    found = only_metric(compared(base, challenger)).verdicts
    assert found is not None
    flip = found.flips[0]
    assert (flip.subject_id, flip.segment, flip.base.threshold, flip.challenger.threshold) == ("i", 2, 0.75, 0.9)


def test_a_value_that_no_threshold_judges_has_no_verdict() -> None:
    seconds: dict[str, Any] = {"metric": "agent/latency_seconds", "threshold": None, "status": "PASSED"}
    found = only_metric(compared(scores([9.0, 8.0], **seconds), scores([4.0, 3.0], **seconds)))
    assert found.value is not None
    assert (found.value.difference, found.verdicts, found.base.passed) == (-5.0, None, 0)


def test_decisions_of_the_gate_are_apart_from_the_metrics() -> None:
    base = [*scores([1.0, 1.0, 0.0], metric="gate"), *scores([0.5, 0.6])]
    challenger = [*scores([1.0, 0.0, 0.0], metric="gate"), *scores([0.5, 0.6])]
    found = compared(base, challenger)
    assert [each.metric for each in found.metrics] == ["response_match_score"]
    assert found.gate is not None
    assert found.gate.verdicts is not None
    assert (found.gate.verdicts.to_failed, found.gate.verdicts.flips[0].session_id) == (1, "s1")


def test_results_of_one_session_count_as_one_cluster() -> None:
    base = [make_score("a", value=0.0, invocation_id=f"{number}", level="invocation") for number in range(50)]
    challenger = [score.model_copy(update={"value": 0.1 + index / 1e3}) for index, score in enumerate(base)]
    found = only_metric(compared(base, challenger)).value
    assert found is not None
    assert (found.base_values, found.sessions, found.low, found.p_value) == (50, 1, None, None)


def test_p_values_are_corrected_for_the_number_of_metrics() -> None:
    def side(shift: float) -> list[Score]:
        noisy = [0.5 + shift + (number % 7) / 10 * (shift > 0) for number in range(20)]
        return [*scores([*noisy], metric="a"), *scores([*noisy], metric="b"), *scores([0.5] * 20, metric="c")]

    found = compared(side(0.0), side(0.1)).metrics
    raw = [each.value.p_value or 0.0 for each in found if each.value]
    assert [each.value.p_value_holm for each in found if each.value] == pytest.approx([raw[0] * 3, raw[1] * 3, 1.0])
    assert raw[0] > 0


def test_the_price_of_a_result_is_compared_over_the_same_results() -> None:
    base = scores([0.5, 0.6], cost=Cost(usd=0.02, input_tokens=10, output_tokens=1))
    challenger = scores([0.5, 0.6], cost=Cost(usd=0.01, input_tokens=5, cached=True))
    found = only_metric(compared(base, challenger))
    assert found.cost_usd is not None
    assert found.cost_usd.difference == pytest.approx(-0.01)
    assert found.base.cost_usd == pytest.approx(0.04)
    assert (found.base.input_tokens, found.challenger.cached) == (20, 2)


def test_sides_without_a_common_metric_are_refused_with_what_each_has() -> None:
    with pytest.raises(NoOverlapError) as refused:
        compared(scores([0.5, 0.6]), scores([0.5], metric="completeness"))
    assert "base base: 2 results of 2 sessions: response_match_score (session) 2" in str(refused.value)
    assert "challenger challenger: 1 result of 1 session: completeness (session) 1" in str(refused.value)


def test_an_empty_side_is_refused() -> None:
    with pytest.raises(NoOverlapError, match="challenger: has no results"):
        compared(scores([0.5]), [])


def test_metrics_of_one_side_are_named() -> None:
    found = compared(scores([0.5]), [*scores([0.5]), *scores([0.5], metric="completeness")])
    assert (found.only_in_base, found.only_in_challenger) == ([], ["completeness (session)"])
