"""Provides labelled cases of each judged criterion: invocations of which it is known whether they must pass.

The folder `cases` has a file in JSON Lines for each criterion. Four cases of each file are so plain that a model which
gets one wrong cannot judge the criterion; `traceweir judge check` asks these. `traceweir judge agree` asks all cases,
or those of a file of the user in the same format.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from traceweir.schemas.base import ConfigModel, JsonObject, NonEmpty, explain
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    RetrievedChunk,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable
from traceweir.scorers.base import Subject
from traceweir.scorers.judge import Judge
from traceweir.scorers.judged.base import JudgedScorer

Label = Literal["good", "bad"]
"""Whether the criterion must pass the case (its value is 1), or must fail it."""


class CasesError(ValueError):
    """Raised if a text has no labelled cases, or cases that cannot be used. The message has one problem a line."""


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """Holds an invocation, and whether it must pass."""

    id: str
    language: str
    label: Label
    is_plain: bool
    """Whether the case is one of those that `traceweir judge check` asks."""
    invocation: Invocation
    reference: Reference | None
    options: Mapping[str, JsonValue]
    """Options of the criterion for this case, such as its rubrics."""

    @property
    def must_pass(self) -> bool:
        """Whether the label is `good`."""
        return self.label == "good"

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


def labelled_cases(scorer: JudgedScorer) -> Sequence[LabelledCase]:
    """Returns the packaged cases of a criterion; empty for a criterion of a plugin."""
    return _packaged(scorer.asks_as or scorer.metric)


def plain_cases(scorer: JudgedScorer) -> Sequence[LabelledCase]:
    """Returns the cases that `traceweir judge check` asks; empty for a criterion of a plugin."""
    return [case for case in labelled_cases(scorer) if case.is_plain]


def read_cases(text: str) -> list[LabelledCase]:
    """Returns the cases of a text in JSON Lines; empty lines do not count.

    Raises:
        CasesError: there is no case, a line is no case, or two cases have the same id.

    >>> [case] = read_cases('{"id": "a", "language": "en", "label": "bad", "question": "Why?", "answer": "Because."}')
    >>> case.must_pass, case.invocation.final_response.text
    (False, 'Because.')
    >>> read_cases('{"id": "a", "language": "en", "label": "wrong", "question": "Why?"}')
    Traceback (most recent call last):
    traceweir.scorers.judged.labelled_cases.CasesError: line 1: label: Input should be 'good' or 'bad'
    """
    problems: list[str] = []
    lines: dict[str, int] = {}
    cases: list[LabelledCase] = []
    # Not splitlines: a string of JSON may contain U+2028.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = _Document.model_validate_json(line)
        except ValidationError as error:
            problems.append(f"line {number}: {explain(error)}")
            continue
        if document.id in lines:
            problems.append(
                f"line {number}: id: {printable(document.id)!r} is also the id of line {lines[document.id]}; "
                "give each case an id of its own"
            )
        lines.setdefault(document.id, number)
        cases.append(_case(document))
    if not cases and not problems:
        problems.append("contains no case; write one JSON object a line, with id, language, label and question")
    if problems:
        raise CasesError("\n".join(problems))
    return cases


@cache
def _packaged(criterion: str) -> Sequence[LabelledCase]:
    name = criterion.removesuffix("/rating").rpartition("/")[2]
    file = files(__package__) / "cases" / f"{name}.jsonl"
    return read_cases(file.read_text("utf-8")) if file.is_file() else ()


class _Call(ConfigModel):
    name: NonEmpty
    args: JsonObject = {}
    response: JsonValue = None


class _Document(ConfigModel):
    id: Annotated[str, Field(min_length=1, max_length=100)]
    language: Annotated[str, Field(min_length=1, max_length=35)]
    label: Label
    check: bool = False
    why: str = ""
    question: NonEmpty
    answer: str | None = None
    expected: str | None = None
    facts: list[str] | None = None
    chunks: list[str] | None = None
    calls: list[_Call] = []
    rubrics: list[str] | None = None
    guidelines: list[str] | None = None


def _case(document: _Document) -> LabelledCase:
    ids = [f"{document.id}-{number}" for number in range(1, len(document.calls) + 1)]
    calls = list(zip(ids, document.calls, strict=True))
    invocation = Invocation(
        invocation_id=document.id,
        user_content=Content.of(document.question),
        final_response=Content.of(document.answer, "model") if document.answer is not None else None,
        intermediate_data=IntermediateData(
            tool_uses=[FunctionCall(id=name, name=call.name, args=call.args) for name, call in calls],
            tool_responses=[FunctionResponse(id=name, name=call.name, response=call.response) for name, call in calls],
        ),
        retrieved_context=[
            RetrievedChunk(doc_uri=f"doc-{number}", content=text) for number, text in enumerate(document.chunks or ())
        ]
        or None,
    )
    reference = Reference(
        final_response=Content.of(document.expected, "model") if document.expected is not None else None,
        expected_facts=document.facts,
    )
    options: JsonObject = {}
    if document.rubrics is not None:
        options["rubrics"] = [
            {"rubric_id": f"r{number}", "rubric_content": {"text_property": text}}
            for number, text in enumerate(document.rubrics, 1)
        ]
    if document.guidelines is not None:
        options["guidelines"] = [*document.guidelines]
    return LabelledCase(document.id, document.language, document.label, document.check, invocation, reference, options)
