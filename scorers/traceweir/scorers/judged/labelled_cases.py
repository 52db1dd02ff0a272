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

from pydantic import Field, JsonValue, ValidationError, model_validator

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
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Subject
from traceweir.scorers.judge import Judge
from traceweir.scorers.judged.base import JudgedScorer, subject_at_end

Label = Literal["good", "bad"]
"""Whether the criterion must pass the case (its value is 1), or must fail it."""


class CasesError(ValueError):
    """Raised if a text has no labelled cases, or cases that cannot be used. The message has one problem a line."""


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """Holds the turns of a session, and whether the session, or its last invocation, must pass."""

    id: str
    language: str
    label: Label
    is_plain: bool
    """Whether the case is one of those that `traceweir judge check` asks."""
    turns: Sequence[Turn]
    options: Mapping[str, JsonValue]
    """Options of the criterion for this case, such as its rubrics."""

    @property
    def must_pass(self) -> bool:
        """Whether the label is `good`."""
        return self.label == "good"

    def scorer(self, configured: JudgedScorer) -> JudgedScorer:
        """Returns the scorer with the options of this case, which asks the configured model once."""
        return asking_once(configured, self.options)

    def subject(self, scorer: JudgedScorer, judge: Judge) -> Subject:
        """Returns what a scorer measures: the last invocation, or the session."""
        return subject_at_end(scorer, self.turns, judge)

    async def passes(self, configured: JudgedScorer, judge: Judge) -> bool:
        """Returns whether a judge passes the case: whether its value is 1.

        Raises:
            BudgetSpent: the budget does not allow a question.
            JudgeFailed: there is no verdict.
        """
        scorer = self.scorer(configured)
        found = scorer.score(self.subject(scorer, judge))
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
    >>> case.must_pass, case.turns[0].invocation.final_response.text
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


class _Turn(ConfigModel):
    question: NonEmpty
    answer: str | None = None
    expected: str | None = None
    facts: list[str] | None = None
    chunks: list[str] | None = None
    calls: list[_Call] = []


class _Document(ConfigModel):
    id: Annotated[str, Field(min_length=1, max_length=100)]
    language: Annotated[str, Field(min_length=1, max_length=35)]
    label: Label
    check: bool = False
    why: str = ""
    turns: Annotated[list[_Turn], Field(min_length=1)] | None = None
    instructions: str | None = None
    rubrics: list[str] | None = None
    guidelines: list[str] | None = None
    question: NonEmpty | None = None
    answer: str | None = None
    expected: str | None = None
    facts: list[str] | None = None
    chunks: list[str] | None = None
    calls: list[_Call] = []

    @model_validator(mode="after")
    def _check_turns(self) -> _Document:
        if (self.question is None) == (self.turns is None):
            raise ValueError("a case has a question, or turns with a question each; write one of them")
        if self.turns is not None and (extra := self.model_fields_set & _Turn.model_fields.keys()):
            raise ValueError(f"{min(extra)} belongs to a turn of turns; move it there")
        return self


def _case(document: _Document) -> LabelledCase:
    if document.turns is None:
        plain = {name: getattr(document, name) for name in _Turn.model_fields}
        turns = [_turn(document.id, _Turn.model_validate(plain), document.instructions)]
    else:
        turns = [
            _turn(f"{document.id}-turn-{number}", each, document.instructions)
            for number, each in enumerate(document.turns, 1)
        ]
    options: JsonObject = {}
    if document.rubrics is not None:
        options["rubrics"] = [
            {"rubric_id": f"r{number}", "rubric_content": {"text_property": text}}
            for number, text in enumerate(document.rubrics, 1)
        ]
    if document.guidelines is not None:
        options["guidelines"] = [*document.guidelines]
    return LabelledCase(document.id, document.language, document.label, document.check, turns, options)


def _turn(name: str, document: _Turn, instructions: str | None) -> Turn:
    ids = [f"{name}-{number}" for number in range(1, len(document.calls) + 1)]
    calls = list(zip(ids, document.calls, strict=True))
    invocation = Invocation(
        invocation_id=name,
        user_content=Content.of(document.question),
        final_response=Content.of(document.answer, "model") if document.answer is not None else None,
        intermediate_data=IntermediateData(
            tool_uses=[FunctionCall(id=own, name=call.name, args=call.args) for own, call in calls],
            tool_responses=[FunctionResponse(id=own, name=call.name, response=call.response) for own, call in calls],
        ),
        retrieved_context=[
            RetrievedChunk(doc_uri=f"doc-{number}", content=text) for number, text in enumerate(document.chunks or ())
        ]
        or None,
        app_details=None if instructions is None else {"agent_details": {"agent": {"instructions": instructions}}},
    )
    reference = Reference(
        final_response=Content.of(document.expected, "model") if document.expected is not None else None,
        expected_facts=document.facts,
    )
    return Turn(invocation, reference)
