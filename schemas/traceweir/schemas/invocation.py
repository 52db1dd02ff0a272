"""Defines Invocation: one user turn, in Google ADK's schema with Traceweir's additions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from traceweir.schemas.base import AdkModel, JsonObject


class FunctionCall(AdkModel):
    """A tool call. `args` of `null` and of `{}` differ, as in ADK."""

    id: str | None = None
    name: str = ""
    args: JsonObject | None = None


class FunctionResponse(AdkModel):
    """The response of a tool."""

    id: str | None = None
    name: str = ""
    response: JsonValue = None


class Part(AdkModel):
    """A part of a message: text, a tool call or a tool response."""

    text: str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(AdkModel):
    """A message."""

    parts: list[Part] | None = None
    role: str | None = None

    @property
    def text(self) -> str:
        """The non-empty texts of the parts, joined by line breaks."""
        return "\n".join(part.text for part in self.parts or () if part.text)

    @classmethod
    def of(cls, text: str, role: str = "user") -> Content:
        """Returns a message with a single text part."""
        return cls(parts=[Part(text=text)], role=role)


class IntermediateData(AdkModel):
    """The events between the question and the answer, grouped by kind."""

    tool_uses: list[FunctionCall] = []
    tool_responses: list[FunctionResponse] = []
    intermediate_responses: list[tuple[str, list[Part]]] = []


class InvocationStep(AdkModel):
    """One event of ADK's event-shaped intermediate data."""

    author: str = ""
    content: Content | None = None
    grounding_metadata: JsonObject | None = None
    """The results of the model's own search, as the provider reports them."""


class InvocationEvents(AdkModel):
    """The events between the question and the answer, in order."""

    invocation_events: list[InvocationStep]


class RetrievedChunk(AdkModel):
    """A piece of retrieved context and its document."""

    doc_uri: str | None = None
    content: str | None = None


class TokenUsage(AdkModel):
    """Input and output tokens of all model calls; `None` if no call reports them."""

    input_tokens: Annotated[int, Field(ge=0)] | None = None
    output_tokens: Annotated[int, Field(ge=0)] | None = None


class Rubric(AdkModel):
    """A property that a response or a tool use should have."""

    rubric_id: str
    rubric_content: JsonObject
    description: str | None = None
    type: str | None = None


class Invocation(AdkModel):
    """One user turn: the question, what the agent did, and its answer."""

    invocation_id: str = ""
    user_content: Content | None = None
    final_response: Content | None = None
    intermediate_data: IntermediateData | InvocationEvents | None = None
    creation_timestamp: float = 0.0
    rubrics: list[Rubric] | None = None
    app_details: JsonObject | None = None
    retrieved_context: list[RetrievedChunk] | None = None
    token_usage: TokenUsage | None = None
    latency_seconds: Annotated[float, Field(ge=0)] | None = None
    """Seconds from the question to the final answer; None if unknown."""
    unread: list[str] | None = None
    """Parts of this invocation that could not be read, a sentence for each."""
    derived: bool = False
    """Whether the invocation was derived from a ReasoningTrace, because the session had no invocation."""

    @property
    def tool_uses(self) -> list[FunctionCall]:
        """The tool calls, in order, from either kind of intermediate data."""
        data = self.intermediate_data
        if isinstance(data, InvocationEvents):
            parts = (part for step in data.invocation_events if step.content for part in step.content.parts or ())
            return [part.function_call for part in parts if part.function_call]
        return list(data.tool_uses) if data else []


Level = Literal["invocation", "trace", "session"]
"""What a Score measures."""
