"""Measures hallucinations: the share of the agent's sentences that its context supports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reasoning_parts import invocation_with_reasoning
from traceweir.schemas.score import Cost
from traceweir.schemas.text import printable
from traceweir.scorers.base import AdkCompat, Measurement, Measurements, MissingInput, Subject
from traceweir.scorers.judge import AnswerUnusable, JudgeFailed
from traceweir.scorers.judged.base import JudgedTurn, judge_of
from traceweir.scorers.judged.copied_reasons import is_copied
from traceweir.scorers.judged.evidence import EvidenceStep, agent_of, answer_of, context_of, steps_of
from traceweir.scorers.judged.fitting import FittedPrompt
from traceweir.scorers.judged.hallucination_replies import (
    LABELS_ANSWER,
    SENTENCES_ANSWER,
    LabelledSentence,
    read_labels,
    read_sentences,
    without_label,
)
from traceweir.scorers.judged.prompt import prompt
from traceweir.scorers.judged.vote import gather_all, raise_first, total_cost

SHOWN_SENTENCES = 100
SHOWN_CHARACTERS = 300


class Hallucinations(JudgedTurn):
    """Returns the share of a response's sentences that the context supports, or that need no support, from 0 to 1.

    A judge first splits the response into sentences, then labels each sentence by comparing it with the context. The
    labels `supported` and `not_applicable` count 1; `unsupported`, `contradictory` and `disputed` count 0. A sentence
    without one of these labels, or a response that cannot be checked, leaves its invocation without a value; with
    `compat: "adk"` neither counts, as in Google ADK. An invocation's value is the mean of its responses, a session's
    value the mean of its invocations. Each response needs two questions, and there is no vote. This is
    `hallucinations_v1` of Google ADK 2.13 (`evaluation/hallucinations_v1.py`), with Traceweir's own prompts.

    >>> Hallucinations(evaluateIntermediateNlResponses=True).evaluate_intermediate_nl_responses
    True
    """

    metric = "hallucinations_v1"
    compat: AdkCompat = None
    evaluate_intermediate_nl_responses: bool = False
    """Whether intermediate responses are measured too, each with the steps before it as its context."""

    @property
    def asks_once(self) -> bool:
        """Each question is asked once, whatever `num_samples` is."""
        return True

    async def score(self, subject: Subject) -> Measurement:
        """Asks the judge for the sentences and their labels.

        Raises:
            AnswerUnusable: a response has a sentence without a label, or no sentences; with `compat: "adk"`, no response
                has a label.
            BudgetSpent: the budget does not allow further questions.
            JudgeFailed: the judge did not answer a question; with `compat: "adk"`, it answered none.
            MissingInput: there is no judge, or no response.
        """
        judge_of(subject)
        invocation = subject.invocation
        responses = self._responses(invocation) if invocation else []
        if invocation is None or not responses:
            raise MissingInput("there is no response whose sentences could be checked")
        agent = agent_of(invocation)
        limit = asyncio.Semaphore(self.judge_model_options.parallelism_limit)

        async def check(response: str, context: str) -> _ResponseCheck:
            async with limit:
                return await self._check(subject, response, agent, context)

        checks = raise_first(await gather_all([check(response, context) for response, context in responses]))
        cost = total_cost(cost for each in checks for cost in each.costs)
        values = [each.value for each in checks if each.value is not None]
        unchecked = [each for each in checks if each.value is None]
        # A share of the responses that could be checked can pass what the others say.
        if not values or (unchecked and self.compat is None):
            failure = next((each.failure for each in unchecked if each.failure), None)
            if failure:
                raise failure
            number = f"{len(unchecked)} of {counted(len(checks), 'response')}"
            raise AnswerUnusable(f"not each sentence of {number} has a label: {unchecked[0].because}", cost)
        labelled = [sentence for each in checks for sentence in each.labelled if sentence.good is not None]
        bad = [sentence for sentence in labelled if not sentence.good]
        return Measurement(
            value=float(mean(values)),
            rationale=f"{len(labelled) - len(bad)} of {len(labelled)} sentences are supported or need no support"
            + (f"; not: {printable(bad[0].sentence, SHOWN_CHARACTERS)}" if bad else ""),
            details={"responses": [each.details() for each in checks]},
            cost=cost,
        )

    def aggregate(self, measured: Measurements) -> float:
        """Returns the arithmetic mean, rounded once, as ADK computes it."""
        return float(mean(m.value for m in measured))

    def _responses(self, invocation: Invocation) -> list[tuple[str, str]]:
        """Returns the responses to measure, each with its context."""
        if self.compat is not None:
            invocation = invocation_with_reasoning(invocation)
        steps = steps_of(invocation)
        found = []
        if self.evaluate_intermediate_nl_responses:
            for number, step in enumerate(steps):
                before = [
                    *steps[:number],
                    *([EvidenceStep(author=step.author, grounding=step.grounding)] if step.grounding else []),
                ]
                found += [(text, context_of(invocation, before)) for text in step.texts]
        if final := answer_of(invocation):
            found.append((final, context_of(invocation, steps)))
        return found

    async def _check(self, subject: Subject, response: str, agent: str, context: str) -> _ResponseCheck:
        judge = judge_of(subject)
        costs: list[Cost] = []
        labels_template = f"{self.metric}.labels"

        def without_sentences(reply: str) -> str | None:
            return None if read_sentences(reply) else "it contains no sentences that can be read"

        try:
            text = prompt(f"{self.metric}.sentences", {"response": response})
            reply = await judge.ask(self.question(text, SENTENCES_ANSWER, without_sentences))
            costs.append(reply.cost)
            sentences = read_sentences(reply.text)
            if not sentences:
                return _ResponseCheck(because=f"no sentences in {printable(reply.text, 200)!r}", costs=costs)

            def labels_in(reply: str) -> list[LabelledSentence]:
                return [
                    replace(each, label="copied") if is_copied(each.rationale, labels_template) else each
                    for each in read_labels(reply, sentences)
                ]

            def without_labels(reply: str) -> str | None:
                labelled = [each for each in labels_in(reply) if each.good is not None]
                missing = len(without_label(sentences, labelled))
                is_enough = not missing if self.compat is None else bool(labelled)
                return None if is_enough else f"{missing} of {len(sentences)} sentences have none of the five labels"

            data = {"agent": agent, "context": context, "sentences": _numbered(sentences)}
            fitted = await self.prompt(subject, labels_template, data)
            reply = await judge.ask(self.question(fitted.prompt, LABELS_ANSWER, without_labels))
            costs.append(reply.cost)
        except JudgeFailed as failure:
            return _ResponseCheck(because=printable(str(failure), 200), failure=failure, costs=costs)
        labelled = labels_in(reply.text)
        good = _good(labelled)
        if without_labels(reply.text) is not None:
            because = f"{len(good)} of {len(sentences)} sentences have a label in {printable(reply.text, 200)!r}"
            return _ResponseCheck(labelled=labelled, because=because, costs=costs)
        return _ResponseCheck(float(mean(map(int, good))), labelled, costs=costs, fitted=fitted)


def _good(labelled: Sequence[LabelledSentence]) -> list[bool]:
    return [sentence.good for sentence in labelled if sentence.good is not None]


def _numbered(sentences: Sequence[str]) -> str:
    """Returns each sentence as a line of JSON, so that a line break cannot look like the start of a sentence."""
    numbered = ({"number": number, "sentence": sentence.strip()} for number, sentence in enumerate(sentences, 1))
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in numbered)


@dataclass(frozen=True, slots=True)
class _ResponseCheck:
    """Holds the value of one response and its labels, or the reason why it has no value."""

    value: float | None = None
    labelled: Sequence[LabelledSentence] = ()
    because: str = ""
    failure: JudgeFailed | None = None
    costs: Sequence[Cost] = ()
    fitted: FittedPrompt | None = None

    def details(self) -> JsonObject:
        shown = [sentence.details(SHOWN_CHARACTERS) for sentence in self.labelled[:SHOWN_SENTENCES]]
        details: JsonObject = {"value": self.value, "sentences": [*shown]}
        if len(self.labelled) > SHOWN_SENTENCES:
            details["more_sentences"] = len(self.labelled) - SHOWN_SENTENCES
        if self.fitted is not None:
            details |= self.fitted.details
        return details | ({"because": self.because} if self.because else {})
