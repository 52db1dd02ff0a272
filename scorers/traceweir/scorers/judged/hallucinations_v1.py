"""Hallucinations: does what the agent says rest on what it was given?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.score import Cost
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement, MissingInput, Subject
from traceweir.scorers.judge import AnswerUnusable, Judge, JudgeFailed
from traceweir.scorers.judged.base import JudgedScorer, judge_of
from traceweir.scorers.judged.evidence import EvidenceStep, answer_of, context_of, steps_of
from traceweir.scorers.judged.hallucination_replies import (
    LABELS_ANSWER,
    SENTENCES_ANSWER,
    Labelled,
    read_labels,
    read_sentences,
)
from traceweir.scorers.judged.prompt import prompt
from traceweir.scorers.judged.vote import results, together, total

SHOWN_SENTENCES = 100
SHOWN_CHARACTERS = 300


class Hallucinations(JudgedScorer):
    """The share of a response's sentences that the context supports, or that need no support.

    A judge first splits the response into sentences, then labels each against the context: `supported` and `not_applicable` count 1,
    `unsupported`, `contradictory` and `disputed` 0, a sentence without one of these labels not at all. An invocation's value is the mean
    over its responses, a session's the mean over its invocations. Each response takes two questions, and there is no vote.
    This is `hallucinations_v1` of Google ADK 2.13 (`evaluation/hallucinations_v1.py`), with prompts of our own.

    >>> Hallucinations(evaluateIntermediateNlResponses=True).evaluate_intermediate_nl_responses
    True
    """

    metric = "hallucinations_v1"
    evaluate_intermediate_nl_responses: bool = False
    """Whether what the agent said before its final response is measured, too, each against what came before it."""

    async def score(self, subject: Subject) -> Measurement:
        """Ask for the sentences and their labels.

        A response about which nothing can be learned is left out, as long as there is another.

        Raises:
            AnswerUnusable: no reply holds a label.
            BudgetSpent: asking is no longer paid for.
            JudgeFailed: no question was answered.
        """
        judge = judge_of(subject)
        responses = self._responses(subject.invocation) if subject.invocation else []
        if not responses:
            raise MissingInput("there is no response whose sentences could be checked")
        at_once = asyncio.Semaphore(self.judge_model_options.parallelism_limit)

        async def check(response: str, context: str) -> _Checked:
            async with at_once:
                return await self._checked(judge, response, context)

        checked = results(await together([check(response, context) for response, context in responses]))
        cost = total(cost for one in checked for cost in one.costs)
        values = [one.value for one in checked if one.value is not None]
        if not values:
            failure = next((one.failure for one in checked if one.failure), None)
            if failure:
                raise failure
            raise AnswerUnusable(f"no sentence of {len(checked)} responses has a label: {checked[0].because}", cost)
        labelled = [found for one in checked for found in one.labelled if found.good is not None]
        bad = [found for found in labelled if not found.good]
        return Measurement(
            value=float(mean(values)),
            rationale=f"{len(labelled) - len(bad)} of {len(labelled)} sentences are supported or need no support"
            + (f"; not: {printable(bad[0].sentence, SHOWN_CHARACTERS)}" if bad else ""),
            details={"responses": [one.details() for one in checked]},
            cost=cost,
        )

    def aggregate(self, measured: Sequence[Measurement]) -> float:
        """The arithmetic mean, rounded once, as ADK takes it."""
        return float(mean(m.value for m in measured))

    def _responses(self, invocation: Invocation) -> list[tuple[str, str]]:
        """The responses to measure, each with its context."""
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

    async def _checked(self, judge: Judge, response: str, context: str) -> _Checked:
        costs: list[Cost] = []
        try:
            text = prompt(f"{self.metric}.sentences", {"response": response})
            reply = await judge.ask(self.question(text, SENTENCES_ANSWER))
            costs.append(reply.cost)
            sentences = read_sentences(reply.text)
            if not sentences:
                return _Checked(because=f"no sentences in {printable(reply.text, 200)!r}", costs=costs)
            text = prompt(f"{self.metric}.labels", {"context": context, "sentences": _numbered(sentences)})
            reply = await judge.ask(self.question(text, LABELS_ANSWER))
            costs.append(reply.cost)
        except JudgeFailed as failure:
            return _Checked(because=printable(str(failure), 200), failure=failure, costs=costs)
        labelled = read_labels(reply.text, sentences)
        good = [found.good for found in labelled if found.good is not None]
        if not good:
            because = f"no label in {printable(reply.text, 200)!r}"
            return _Checked(labelled=labelled, because=because, costs=costs)
        return _Checked(float(mean(map(int, good))), labelled, costs=costs)


def _numbered(sentences: Sequence[str]) -> str:
    """A line of JSON each: line breaks inside a sentence cannot look like the next one."""
    numbered = ({"number": number, "sentence": sentence.strip()} for number, sentence in enumerate(sentences, 1))
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in numbered)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What was found about one response."""

    value: float | None = None
    labelled: Sequence[Labelled] = ()
    because: str = ""
    failure: JudgeFailed | None = None
    costs: Sequence[Cost] = ()

    def details(self) -> JsonObject:
        shown = [found.details(SHOWN_CHARACTERS) for found in self.labelled[:SHOWN_SENTENCES]]
        details: JsonObject = {"value": self.value, "sentences": [*shown]}
        if len(self.labelled) > SHOWN_SENTENCES:
            details["more_sentences"] = len(self.labelled) - SHOWN_SENTENCES
        return details | ({"because": self.because} if self.because else {})
