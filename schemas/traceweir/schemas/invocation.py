"""Defines Invocation: one user turn, in Google ADK's schema with Traceweir's additions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from traceweir.schemas.base import AdkModel, JsonObject

Count = Annotated[int, Field(ge=0)]


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


class UsageMetadata(AdkModel):
    """The tokens of one model call, as Gemini reports them; None if the call does not report the count."""

    prompt_token_count: Count | None = None
    """Input tokens, cached ones included, without those of tool results."""
    cached_content_token_count: Count | None = None
    tool_use_prompt_token_count: Count | None = None
    candidates_token_count: Count | None = None
    """Output tokens without those of reasoning."""
    thoughts_token_count: Count | None = None

    @property
    def input_tokens(self) -> int | None:
        """The tokens of the prompt and of tool results."""
        return known_sum((self.prompt_token_count, self.tool_use_prompt_token_count))

    @property
    def output_tokens(self) -> int | None:
        """The tokens of the answer and of reasoning."""
        return known_sum((self.candidates_token_count, self.thoughts_token_count))


class InvocationStep(AdkModel):
    """One event of ADK's event-shaped intermediate data. A model call has `usage_metadata` or `model_version`."""

    author: str = ""
    content: Content | None = None
    grounding_metadata: JsonObject | None = None
    """The results of the model's own search, as the provider reports them."""
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None

    @property
    def is_model_call(self) -> bool:
        """Whether the event is the answer of a model."""
        return self.usage_metadata is not None or self.model_version is not None


class InvocationEvents(AdkModel):
    """The events between the question and the answer, in order."""

    invocation_events: list[InvocationStep]


class RetrievedChunk(AdkModel):
    """A piece of retrieved context and its document."""

    doc_uri: str | None = None
    content: str | None = None


class TokenUsage(AdkModel):
    """Input and output tokens of all model calls; `None` if no call reports them."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None


class Rubric(AdkModel):
    """A property that a response or a tool use should have."""

    rubric_id: str
    rubric_content: JsonObject
    description: str | None = None
    type: str | None = None


class Label(AdkModel):
    """A judgement about an invocation that was made elsewhere, to be compared with a score."""

    name: str
    """The metric, by one of its names."""
    value: bool | float | str
    source_type: str | None = None
    """Who judged, as MLflow names it: `HUMAN`, `LLM_JUDGE` or `CODE`."""
    rationale: str | None = None


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
    duration: Annotated[float, Field(ge=0)] | None = None
    """Seconds that the invocation took, as ADK measured them while it ran; None if nothing measured them."""
    inference_call_count: Count | None = None
    """Number of model calls; None if unknown, or if `intermediate_data` tells them."""
    unread: list[str] | None = None
    """Parts of this invocation that could not be read, a sentence for each."""
    labels: list[Label] | None = None
    """Judgements about this invocation that were made elsewhere."""
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

    @property
    def model_calls(self) -> int | None:
        """The number of model calls: `inference_call_count`, or else the events of model calls; None if there are none."""
        if self.inference_call_count is not None:
            return self.inference_call_count
        return sum(step.is_model_call for step in self._steps) or None

    @property
    def reported_tokens(self) -> TokenUsage | None:
        """`token_usage`, or else the sums of `usage_metadata` of the events; None if no model call reports tokens."""
        if self.token_usage is not None:
            return self.token_usage
        usages = self.usages
        sums = known_sum(each.input_tokens for each in usages), known_sum(each.output_tokens for each in usages)
        return None if sums == (None, None) else TokenUsage(input_tokens=sums[0], output_tokens=sums[1])

    @property
    def usages(self) -> list[UsageMetadata]:
        """The reported tokens of each model call, from event-shaped intermediate data."""
        return [step.usage_metadata for step in self._steps if step.usage_metadata is not None]

    @property
    def _steps(self) -> list[InvocationStep]:
        data = self.intermediate_data
        return data.invocation_events if isinstance(data, InvocationEvents) else []


def known_sum(counts: Iterable[int | None]) -> int | None:
    """Returns the sum of the counts that are known; None if no count is known.

    >>> known_sum([1, None, 2]), known_sum([None])
    (3, None)
    """
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


Level = Literal["invocation", "trace", "session"]
"""What a Score measures."""
