"""Invocation: one user turn, in Google ADK's shape, with what Traceweir adds to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from traceweir.schemas.base import AdkModel, JsonObject


class FunctionCall(AdkModel):
    """A tool use. `args` of `null` and of `{}` differ, as they do for ADK."""

    id: str | None = None
    name: str = ""
    args: JsonObject | None = None


class FunctionResponse(AdkModel):
    """What a tool answered."""

    id: str | None = None
    name: str = ""
    response: JsonValue = None


class Part(AdkModel):
    """A piece of a message: text, or a tool use or response among the text."""

    text: str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(AdkModel):
    """A message."""

    parts: list[Part] | None = None
    role: str | None = None

    @property
    def text(self) -> str:
        """The non-empty texts of the parts, a line each."""
        return "\n".join(part.text for part in self.parts or () if part.text)

    @classmethod
    def of(cls, text: str, role: str = "user") -> Content:
        """A message of one text."""
        return cls(parts=[Part(text=text)], role=role)


class IntermediateData(AdkModel):
    """What happened between the question and the answer, by kind."""

    tool_uses: list[FunctionCall] = []
    tool_responses: list[FunctionResponse] = []
    intermediate_responses: list[tuple[str, list[Part]]] = []


class InvocationStep(AdkModel):
    """One event of ADK's event-shaped intermediate data."""

    author: str = ""
    content: Content | None = None
    grounding_metadata: JsonObject | None = None
    """What the model was shown by a search of its own, as the provider reports it."""


class InvocationEvents(AdkModel):
    """What happened between the question and the answer, in order."""

    invocation_events: list[InvocationStep]


class RetrievedChunk(AdkModel):
    """A piece of retrieved context and the document it is from."""

    doc_uri: str | None = None
    content: str | None = None


class TokenUsage(AdkModel):
    """Tokens that models read and wrote; `None` where no call said."""

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
    """From the question to the final answer; None where nothing says."""
    unread: list[str] | None = None
    """What there was of this invocation and could not be read, a sentence each."""
    derived: bool = False
    """Made from a ReasoningTrace, because the session had no invocation of its own."""

    @property
    def tool_uses(self) -> list[FunctionCall]:
        """The tools used, in order, from either kind of intermediate data."""
        data = self.intermediate_data
        if isinstance(data, InvocationEvents):
            parts = (part for step in data.invocation_events if step.content for part in step.content.parts or ())
            return [part.function_call for part in parts if part.function_call]
        return list(data.tool_uses) if data else []


Level = Literal["invocation", "trace", "session"]
"""What a Score speaks of."""
