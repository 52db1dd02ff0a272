"""Judges by a prompt text of the config: a criterion of one's own, without code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from traceweir.schemas.base import JsonObject, NonEmpty
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reference import Reference
from traceweir.scorers.base import (
    Measurement,
    Measurements,
    MissingInput,
    NeededReference,
    Subject,
    invocation_of,
    turns_of_session,
)
from traceweir.scorers.judge import Reply
from traceweir.scorers.judged.base import JudgedScorer, JudgedTurn, RatingOptions, judge_of
from traceweir.scorers.judged.dialogue import Dialogue, dialogue_of
from traceweir.scorers.judged.evidence import (
    UNKNOWN_TOOLS,
    answer_of,
    instructions_of,
    question_of,
    retrieved_context_of,
    tools_of,
)
from traceweir.scorers.judged.scales import Scale, YesNoScale, counted_categories

MAX_CHARACTERS = 50_000
"""Longest prompt text of a criterion."""
NO_TURNS_BEFORE = "There are no earlier turns."
_PART = re.compile(r"\{(\w+)\}")


class PromptCriterion(JudgedScorer):
    """Measures what a prompt text of the config asks for, on a scale of the config.

    The text names the parts that the judge reads in braces. Each becomes a block of data between marks, so that no text
    of a user, an agent or a tool is an instruction; nothing else is expanded.
    """

    parts: ClassVar[Mapping[str, Callable[[Subject], str]]]
    """The parts that a prompt of this level can name, by name."""
    expected: ClassVar[tuple[str, ...]]
    """The fields of a reference that `{reference}` stands for at this level."""
    dialogue_block = "dialogue"
    version = "1"
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,99}$")]
    """The criterion's name."""
    prompt_text: NonEmpty = Field(alias="prompt")
    """The text, with the named parts in braces."""
    scale: Scale = YesNoScale()
    """`yes_no`, a number with both ends named, or categories with their numbers."""
    judge_model_options: RatingOptions = RatingOptions()

    @field_validator("prompt_text")
    @classmethod
    def _check_parts(cls, text: str) -> str:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"has {len(text):,} characters; the most is {MAX_CHARACTERS:,}")
        named = _PART.findall(text)
        listed = ", ".join(f"{{{name}}}" for name in cls.parts)
        for name in named:
            if name not in cls.parts:
                raise ValueError(f"{{{name}}} is no part that a prompt of this level can name ({listed})")
        if not named:
            raise ValueError(f"names no part of what is judged; write at least one of {listed}")
        return text

    @property
    def value_range(self) -> tuple[float, float]:
        """The ends of the scale."""
        return self.scale.ends

    @property
    def needed_reference(self) -> NeededReference | None:
        """The fields of which `{reference}` needs one, if the prompt names it."""
        if "reference" not in _PART.findall(self.prompt_text):
            return None
        return NeededReference(self.expected, option="prompt", change="leave {reference} out of")

    @property
    def metric(self) -> str:  # type: ignore[override]
        """The criterion's name."""
        return self.name

    async def score(self, subject: Subject) -> Measurement:
        """Asks the judge.

        Raises:
            AnswerUnusable: no reply is an answer on the scale.
            BudgetSpent: the budget does not allow further questions.
            JudgeFailed: the judge did not answer a question.
            MissingInput: there is no judge, or a part that the text names is missing.
        """
        judge = judge_of(subject)
        scale = self.scale
        named = dict.fromkeys(_PART.findall(self.prompt_text))
        data = {name: self.parts[name](subject) for name in named}
        criterion, case = _split(self.prompt_text)
        texts = {"criterion": criterion, "case": case, **scale.texts}
        fitted = await self.prompt(subject, scale.template, data, texts)

        async def ask(answer: JsonObject, problem: Callable[[str], str | None], sample: int) -> Reply:
            return await judge.ask(self.question(fitted.prompt, answer, problem, sample))

        return await scale.measured(ask, self.judge_model_options, fitted)

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns how many invocations have which category."""
        return counted_categories(measured)


class InvocationPrompt(PromptCriterion, JudgedTurn):
    """A criterion of one's own about single invocations. A session's value is the mean of its invocations."""

    level = "invocation"
    expected = ("final_response", "expected_facts", "task", "expected_outcome")
    parts: ClassVar[Mapping[str, Callable[[Subject], str]]] = {
        "question": lambda subject: _required(question_of(invocation_of(subject)), "question"),
        "answer": lambda subject: _required(answer_of(invocation_of(subject)), "answer"),
        "dialogue": lambda subject: NO_TURNS_BEFORE,
        "tools": lambda subject: tools_of(invocation_of(subject), unknown=UNKNOWN_TOOLS),
        "instructions": lambda subject: _required(instructions_of(invocation_of(subject)), "instructions"),
        "reference": lambda subject: _required(_expected(subject.reference), "reference"),
        "context": lambda subject: _required(retrieved_context_of(invocation_of(subject)), "context"),
    }

    def dialogue(self, subject: Subject) -> Dialogue | None:
        """Returns the earlier turns, if the text names them."""
        return super().dialogue(subject) if "{dialogue}" in self.prompt_text else None


class SessionPrompt(PromptCriterion):
    """A criterion of one's own about the session as a whole."""

    level = "session"
    expected = ("task", "expected_outcome")
    parts: ClassVar[Mapping[str, Callable[[Subject], str]]] = {
        "dialogue": lambda subject: str(len(turns_of_session(subject))),
        "tools": lambda subject: tools_of(_last(subject), unknown=UNKNOWN_TOOLS),
        "instructions": lambda subject: _required(instructions_of(_last(subject)), "instructions"),
        "reference": lambda subject: _required(_expected(subject.reference), "reference"),
    }

    def dialogue(self, subject: Subject) -> Dialogue | None:
        """Returns all turns, if the text names them."""
        if "{dialogue}" not in self.prompt_text:
            return None
        return dialogue_of(turns_of_session(subject), subject.session, whole=2)


LEVELS: Mapping[str, type[PromptCriterion]] = {"invocation": InvocationPrompt, "session": SessionPrompt}
"""The scorer of a criterion of one's own, by the option `level`."""


def _required(text: str, part: str) -> str:
    if not text:
        raise MissingInput(f"the prompt names {{{part}}}, and there is none")
    return text


def _expected(reference: Reference | None) -> str:
    if reference is None:
        return ""
    answer = reference.final_response.text if reference.final_response else ""
    facts = "\n".join(reference.expected_facts or ())
    return "\n\n".join(text for text in (reference.task, reference.expected_outcome, answer, facts) if text)


def _last(subject: Subject) -> Invocation:
    """Returns the last invocation of which the agent's description is known, else the last one."""
    turns = turns_of_session(subject)
    known = [turn.invocation for turn in turns if turn.invocation.app_details]
    return known[-1] if known else turns[-1].invocation


def _split(text: str) -> tuple[str, str]:
    """Returns the paragraphs before the first that names a part, which are equal for all sessions, and the rest."""
    start = _PART.search(text)
    boundary = text.rfind("\n\n", 0, start.start() if start else 0)
    return ("", text) if boundary < 0 else (text[:boundary].strip(), text[boundary:].strip())
