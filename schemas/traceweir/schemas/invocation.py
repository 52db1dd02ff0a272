"""Defines Invocation: one user turn, in Google ADK's schema with Traceweir's additions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from traceweir.schemas.base import AdkModel, JsonObject

Count = Annotated[int, Field(ge=0)]


class FunctionCall(AdkModel):
    """A tool call. `args` of `null` and of `{}` differ, as in ADK."""

    id: str | None = None
    """Id of the call; not compared."""
    name: str = ""
    """Name of the tool."""
    args: JsonObject | None = None
    """Arguments of the call; `null` and `{}` differ."""
    model_call_id: str | None = Field(default=None, exclude=True)
    """Id of the model call whose answer asked for this call; adjacent calls with the same id are parallel. Null: unknown.

    It is read, and never written: Google ADK refuses a call with other keys.
    """


class FunctionResponse(AdkModel):
    """The response of a tool."""

    id: str | None = None
    """Id of the call that is answered."""
    name: str = ""
    """Name of the tool."""
    response: JsonValue = None
    """The response, any JSON."""


def _only_by_the_model(thought: bool) -> bool:
    """Returns the value; a fast decoder, which knows no such function, leaves the document to the model."""
    return thought


class Part(AdkModel):
    """A part of a message: text, a tool call or a tool response."""

    text: str | None = None
    """Text of the part."""
    function_call: FunctionCall | None = None
    """A tool call."""
    function_response: FunctionResponse | None = None
    """A tool response."""
    thought: Annotated[bool, AfterValidator(_only_by_the_model)] | None = Field(default=None, exclude=True)
    """Whether the part is reasoning of the model: such a part is read, and left out of its message."""


class SpokenParts(list[Part]):
    """The parts of a message that had reasoning too. `reasoning_parts` reads all of them, and nothing writes them."""

    every: list[Part]
    """All parts, in order."""


def without_thoughts(parts: list[Part]) -> list[Part]:
    """Returns the parts that are no reasoning."""
    if not any(part.thought for part in parts):
        return parts
    spoken = SpokenParts(part for part in parts if not part.thought)
    spoken.every = parts
    return spoken


Parts = Annotated[list[Part], AfterValidator(without_thoughts)]
"""The parts of a message without the model's reasoning, which is neither an answer nor evidence."""


class Content(AdkModel):
    """A message."""

    parts: Parts | None = None
    """The parts of the message, in order."""
    role: str | None = None
    """Who wrote the message: `user` or `model`."""

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
    """The tool calls, in order."""
    tool_responses: list[FunctionResponse] = []
    """The tool responses, in order."""
    intermediate_responses: list[tuple[str, Parts]] = []
    """Pairs of an author and the parts of its response, in order."""


class UsageMetadata(AdkModel):
    """The tokens of one model call, as Gemini reports them; None if the call does not report the count."""

    prompt_token_count: Count | None = None
    """Input tokens, cached ones included, without those of tool results."""
    cached_content_token_count: Count | None = None
    """Those input tokens that the provider had cached."""
    tool_use_prompt_token_count: Count | None = None
    """Input tokens of tool results."""
    candidates_token_count: Count | None = None
    """Output tokens without those of reasoning."""
    thoughts_token_count: Count | None = None
    """Output tokens of reasoning."""

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
    """Name of the agent that wrote the event."""
    content: Content | None = None
    """Text, tool calls and tool responses of the event."""
    grounding_metadata: JsonObject | None = None
    """The results of the model's own search, as the provider reports them."""
    usage_metadata: UsageMetadata | None = None
    """The tokens of the model call; null if the event is no model call, or the call does not report them."""
    model_version: str | None = None
    """The model that answered; null if the event is no model call, or the call does not name the model."""

    @property
    def parts(self) -> list[Part]:
        """The parts of the content; empty without content."""
        return (self.content.parts if self.content is not None else None) or []

    @property
    def is_model_call(self) -> bool:
        """Whether the event is the answer of a model."""
        return self.usage_metadata is not None or self.model_version is not None


class InvocationEvents(AdkModel):
    """The events between the question and the answer, in order."""

    invocation_events: list[InvocationStep]
    """The events, in order."""


class RetrievedChunk(AdkModel):
    """A piece of retrieved context and its document."""

    doc_uri: str | None = None
    """URI of the document."""
    content: str | None = None
    """Text of the retrieved piece."""


class TokenUsage(AdkModel):
    """Input and output tokens of all model calls; `None` if no call reports them."""

    input_tokens: Count | None = None
    """Number of input tokens, at least 0."""
    output_tokens: Count | None = None
    """Number of output tokens, at least 0."""


class Rubric(AdkModel):
    """A property that a response or a tool use should have."""

    rubric_id: str
    """Id of the rubric, unique in its invocation."""
    rubric_content: JsonObject
    """The property, as `text_property`."""
    description: str | None = None
    """A description for people."""
    type: str | None = None
    """ADK's type of the rubric, which selects the metric that uses it."""


class RecordedLabel(AdkModel):
    """A judgement about an invocation that was made elsewhere, to be compared with a score."""

    name: str
    """The metric, by one of its names."""
    value: bool | float | str
    """The judgement: passed or not, a number, or a category."""
    source_type: str | None = None
    """Who judged, as MLflow names it: `HUMAN`, `LLM_JUDGE` or `CODE`."""
    rationale: str | None = None
    """The reason of the judgement; null if none is given."""


class Invocation(AdkModel):
    """One user turn: the question, what the agent did, and its answer."""

    invocation_id: str = ""
    """Id of the invocation; empty if there is none."""
    user_content: Content | None = None
    """The question."""
    final_response: Content | None = None
    """The answer; null if the agent gave none."""
    intermediate_data: IntermediateData | InvocationEvents | None = None
    """The tool calls and intermediate responses: grouped by kind, or as events in order."""
    creation_timestamp: float = 0.0
    """When the invocation began, in seconds since 1970; 0 if unknown."""
    rubrics: list[Rubric] | None = None
    """Rubrics of this invocation."""
    app_details: JsonObject | None = None
    """ADK's description of the app: instructions and tools of its agents."""
    retrieved_context: list[RetrievedChunk] | None = None
    """The retrieved pieces; null if no retrieval is known."""
    token_usage: TokenUsage | None = None
    """Tokens of all model calls; null if unknown."""
    latency_seconds: Annotated[float, Field(ge=0)] | None = None
    """Seconds from the question to the final answer; None if unknown."""
    duration: Annotated[float, Field(ge=0)] | None = None
    """Seconds that the invocation took, as ADK measured them while it ran; None if nothing measured them."""
    inference_call_count: Count | None = None
    """Number of model calls; None if unknown, or if `intermediate_data` tells them."""
    unread: list[str] | None = None
    """Parts of this invocation that could not be read, a sentence for each."""
    error: str | None = None
    """The error message of an invocation that failed; null if nothing says that it failed."""
    labels: list[RecordedLabel] | None = None
    """Judgements about this invocation that were made elsewhere."""
    derived: bool = False
    """Whether the invocation was derived from a ReasoningTrace, because the session had no invocation."""

    @property
    def tool_uses(self) -> list[FunctionCall]:
        """The tool calls, in order, from either kind of intermediate data."""
        data = self.intermediate_data
        if isinstance(data, InvocationEvents):
            return [part.function_call for part in self._parts if part.function_call]
        return list(data.tool_uses) if data else []

    @property
    def calls_by_answer(self) -> list[list[FunctionCall]]:
        """The tool calls, in order, grouped by the answer of the model that asked for them.

        Adjacent calls are of one answer if they have the same `model_call_id`, or without one if they are in the same
        event. A call of which the source tells neither is a group of its own.
        """
        data = self.intermediate_data
        if isinstance(data, InvocationEvents):
            events = [[part.function_call for part in step.parts if part.function_call] for step in self._steps]
        else:
            events = [[call] for call in data.tool_uses] if data else []
        groups: list[list[FunctionCall]] = []
        latest: tuple[int, str | None] | None = None
        for number, calls in enumerate(events):
            for call in calls:
                of_answer = (number, None) if call.model_call_id is None else (-1, call.model_call_id)
                if of_answer == latest:
                    groups[-1].append(call)
                else:
                    groups.append([call])
                latest = of_answer
        return groups

    @property
    def tool_responses(self) -> list[FunctionResponse]:
        """The responses of tools, in order, from either kind of intermediate data."""
        data = self.intermediate_data
        if isinstance(data, InvocationEvents):
            return [part.function_response for part in self._parts if part.function_response]
        return list(data.tool_responses) if data else []

    @property
    def _parts(self) -> Iterator[Part]:
        return (part for step in self._steps for part in step.parts)

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
