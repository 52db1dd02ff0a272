"""Defines the ratings of Databricks Agent Evaluation for an invocation as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.schemas.evaluation_row import CONFLICT
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.refused_record import CONTEXT
from traceweir.scorers import databricks_names
from traceweir.scorers.base import MissingInput, NeededReference, require_accepted
from traceweir.scorers.databricks_names import reason_with_unread
from traceweir.scorers.judged.base import RatingOptions
from traceweir.scorers.judged.evidence import answer_of, json_lines, retrieved_context_of
from traceweir.scorers.judged.guidelines import Guidelines, applied_guidelines, needed_guidelines
from traceweir.scorers.judged.safety_v1 import Safety
from traceweir.scorers.judged.yes_no_rating import YesNoRating, request_of


class Correctness(YesNoRating):
    """Returns 1 if the response contains what was expected and does not contradict it, else 0.

    Expected are either all facts or the content of the expected response. This is `correctness` of Databricks Agent
    Evaluation, which also asks a single question about all facts.

    >>> Correctness().judge_model_options.num_samples
    1
    """

    metric = databricks_names.CORRECTNESS
    template = "correctness"
    adjective = "correct"

    @property
    def needed_reference(self) -> NeededReference:
        """The expected response or facts."""
        return NeededReference(("final_response", "expected_facts"))

    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the question, the expected response or facts, and the response."""
        return {
            "question": request_of(invocation, reference),
            "expected": _expected(reference),
            "response": _response(invocation),
        }


class RelevanceToQuery(YesNoRating):
    """Returns 1 if the response addresses the request, correctly or not, else 0.

    This is `relevance_to_query` of Databricks Agent Evaluation.

    >>> RelevanceToQuery(judge_model_options={"judge_model": "openai/gpt-4o-mini"}).judge_model
    'openai/gpt-4o-mini'
    """

    metric = databricks_names.RELEVANCE
    template = "relevance_to_query"
    adjective = "relevant to the query"

    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the question and the response."""
        return {"question": request_of(invocation, reference), "response": _response(invocation)}


class Groundedness(YesNoRating):
    """Returns 1 if every claim of the response is in the retrieved context or follows from the context, else 0.

    This is `groundedness` of Databricks Agent Evaluation. Only chunks with content count.

    >>> Groundedness().judge_model_options.parallelism_limit
    10
    """

    metric = databricks_names.GROUNDEDNESS
    template = "groundedness"
    adjective = "grounded in the retrieved context"

    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the question, the retrieved context and the response."""
        return {
            "question": request_of(invocation, reference),
            "context": _context(invocation),
            "response": _response(invocation),
        }


class ContextSufficiency(YesNoRating):
    """Returns 1 if the retrieved context suffices for the expected answer, whatever the actual response is, else 0.

    This is `context_sufficiency` of Databricks Agent Evaluation. Only chunks with content count.

    >>> ContextSufficiency(judgeModelOptions={"numSamples": 3}).judge_model_options.num_samples
    3
    """

    metric = databricks_names.SUFFICIENCY
    template = "context_sufficiency"
    adjective = "sufficient"

    @property
    def needed_reference(self) -> NeededReference:
        """The expected response or facts."""
        return NeededReference(("final_response", "expected_facts"))

    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the question, the expected response or facts, and the retrieved context."""
        return {
            "question": request_of(invocation, reference),
            "expected": _expected(reference),
            "context": _context(invocation),
        }


class GuidelineAdherence(YesNoRating):
    """Returns 1 if the response keeps to all guidelines that apply, also if none applies, else 0.

    The guidelines are those of the criterion and those of the reference, in a single question. This is `Guidelines`
    and `ExpectationsGuidelines` of MLflow 3, and `guideline_adherence` of Databricks Agent Evaluation.

    >>> GuidelineAdherence(guidelines="The response is polite.").guidelines
    ['The response is polite.']
    """

    metric = databricks_names.GUIDELINES
    template = "guideline_adherence"
    adjective = "in line with the guidelines"
    guidelines: Guidelines = []
    """Guidelines for every response, in addition to those of the reference; a text is a single guideline."""

    @property
    def needed_reference(self) -> NeededReference | None:
        """The guidelines, if the criterion has none."""
        return needed_guidelines(self.guidelines)

    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the guidelines, the question and the response."""
        return {
            "guidelines": applied_guidelines(self.guidelines, reference),
            "question": request_of(invocation, reference),
            "response": _response(invocation),
        }


class SafetyRating(Safety):
    """Returns 1 if a judge finds that the final response complies with the policy of `safety_v1`, else 0.

    This rating asks once by default; `safety_v1` asks up to five times. This is `safety` of Databricks Agent
    Evaluation, whose policy is not public.

    >>> SafetyRating().judge_model_options.num_samples
    1
    """

    metric = databricks_names.SAFETY
    asks_as = Safety.metric
    judge_model_options: RatingOptions = RatingOptions()


def _response(invocation: Invocation) -> str:
    response = answer_of(invocation)
    if not response:
        raise MissingInput(reason_with_unread(invocation, "there is no response"))
    return response


def _expected(reference: Reference | None) -> str:
    """Returns the expected response unchanged, or each expected fact as a line of JSON."""
    if reference is not None and reference.expected_facts is not None:
        if reference.final_response is not None:
            raise ValueError(CONFLICT)
        if not reference.expected_facts:
            raise MissingInput("the list of expected facts is empty")
        return json_lines(reference.expected_facts)
    if reference is None or reference.final_response is None or not reference.final_response.text:
        raise MissingInput("no reference says which response or facts were expected")
    return reference.final_response.text


def _context(invocation: Invocation) -> str:
    require_accepted(invocation, CONTEXT)
    chunks = [chunk for chunk in invocation.retrieved_context or () if chunk.content]
    if not chunks:
        reason = "none of the retrieved chunks has content" if invocation.retrieved_context else "nothing was retrieved"
        raise MissingInput(reason_with_unread(invocation, reason))
    return retrieved_context_of(invocation.model_copy(update={"retrieved_context": chunks}))
