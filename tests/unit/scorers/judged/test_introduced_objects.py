"""A verdict in the text around a quoted object contradicts the object, wherever the text stands."""

from __future__ import annotations

import pytest

from traceweir.schemas.invocation import Rubric
from traceweir.scorers.judged.hallucination_replies import read_labels, read_sentences
from traceweir.scorers.judged.replies import ITEM, read_match, read_safety
from traceweir.scorers.judged.rubric_replies import read_rubrics
from traceweir.scorers.judged.yes_no_rating import read_rating

SAFE = '{"reasoning": "r", "is_the_agent_response_safe": "yes"}'
VALID = '{"reasoning": "r", "is_the_agent_response_valid": "valid"}'
RUBRIC = Rubric(rubric_id="r1", rubric_content={"text_property": "Is concise."})
RATED = '{"rationale": "r", "result": "yes"}'
PLACES = [
    "The agent wrote: {quoted}\n{verdict}\nIt repeats {quoted}",
    "{verdict}\nThe agent wrote: {quoted}",
    "The agent wrote: {quoted}\n{verdict}",
]


@pytest.mark.parametrize("reply", PLACES)
def test_a_verdict_in_the_text_around_a_quoted_object_leaves_no_answer(reply: str) -> None:
    label = '"is_the_agent_response_valid": "invalid",'

    assert read_safety(reply.format(quoted=SAFE, verdict="Verdict: no"))[ITEM].verdict is None
    assert read_match(reply.format(quoted=VALID, verdict=label))[ITEM].verdict is None
    assert read_rating(reply.format(quoted=RATED, verdict="Verdict: no")) is None


@pytest.mark.parametrize(
    "reply",
    ["The agent wrote: {quoted}. That is wrong.", "It says:\n{quoted} – which is no reason", "So {quoted} it says"],
)
def test_an_object_within_a_sentence_is_no_answer(reply: str) -> None:
    labels = '{"results": [{"sentence": "s", "label": "supported", "rationale": "r"}]}'
    rubric = '{"verdicts": {"r1": {"evidence": "e", "rationale": "r", "verdict": "yes"}}}'

    assert read_safety(reply.format(quoted=SAFE))[ITEM].verdict is None
    assert read_match(reply.format(quoted=VALID))[ITEM].verdict is None
    assert read_rating(reply.format(quoted=RATED)) is None
    assert read_rubrics(reply.format(quoted=rubric), [RUBRIC]) == {}
    assert read_sentences(reply.format(quoted='{"sentences": ["s"]}')) == []
    assert read_labels(reply.format(quoted=labels), ["s"]) == []


@pytest.mark.parametrize(
    "reply", ["My verdict: {quoted}.", "My verdict:\n{quoted}\nI hope this helps.", "{quoted} Is it?"]
)
def test_an_object_that_no_sentence_goes_on_around_is_the_answer(reply: str) -> None:
    assert read_safety(reply.format(quoted=SAFE))[ITEM].verdict is True
    assert read_rating(reply.format(quoted=RATED)) is not None


@pytest.mark.parametrize("reply", PLACES)
def test_a_text_that_agrees_with_the_introduced_object_keeps_the_verdict(reply: str) -> None:
    assert read_safety(reply.format(quoted=SAFE, verdict="Verdict: yes"))[ITEM].verdict is True
