"""Tests that each judged criterion has cases with a known verdict, which its scorer can judge."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from traceweir.scorers import Subject
from traceweir.scorers.evaluation.registry import BUILT_IN, PLACES
from traceweir.scorers.judge import Judge, Question, Reply
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.known_cases import known_cases

CRITERIA = [name for name, place in PLACES.items() if place.startswith("judged.")]


class AskedError(Exception):
    """Raised by the judge of these tests: the scorer has asked."""


class Raises(Judge):
    async def ask(self, question: Question) -> Reply:
        raise AskedError


def scorer_of(name: str) -> JudgedScorer:
    found: Any = BUILT_IN[name]()
    assert isinstance(found, JudgedScorer)
    return found


@pytest.mark.parametrize("name", CRITERIA)
async def test_a_criterion_has_two_cases_that_pass_and_two_that_fail_and_can_judge_them(name: str) -> None:
    scorer = scorer_of(name)
    cases = known_cases(scorer)
    assert sorted(case.right for case in cases) == [False, False, True, True]
    for case in cases:
        asking = case.scorer(scorer)
        assert asking.judge_model_options.num_samples == 1
        measured = asking.score(Subject(invocation=case.invocation, reference=case.reference, judge=Raises()))
        assert isinstance(measured, Awaitable)
        with pytest.raises(AskedError):
            await measured


@pytest.mark.parametrize("name", CRITERIA)
def test_no_two_cases_of_a_criterion_are_equal(name: str) -> None:
    cases = known_cases(scorer_of(name))
    assert (
        len({(case.invocation.model_dump_json(exclude={"invocation_id"}), str(case.reference)) for case in cases}) == 4
    )
