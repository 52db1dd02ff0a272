"""Defines the events of a saved session of Google ADK, with the keys that matter for its invocations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from traceweir.schemas.base import AdkModel, Identifier, JsonObject
from traceweir.schemas.finish_reasons import is_unfinished
from traceweir.schemas.invocation import FunctionCall, FunctionResponse, Part, UsageMetadata
from traceweir.schemas.result_parts import data_url_kind
from traceweir.schemas.tool_results import is_pending
from traceweir.streams.intake.formats.adk_invocations import IGNORED_OF_CALL, IGNORED_OF_PART, IGNORED_OF_RESPONSE
from traceweir.streams.intake.formats.unread_keys import IgnoredKeys


class EventPart(Part):
    """A part of an event's content."""

    code_execution_result: JsonObject | None = None
    inline_data: JsonObject | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_data_url(cls, part: Any) -> Any:
        """Returns a part whose text is nothing but a data URL as one with inline data."""
        text = part.get("text") if isinstance(part, dict) else None
        if not (isinstance(text, str) and (kind := data_url_kind(text))):
            return part
        return {**part, "text": None, "inline_data": {"mime_type": kind}}

    @property
    def is_shown(self) -> bool:
        """Whether ADK shows an event with this part to a judge."""
        return bool(self.function_call or self.function_response or self.text or self.inline_data)


class EventContent(AdkModel):
    """What an event says."""

    parts: list[EventPart] | None = None
    role: str | None = None


class EventActions(AdkModel):
    """What ADK notes beside the content."""

    skip_summarization: bool | None = None
    compaction: JsonObject | None = None


class Transcription(AdkModel):
    """What was spoken, as ADK has written it down."""

    text: str | None = None
    finished: bool | None = None
    """Whether the text is the whole of what was said."""


EventText = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class SavedEvent(AdkModel):
    """An event of a session, with the keys that matter here."""

    author: EventText = ""
    invocation_id: EventText = ""
    content: EventContent | None = None
    timestamp: float = 0.0
    partial: bool | None = None
    turn_complete: bool | None = None
    actions: EventActions | None = None
    long_running_tool_ids: list[str] | None = None
    grounding_metadata: JsonObject | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    input_transcription: Transcription | None = None
    output_transcription: Transcription | None = None
    finish_reason: JsonValue = None
    error_code: JsonValue = None
    """For a response of a model, why it ended if that was no regular end."""
    error_message: JsonValue = None

    @property
    def is_compaction(self) -> bool:
        """Whether ADK wrote the event itself, as a summary of earlier events."""
        return bool(self.actions and self.actions.compaction)

    @property
    def error(self) -> str:
        """The error for which the event has no response; empty without one, and if the model stopped
        at a limit or regularly.
        """
        code = self.error_code if isinstance(self.error_code, str | int) else None
        message = self.error_message if isinstance(self.error_message, str) else ""
        # An empty response that ended regularly has the reason in place of an error.
        if (code is None and not message) or self.parts or code == "STOP" or is_unfinished(str(code)):
            return ""
        return message if code is None else f"{code}: {message}" if message else str(code)

    @property
    def tells(self) -> bool:
        """Whether the event has anything of a turn, and not only what the application has noted."""
        spoken = self.input_transcription is not None or self.output_transcription is not None
        of_model = (self.usage_metadata, self.model_version, self.finish_reason, self.error_code, self.error_message)
        is_of_model = any(each is not None for each in of_model)
        return bool(self.content and self.content.parts) or spoken or is_of_model

    @property
    def is_of_user(self) -> bool:
        """Whether the user sent the event."""
        return self.author.lower() == "user"

    @property
    def parts(self) -> Sequence[EventPart]:
        """The parts of the content, without reasoning."""
        return [part for part in self.content.parts or () if not part.thought] if self.content else ()

    @property
    def uses_a_tool(self) -> bool:
        """Whether the event contains a function call or the response of a tool."""
        return any(part.function_call or part.function_response for part in self.parts)

    @property
    def answered_calls(self) -> Sequence[str]:
        """The ids of the calls to which the event has the response, or the approval of the user."""
        return [
            part.function_response.id for part in self.parts if part.function_response and part.function_response.id
        ]

    def pending_calls(self, run_long: Collection[str]) -> Sequence[str]:
        """Returns the ids of the answered calls whose final response is still to come.

        Args:
            run_long: The ids of the calls of tools that run for long, of which an agent gets a first response.
        """
        found = [part.function_response for part in self.parts if part.function_response]
        return [
            each.id
            for each in found
            if each.id and ((each.id in run_long and not self.is_of_user) or is_pending(each.response))
        ]

    @property
    def asks(self) -> bool:
        """Whether the user sent the event, and it is more than the answer to a call."""
        return self.is_of_user and (not self.answered_calls or any(part.text for part in self.parts))

    @property
    def is_approval_beside_a_question(self) -> bool:
        """Whether the user answers a call, and asks something new beside it."""
        return self.asks and bool(self.answered_calls)

    @property
    def is_final_response(self) -> bool:
        """Whether ADK counts the event as the final response of an agent."""
        if (self.actions and self.actions.skip_summarization) or self.long_running_tool_ids:
            return True
        return not (
            self.partial or self.uses_a_tool or (self.parts and self.parts[-1].code_execution_result is not None)
        )

    @property
    def answers_the_user(self) -> bool:
        """Whether the agent says something to the user, in writing or aloud."""
        if self.is_of_user:
            return False
        spoken = self.output_transcription is not None and bool(self.output_transcription.text)
        return spoken or (self.is_final_response and any(part.text or part.inline_data for part in self.parts))


class SavedSession(AdkModel):
    """A session with its events, in order."""

    id: Identifier
    app_name: str
    user_id: str
    events: Annotated[list[SavedEvent], Field(min_length=1)]


IGNORED_OF_SESSION = IgnoredKeys(
    {
        SavedSession: ("state", "last_update_time", "lastUpdateTime", "display_name", "displayName"),
        SavedEvent: (
            *("id", "branch", "interrupted"),
            *("custom_metadata", "customMetadata", "cache_metadata", "cacheMetadata"),
            *("citation_metadata", "citationMetadata", "live_session_resumption_update"),
            *("liveSessionResumptionUpdate", "go_away", "goAway", "avg_logprobs", "avgLogprobs", "logprobs_result"),
            *("logprobsResult", "interaction_id", "interactionId", "node_info", "nodeInfo", "isolation_scope"),
            *("live_session_id", "liveSessionId", "model_turn", "output", "input", "environment_id", "environmentId"),
        ),
        FunctionCall: IGNORED_OF_CALL,
        FunctionResponse: IGNORED_OF_RESPONSE,
        EventPart: IGNORED_OF_PART,
        Transcription: ("language_code", "languageCode"),
    },
    models=(EventActions, UsageMetadata),
    names={SavedSession: "a session", SavedEvent: "an event", EventContent: "a content", EventPart: "a part"},
)
"""The keys of ADK that are not read, and hold nothing that the user or the agent said."""
