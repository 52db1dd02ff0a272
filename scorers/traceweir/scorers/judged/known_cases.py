"""Provides cases for each judged criterion whose verdict no person would doubt: two that are right and two that are not.

A model that does not tell them apart cannot judge the criterion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from pydantic import JsonValue, TypeAdapter

from traceweir.schemas.base import ConfigModel, JsonObject
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    RetrievedChunk,
)
from traceweir.schemas.reference import Reference
from traceweir.scorers.base import Subject
from traceweir.scorers.judge import Judge
from traceweir.scorers.judged.base import JudgedScorer


@dataclass(frozen=True, slots=True)
class KnownCase:
    """Holds an invocation, and whether it must pass."""

    right: bool
    invocation: Invocation
    reference: Reference | None
    options: Mapping[str, JsonValue]
    """Options of the criterion for this case, such as its rubric."""

    def scorer(self, configured: JudgedScorer) -> JudgedScorer:
        """Returns the scorer with the options of this case, which asks the configured model once."""
        return asking_once(configured, self.options)

    async def passes(self, configured: JudgedScorer, judge: Judge) -> bool:
        """Returns whether a judge passes the case: whether its value is 1.

        Raises:
            BudgetSpent: the budget does not allow a question.
            JudgeFailed: there is no verdict.
        """
        found = self.scorer(configured).score(
            Subject(invocation=self.invocation, reference=self.reference, judge=judge)
        )
        return (await found if isinstance(found, Awaitable) else found).value >= 1


def asking_once(configured: JudgedScorer, options: Mapping[str, JsonValue] = MappingProxyType({})) -> JudgedScorer:
    """Returns a scorer with other options, which asks the configured model each question once."""
    once = configured.judge_model_options.model_copy(update={"num_samples": 1})
    fields = {name: getattr(configured, name) for name in type(configured).model_fields}
    return type(configured)(**{**fields, **options, "judge_model_options": once})


def known_cases(scorer: JudgedScorer) -> Sequence[KnownCase]:
    """Returns the cases of a criterion; empty for a criterion of a plugin."""
    return [
        _case(f"case-{number}", each)
        for number, each in enumerate(_documents().get(scorer.asks_as or scorer.metric, ()))
    ]


@cache
def _documents() -> Mapping[str, Sequence[_Document]]:
    text = files(__package__).joinpath("known_cases.json").read_text("utf-8")
    return TypeAdapter(dict[str, list[_Document]]).validate_json(text)


class _Document(ConfigModel):
    right: bool
    question: str
    answer: str
    expected: str | None = None
    chunks: list[str] = []
    tool: str | None = None
    args: JsonObject = {}
    response: JsonValue = None
    rubric: str | None = None
    guideline: str | None = None


def _case(name: str, document: _Document) -> KnownCase:
    calls = IntermediateData()
    if document.tool is not None:
        call = FunctionCall(id=name, name=document.tool, args=document.args)
        calls = IntermediateData(
            tool_uses=[call],
            tool_responses=[FunctionResponse(id=name, name=document.tool, response=document.response)],
        )
    invocation = Invocation(
        invocation_id=name,
        user_content=Content.of(document.question),
        final_response=Content.of(document.answer, "model"),
        intermediate_data=calls,
        retrieved_context=[RetrievedChunk(doc_uri=f"doc-{n}", content=text) for n, text in enumerate(document.chunks)]
        or None,
    )
    reference = Reference(final_response=Content.of(document.expected, "model")) if document.expected else None
    options: JsonObject = {}
    if document.rubric is not None:
        options["rubrics"] = [{"rubric_id": "known", "rubric_content": {"text_property": document.rubric}}]
    if document.guideline is not None:
        options["guidelines"] = [document.guideline]
    return KnownCase(document.right, invocation, reference, options)
