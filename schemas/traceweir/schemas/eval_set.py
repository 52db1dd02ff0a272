"""EvalSet: Google ADK's files of what was expected, `*.evalset.json` and `*.test.json`.

ADK writes them in snake_case and reads both spellings; so do we. As there, a key that does not exist is an error within an
invocation, where it would be an expectation that nobody checks, and no obstacle elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from traceweir.schemas.base import AdkModel, JsonObject
from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Rubric,
)
from traceweir.schemas.reference import Reference

NOTHING_SAID = Content(parts=[])


class _Closed(AdkModel):
    model_config = ConfigDict(extra="forbid")


class ExpectedData(IntermediateData):
    """What should happen between the question and the answer, by kind."""

    model_config = ConfigDict(extra="forbid")


class ExpectedEvents(_Closed):
    """What should happen between the question and the answer, in order."""

    invocation_events: list[InvocationStep]


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "events" if {"invocation_events", "invocationEvents"} & value.keys() else "data"
    return "events" if isinstance(value, ExpectedEvents) else "data"


class EvalRubric(Rubric):
    """A rubric whose text may be called `text_property` or `textProperty`, and afterwards is called `text_property`."""

    # Not in Rubric itself, which events carry: what is to be checked by Python cannot be read past pydantic.
    @field_validator("rubric_content", mode="before")
    @classmethod
    def _in_snake_case(cls, content: object) -> object:
        if not isinstance(content, dict) or "textProperty" not in content:
            return content
        return {"text_property" if key == "textProperty" else key: value for key, value in content.items()}


class EvalInvocation(_Closed):
    """One turn of an eval case: the question, and what was expected of the agent."""

    invocation_id: str = ""
    user_content: Content
    final_response: Content | None = None
    intermediate_data: (
        Annotated[Annotated[ExpectedData, Tag("data")] | Annotated[ExpectedEvents, Tag("events")], Discriminator(_kind)]
        | None
    ) = None
    creation_timestamp: float = 0.0
    duration: float | None = None
    model_duration: float | None = None
    tool_duration: float | None = None
    rubrics: list[EvalRubric] | None = None
    app_details: JsonObject | None = None

    @property
    def tool_uses(self) -> list[FunctionCall]:
        """The tool calls expected, in order, from either kind of intermediate data."""
        data = self.intermediate_data
        if isinstance(data, ExpectedEvents):
            events = InvocationEvents.trusted(invocation_events=data.invocation_events)
            return Invocation(intermediate_data=events).tool_uses
        return list(data.tool_uses) if data else []

    @property
    def reference(self) -> Reference:
        """What was expected. As for ADK, without intermediate data no tool call is, and without a final response an empty one."""
        return Reference(final_response=self.final_response or NOTHING_SAID, tool_uses=self.tool_uses)


class ConversationScenario(AdkModel):
    """How a simulated user begins and goes on; what the agent answers is nowhere written down."""

    starting_prompt: str
    conversation_plan: str = ""


class SessionInput(AdkModel):
    """The session with which a case begins."""

    app_name: str
    user_id: str
    session_id: str | None = None
    state: JsonObject = {}


class EvalCase(AdkModel):
    """One conversation, or the scenario of one."""

    model_config = ConfigDict(extra="allow")

    eval_id: str
    conversation: list[EvalInvocation] | None = None
    conversation_scenario: ConversationScenario | None = None
    session_input: SessionInput | None = None
    creation_timestamp: float = 0.0
    rubrics: list[EvalRubric] | None = None
    final_session_state: JsonObject | None = {}

    @model_validator(mode="after")
    def _is_one_of_both(self) -> EvalCase:
        if (self.conversation is None) == (self.conversation_scenario is None):
            what = "neither of them stands" if self.conversation is None else "both stand"
            raise ValueError(f"exactly one of conversation and conversation_scenario is needed; {what} there")
        return self

    @model_validator(mode="after")
    def _names_a_rubric_once(self) -> EvalCase:
        for number, turn in enumerate(self.conversation or ()):
            twice = _twice([*(self.rubrics or ()), *(turn.rubrics or ())])
            if twice is not None:
                raise ValueError(
                    f"conversation.{number}.rubrics: rubric_id {twice!r} stands there twice, the case's own counted; give each its own"
                )
        if (twice := _twice(self.rubrics or ())) is not None:
            raise ValueError(f"rubrics: rubric_id {twice!r} stands there twice; give each its own")
        return self

    def rubrics_of(self, turn: int) -> list[Rubric]:
        """The rubrics of a turn, from 0: the case's, then its own."""
        own = self.conversation[turn].rubrics if self.conversation and turn < len(self.conversation) else None
        return [*(self.rubrics or ()), *(own or ())]


def _twice(rubrics: Sequence[Rubric]) -> str | None:
    names = [rubric.rubric_id for rubric in rubrics]
    return next((name for name in names if names.count(name) > 1), None)


class EvalSet(AdkModel):
    """A file of eval cases.

    >>> EvalSet.model_validate_json('{"evalSetId": "s1", "evalCases": []}').eval_set_id
    's1'
    """

    eval_set_id: str
    name: str | None = None
    description: str | None = None
    eval_cases: list[EvalCase]
    creation_timestamp: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _names_a_case_once(self) -> EvalSet:
        first: dict[str, int] = {}
        for number, case in enumerate(self.eval_cases):
            if (earlier := first.setdefault(case.eval_id, number)) != number:
                raise ValueError(
                    f"eval_cases.{number}.eval_id: {case.eval_id!r} is that of eval_cases.{earlier}; give each its own"
                )
        return self
