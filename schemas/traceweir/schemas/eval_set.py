"""Defines EvalSet: Google ADK's files of expected conversations, `*.evalset.json` and `*.test.json`.

As in ADK, the files are written in snake_case and read in snake_case and camelCase. As in ADK, an unknown key is an
error within an invocation, where it would be an expectation that is never checked, and is accepted elsewhere.
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
from traceweir.schemas.text import printable

_CALL_KEYS = {"id", "name", "args", "partial_args", "partialArgs", "will_continue", "willContinue"}
NOTHING_SAID = Content(parts=[])


class _Closed(AdkModel):
    model_config = ConfigDict(extra="forbid")


class ExpectedData(IntermediateData):
    """The expected events between the question and the answer, grouped by kind."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("tool_uses", mode="before")
    @classmethod
    def _known_keys(cls, uses: object) -> object:
        """Refuses other keys of a call, as ADK does: an expected call without a name would never match."""
        for use in uses if isinstance(uses, list) else ():
            unknown = [key for key in use if key not in _CALL_KEYS] if isinstance(use, dict) else []
            if unknown:
                named = ", ".join(repr(printable(key, 40)) for key in unknown[:5])
                raise ValueError(
                    f"a call has the keys id, name and args, and not {named}; `tool_name` and `tool_input` are the keys of "
                    "ADK's old files: rename them to `name` and `args`"
                )
        return uses


class ExpectedEvents(_Closed):
    """The expected events between the question and the answer, in order."""

    invocation_events: list[InvocationStep]
    """The expected events, in order."""


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "events" if {"invocation_events", "invocationEvents"} & value.keys() else "data"
    return "events" if isinstance(value, ExpectedEvents) else "data"


class EvalRubric(Rubric):
    """A rubric whose text is in `text_property` or `textProperty`; validation renames the key to `text_property`."""

    # Rubric itself must not have this validator: fast decoding of events does not run Python validators.
    @field_validator("rubric_content", mode="before")
    @classmethod
    def _in_snake_case(cls, content: object) -> object:
        if not isinstance(content, dict) or "textProperty" not in content:
            return content
        return {"text_property" if key == "textProperty" else key: value for key, value in content.items()}


class EvalInvocation(_Closed):
    """One turn of an eval case: the question, and the expected behaviour of the agent."""

    invocation_id: str = ""
    """Id of the turn; empty if there is none."""
    user_content: Content
    """The question."""
    final_response: Content | None = None
    """The expected answer; null means an empty answer."""
    intermediate_data: (
        Annotated[Annotated[ExpectedData, Tag("data")] | Annotated[ExpectedEvents, Tag("events")], Discriminator(_kind)]
        | None
    ) = None
    """The expected tool calls and intermediate responses; null means that no tool call is expected."""
    creation_timestamp: float = 0.0
    """When the turn was created, in seconds since 1970; 0 if unknown."""
    duration: float | None = None
    """Seconds of the whole turn; not read."""
    model_duration: float | None = None
    """Seconds of the model calls; not read."""
    tool_duration: float | None = None
    """Seconds of the tool calls; not read."""
    inference_call_count: int | None = None
    """Number of model calls of the recorded turn, as invocations recorded by Traceweir have it; not read. ADK refuses it."""
    rubrics: list[EvalRubric] | None = None
    """Rubrics of this turn, in addition to those of the case."""
    app_details: JsonObject | None = None
    """ADK's description of the app; not read."""

    @property
    def tool_uses(self) -> list[FunctionCall]:
        """The expected tool calls, in order, from either kind of intermediate data."""
        data = self.intermediate_data
        if isinstance(data, ExpectedEvents):
            events = InvocationEvents.trusted(invocation_events=data.invocation_events)
            return Invocation(intermediate_data=events).tool_uses
        return list(data.tool_uses) if data else []

    @property
    def reference(self) -> Reference:
        """The expectations of this turn.

        As in ADK, without intermediate data no tool call is expected, and without a final response an empty response.
        """
        return Reference(final_response=self.final_response or NOTHING_SAID, tool_uses=self.tool_uses)


class ConversationScenario(AdkModel):
    """The instructions for a simulated user; a scenario contains no answers of the agent."""

    starting_prompt: str
    """The first message of the simulated user."""
    conversation_plan: str = ""
    """What the simulated user does afterwards."""


class SessionInput(AdkModel):
    """The initial session of a case."""

    app_name: str
    """Name of the app."""
    user_id: str
    """Id of the user."""
    session_id: str | None = None
    """Id of the session; null for a new id."""
    state: JsonObject = {}
    """State of the session at its beginning."""


class EvalCase(AdkModel):
    """A conversation, or the scenario of a conversation."""

    model_config = ConfigDict(extra="allow")

    eval_id: str
    """Id of the case, unique in its eval set."""
    conversation: list[EvalInvocation] | None = None
    """The turns with their expectations; null for a scenario."""
    conversation_scenario: ConversationScenario | None = None
    """Instructions for a simulated user, in place of a conversation."""
    session_input: SessionInput | None = None
    """The initial session."""
    creation_timestamp: float = 0.0
    """When the case was created, in seconds since 1970; 0 if unknown."""
    rubrics: list[EvalRubric] | None = None
    """Rubrics of every turn."""
    final_session_state: JsonObject | None = {}
    """The expected state at the end; not read."""

    @model_validator(mode="after")
    def _check_conversation_or_scenario(self) -> EvalCase:
        if (self.conversation is None) == (self.conversation_scenario is None):
            what = "the case has neither" if self.conversation is None else "the case has both"
            raise ValueError(f"exactly one of conversation and conversation_scenario is needed; {what}")
        return self

    @model_validator(mode="after")
    def _check_rubric_ids(self) -> EvalCase:
        for number, turn in enumerate(self.conversation or ()):
            duplicate = _duplicate_id([*(self.rubrics or ()), *(turn.rubrics or ())])
            if duplicate is not None:
                raise ValueError(
                    f"conversation.{number}.rubrics: rubric_id {duplicate!r} occurs twice, with the rubrics of the case; "
                    "use a different id for each rubric"
                )
        if (duplicate := _duplicate_id(self.rubrics or ())) is not None:
            raise ValueError(f"rubrics: rubric_id {duplicate!r} occurs twice; use a different id for each rubric")
        return self

    def rubrics_of(self, turn: int) -> list[Rubric]:
        """Returns the rubrics of a turn, from 0: the rubrics of the case, then those of the turn."""
        own = self.conversation[turn].rubrics if self.conversation and turn < len(self.conversation) else None
        return [*(self.rubrics or ()), *(own or ())]


def _duplicate_id(rubrics: Sequence[Rubric]) -> str | None:
    names = [rubric.rubric_id for rubric in rubrics]
    return next((name for name in names if names.count(name) > 1), None)


class EvalSet(AdkModel):
    """A file of eval cases.

    >>> EvalSet.model_validate_json('{"evalSetId": "s1", "evalCases": []}').eval_set_id
    's1'
    """

    eval_set_id: str
    """Id of the eval set."""
    name: str | None = None
    """A name for people."""
    description: str | None = None
    """A description for people."""
    eval_cases: list[EvalCase]
    """The cases; no two have the same `eval_id`."""
    creation_timestamp: Annotated[float, Field(ge=0)] = 0.0
    """When the eval set was created, in seconds since 1970; 0 if unknown."""

    @model_validator(mode="after")
    def _check_eval_ids(self) -> EvalSet:
        first: dict[str, int] = {}
        for number, case in enumerate(self.eval_cases):
            if (earlier := first.setdefault(case.eval_id, number)) != number:
                raise ValueError(
                    f"eval_cases.{number}.eval_id: {case.eval_id!r} is also the id of eval_cases.{earlier}; "
                    "use a different id for each case"
                )
        return self
