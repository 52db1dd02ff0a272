"""Lists the metrics of Databricks Agent Evaluation: their names, and the expectations with which each metric runs."""

from __future__ import annotations

from typing import NamedTuple

from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable


class ExpectedParts(NamedTuple):
    """States which expectations a row contains besides its request."""

    answer: bool = False
    """Whether the row contains an expected response or expected facts."""
    context: bool = False
    """Whether the row contains expected retrieved context."""
    guidelines: bool = False
    """Whether the row contains guidelines."""


RELEVANCE = "response/llm_judged/relevance_to_query/rating"
SAFETY = "response/llm_judged/safety/rating"
GUIDELINES = "response/llm_judged/guideline_adherence/rating"
GROUNDEDNESS = "response/llm_judged/groundedness/rating"
CORRECTNESS = "response/llm_judged/correctness/rating"
CHUNK_PRECISION = "retrieval/llm_judged/chunk_relevance_precision"
SUFFICIENCY = "retrieval/llm_judged/context_sufficiency/rating"
RECALL = "retrieval/ground_truth/document_recall"
TOTAL_TOKENS = "agent/total_token_count"
INPUT_TOKENS = "agent/input_token_count"
OUTPUT_TOKENS = "agent/output_token_count"
LATENCY = "agent/latency_seconds"

MAX_NAMED_UNREAD = 3
"""Maximum number of unreadable parts of an invocation that a rationale names."""
MAX_ERROR_CHARS = 300
"""The longest part of the error of an invocation in a rationale."""


def _with_and_without_guidelines(*expected: ExpectedParts) -> frozenset[ExpectedParts]:
    return frozenset({*expected, *(each._replace(guidelines=True) for each in expected)})


_NOTHING = ExpectedParts()
_ANSWER = ExpectedParts(answer=True)
_BOTH = ExpectedParts(answer=True, context=True)
_CONTEXT = ExpectedParts(context=True)
_WITHOUT_CONTEXT_ALONE = _with_and_without_guidelines(_NOTHING, _ANSWER, _BOTH)
_WITH_ANSWER = _with_and_without_guidelines(_ANSWER, _BOTH)
_WITH_CONTEXT = _with_and_without_guidelines(_BOTH, _CONTEXT)
_WITH_GUIDELINES = frozenset(each._replace(guidelines=True) for each in (_NOTHING, _ANSWER, _BOTH, _CONTEXT))

RUNS_ON: dict[str, frozenset[ExpectedParts]] = {
    RELEVANCE: _WITHOUT_CONTEXT_ALONE,
    SAFETY: _WITHOUT_CONTEXT_ALONE,
    GROUNDEDNESS: _WITHOUT_CONTEXT_ALONE,
    CHUNK_PRECISION: _WITHOUT_CONTEXT_ALONE,
    TOTAL_TOKENS: _WITHOUT_CONTEXT_ALONE,
    INPUT_TOKENS: _WITHOUT_CONTEXT_ALONE,
    OUTPUT_TOKENS: _WITHOUT_CONTEXT_ALONE,
    LATENCY: _WITHOUT_CONTEXT_ALONE,
    CORRECTNESS: _WITH_ANSWER,
    SUFFICIENCY: _WITH_ANSWER,
    RECALL: _WITH_CONTEXT,
    GUIDELINES: _WITH_GUIDELINES,
}
"""The table of computed metrics in Databricks' input schema, in its order.

The table contains neither latency, which runs with the same expectations as the token counts, nor guideline
adherence, which runs where the row has guidelines.
"""

ALIASES: dict[str, str] = {
    "document_recall": RECALL,
    "chunk_relevance_precision": CHUNK_PRECISION,
    "chunk_relevance/precision": CHUNK_PRECISION,
    "retrieval/llm_judged/chunk_relevance/precision": CHUNK_PRECISION,
    "total_token_count": TOTAL_TOKENS,
    "input_token_count": INPUT_TOKENS,
    "agent/total_input_token_count": INPUT_TOKENS,
    "output_token_count": OUTPUT_TOKENS,
    "agent/total_output_token_count": OUTPUT_TOKENS,
    "latency_seconds": LATENCY,
    "latency": LATENCY,
    "correctness": CORRECTNESS,
    "relevance_to_query": RELEVANCE,
    "safety": SAFETY,
    "guideline_adherence": GUIDELINES,
    "guidelines": GUIDELINES,
    "groundedness": GROUNDEDNESS,
    "context_sufficiency": SUFFICIENCY,
}
"""Other names of the metrics: short names, and names of databricks-agents and MLflow. Results use the full name."""


def full_name(metric: str) -> str:
    """Returns the name of a metric in results.

    >>> full_name("document_recall"), full_name("brevity")
    ('retrieval/ground_truth/document_recall', 'brevity')
    """
    return ALIASES.get(metric, metric)


def short_name(metric: str) -> str:
    """Returns the shortest name of a metric that a config can use. Scores always show the full name.

    >>> short_name("retrieval/ground_truth/document_recall"), short_name("brevity")
    ('document_recall', 'brevity')
    """
    return next((alias for alias, name in ALIASES.items() if name == metric), metric)


def expected_of(reference: Reference | None) -> ExpectedParts:
    """Returns the expectations in a reference.

    An empty list of facts or chunks counts as an expectation; an empty list of guidelines does not.
    """
    if reference is None:
        return ExpectedParts()
    answer = reference.final_response is not None or reference.expected_facts is not None
    return ExpectedParts(answer, reference.retrieved_context is not None, bool(reference.guidelines))


def reason_with_unread(invocation: Invocation, reason: str) -> str:
    """Returns why a metric has no value: the reason, the error of an invocation that failed, and up to three parts of it
    that are unreadable."""
    unread = invocation.unread or []
    if invocation.error:
        reason = f"{reason}; the invocation failed: {printable(invocation.error, MAX_ERROR_CHARS)}"
    more = [f"and {len(unread) - MAX_NAMED_UNREAD} more"] if len(unread) > MAX_NAMED_UNREAD else []
    return "; ".join([reason, *unread[:MAX_NAMED_UNREAD], *more])
