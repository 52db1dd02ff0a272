"""Measures final response match: whether a judge finds that the answer means the same as the expected answer."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject
from traceweir.schemas.reasoning_parts import invocation_with_reasoning, with_reasoning
from traceweir.scorers.base import AdkCompat, Measurement, MissingInput, NeededReference, Subject, invocation_of
from traceweir.scorers.judged.base import JudgedTurn, judge_of
from traceweir.scorers.judged.evidence import answer_of, question_of
from traceweir.scorers.judged.replies import ITEM, MATCH_ANSWER, read_match
from traceweir.scorers.judged.vote import Ballot, verdict_measurement, vote


class FinalResponseMatch(JudgedTurn):
    """Returns 1 if a judge finds the final response valid compared with the reference's, else 0.

    The majority of the judge's replies decides; a tie is 0. A session's value is the share of valid invocations among
    those with a verdict. This is `final_response_match_v2` of Google ADK 2.13
    (`evaluation/final_response_match_v2.py`), with Traceweir's own prompt.

    >>> FinalResponseMatch().judge_model_options.num_samples
    5
    """

    metric = "final_response_match_v2"
    include_intermediate_responses_in_final: bool = False
    """Whether the agent's intermediate responses count as part of its final response."""
    compat: AdkCompat = None

    @property
    def needed_reference(self) -> NeededReference:
        """The expected response."""
        return NeededReference(("final_response",))

    async def score(self, subject: Subject) -> Measurement:
        """Asks the judge whether the response is valid.

        Raises:
            AnswerUnusable: no reply contains a verdict.
            BudgetSpent: the budget does not allow further questions.
            JudgeFailed: the judge did not answer a question.
            MissingInput: there is no judge, or no expected final response.
        """
        invocation = invocation_of(subject)
        reference = subject.reference
        judge = judge_of(subject)
        if reference is None or reference.final_response is None:
            raise MissingInput("no reference says which final response was expected")
        expected = reference.final_response
        if self.compat is not None:
            invocation = invocation_with_reasoning(invocation)
            expected = with_reasoning(expected) or expected
        fitted = await self.prompt(
            subject,
            self.metric,
            {
                "question": reference.question or question_of(invocation),
                "reference": expected.text,
                "response": answer_of(invocation, self.include_intermediate_responses_in_final),
            },
        )
        ballot = Ballot([ITEM], read_match, self.metric)
        poll = await vote(
            lambda sample: judge.ask(self.question(fitted.prompt, MATCH_ANSWER, ballot.problem, sample)),
            ballot,
            self.judge_model_options,
        )
        return verdict_measurement(poll, ITEM, "valid", fitted)

    def decisive_options(self) -> JsonObject:
        """Returns the options; without `compat` they are what they were before there was such an option."""
        options = super().decisive_options()
        return options if self.compat is not None else {name: options[name] for name in options if name != "compat"}
