"""Reads the model calls of an invocation; a call that two spans recorded is read once, from both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from traceweir.streams.intake.spans.attributes import count, decoded, first, first_text, text_of
from traceweir.streams.intake.spans.conventions import hooks_of, keys_of
from traceweir.streams.intake.spans.dialects import (
    calls_below,
    input_messages,
    output_messages,
    played_rounds,
    step_message,
    with_content,
)
from traceweir.streams.intake.spans.hosted_tools import hosted_rounds
from traceweir.streams.intake.spans.identity import agent_name
from traceweir.streams.intake.spans.key_sets import KeySet, key_set_of, keys_there
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage
from traceweir.streams.intake.spans.span import Attributes, Span
from traceweir.streams.intake.spans.span_events import DETAILS, event_fields, named_events
from traceweir.streams.intake.spans.tree import Node

_MODEL = keys_there((*keys_of(lambda each: each.models), *keys_of(lambda each: each.requested_models)))
_INPUT_TOKENS = keys_there(keys_of(lambda each: each.input_tokens))
_OUTPUT_TOKENS = keys_there(keys_of(lambda each: each.output_tokens))
_USAGE = keys_there(keys_of(lambda each: each.usages))
"""Attributes with the tokens as an object of JSON."""
_PROVIDER = keys_there(keys_of(lambda each: each.providers))
_FRAMING = frozenset(keys_of(lambda each: each.framing_providers))
_FLAGGING = frozenset(keys_of(lambda each: each.flagging_providers))
_STOPPING = frozenset(keys_of(lambda each: each.stopping_providers))
_MODELS_OF = hooks_of(lambda each: each.model_of)
_FORCED_TOOLS = hooks_of(lambda each: each.forced_tool)
_ANSWER_METADATA = hooks_of(lambda each: each.answer_metadata)
_HISTORIES = keys_there(keys_of(lambda each: each.histories))
_MAX_COMPARED = 16
"""Maximum number of earlier calls with which a call is compared for being the same."""


class EarlierCall(NamedTuple):
    """A call whose span the following calls of the agent have overwritten; an event of the span still tells its tokens."""

    time_ns: int
    """When the call ended."""
    input_tokens: int
    """Number of input tokens."""
    output_tokens: int
    """Number of output tokens."""


@dataclass(slots=True, eq=False)
class ModelCall:
    """One call of a model."""

    nodes: list[Node]
    """The spans that recorded the call, the most detailed one first."""
    inputs: list[SpanMessage]
    """The messages that the model read."""
    outputs: list[SpanMessage]
    """The messages that the model wrote."""
    model: str
    """Name of the model; empty if unknown."""
    input_tokens: int | None
    """Number of input tokens; None if unknown."""
    output_tokens: int | None
    """Number of output tokens; None if unknown."""
    agent: str
    """Name of the agent that called; empty if unknown."""
    earlier: Sequence[EarlierCall] = ()
    """The calls that were on the same span before this one, the oldest first."""
    rounds: Sequence[SpanMessage] = ()
    """The tool calls and the results of the rounds that the client or the provider played by itself before the answer, or
    that the span of the call is around."""
    response_id: str = ""
    """Id that the provider gave to the answer; empty if unknown."""
    is_told_of_failures: bool = False
    """Whether the provider's API says beside the result of a tool whether the tool failed."""
    forced_tool: str = ""
    """Name of the tool that the model had to call; empty if it could choose, or if it is unknown."""

    @property
    def start_ns(self) -> int:
        """When the call began."""
        return self.nodes[0].span.start_ns

    @property
    def end_ns(self) -> int:
        """When the call ended."""
        nodes = self.nodes
        return nodes[0].span.end_ns if len(nodes) == 1 else max(node.span.end_ns for node in nodes)

    @property
    def calls(self) -> list[RequestedCall]:
        """The tool calls that the model asked for."""
        return [call for message in self.outputs if message.role == "assistant" for call in message.calls]

    @property
    def may_stop_with_calls(self) -> bool:
        """Whether the provider's answers can end with `stop` also where they ask for tools."""
        return any(_provider_of(node.span) in _STOPPING for node in self.nodes)

    @property
    def all_calls(self) -> list[RequestedCall]:
        """The tool calls that the model asked for, those of the rounds first."""
        return [call for message in self.rounds for call in message.calls] + self.calls

    @property
    def text(self) -> str:
        """The text that the model wrote."""
        outputs = self.outputs
        # As of most calls.
        if len(outputs) == 1:
            return outputs[0].text if outputs[0].role == "assistant" else ""
        written = self._written
        # One choice is the answer.
        return "\n".join(message.text for message in (written[:1] if _are_choices(written) else written))

    @property
    def further_choices(self) -> int:
        """Number of the choices beside the answer."""
        return len(self._written) - 1 if len(self.outputs) > 1 and _are_choices(self._written) else 0

    @property
    def _written(self) -> list[SpanMessage]:
        return [message for message in self.outputs if message.role == "assistant" and message.text]

    @property
    def is_cut(self) -> bool:
        """Whether the spans had an answer of the model that was cut."""
        return not (self.text or self.calls) and any(node.span.cut_texts for node in self.nodes)


def _are_choices(written: Sequence[SpanMessage]) -> bool:
    """Returns whether messages of a model are choices: each has a reason why it ended, or is known as one, and none asks
    for a tool."""
    return len(written) > 1 and all((message.finish or message.is_choice) and not message.calls for message in written)


def last_of(models: Iterable[ModelCall]) -> ModelCall | None:
    """Returns the model call that ended last; None without any."""
    return max(models, key=lambda model: (model.end_ns, model.start_ns), default=None)


def read_model_calls(nodes: Sequence[Node]) -> list[ModelCall]:
    """Returns the model calls of the spans, which are in the order of their start.

    Without a span of a model call, an agent's span that names a model or has all messages of its run stands for the
    calls of the agent, of which it can tell sums of tokens alone.
    """
    of_agents = ((node, _calls_of_agent(node)) for node in nodes if node.kind == "agent")
    return _calls(nodes) or [call for node, call in of_agents if call.model or call.all_calls or _has_history(node)]


def _has_history(node: Node) -> bool:
    return bool(_HISTORIES.of(node.span.key_set))


def _calls_of_agent(node: Node) -> ModelCall:
    call = _read([node])
    *played, last = call.outputs or [SpanMessage("assistant")]
    if last.calls:
        played.append(last)
        last = SpanMessage("assistant")
    return replace(
        call, inputs=[], outputs=[last], rounds=[*call.rounds, *played], input_tokens=None, output_tokens=None
    )


def _calls(nodes: Iterable[Node]) -> list[ModelCall]:
    leaves: dict[int, list[Node]] = {}
    groups: list[list[Node]] = []
    for node in nodes:
        if node.kind != "llm":
            continue
        outer = _outer(node)
        group = leaves.get(id(outer)) if outer is not None else None
        if group is not None and len(group) == 1 and group[0] is outer:
            # The inner span has the tokens of this call alone.
            group.insert(0, node)
        else:
            if group is not None and outer in group and len(group) > 1:
                # A frame around several calls is none of them.
                group.remove(outer)
            group = [node]
            groups.append(group)
        leaves[id(node)] = group
    calls = [_read(group) for group in groups]
    complete = {id(call) for call in calls if call.outputs or call.rounds or call.output_tokens is not None}
    kept = [call for call in calls if id(call) in complete or not complete or call.nodes[0].span.status == "ERROR"]
    found = _without_doubles(sorted(kept, key=lambda call: call.nodes[-1].order))
    _complete_outputs(found)
    return found


def _complete_outputs(calls: list[ModelCall]) -> None:
    """Gives a call without output what the next call with the same beginning has read after that beginning."""
    for index, call in enumerate(calls):
        if call.outputs or call.rounds or not call.inputs or any(node.span.status == "ERROR" for node in call.nodes):
            continue
        read = _conversation(call.inputs)
        for later in calls[index + 1 : index + 1 + _MAX_COMPARED]:
            further = _conversation(later.inputs)
            if len(further) > len(read) and further[: len(read)] == read:
                rest = further[len(read) :]
                end = next((place for place, message in enumerate(rest) if message.role != "assistant"), len(rest))
                call.outputs = rest[:end]
                break


def _conversation(messages: Sequence[SpanMessage]) -> list[SpanMessage]:
    """Returns the messages without the instructions, which differ between the agents of a conversation."""
    return [message for message in messages if message.role != "system"]


def _outer(node: Node) -> Node | None:
    """Returns the model call around a span, if neither a tool nor an agent lies between."""
    return node.around if node.around is not None and node.around.kind == "llm" else None


def _read(nodes: list[Node]) -> ModelCall:
    spans = [node.span for node in nodes]
    whole = spans[0]
    if len(spans) > 1:
        both = {key: value for span in reversed(spans) for key, value in span.attributes.items()}
        whole = replace(whole, attributes=both)
    merged = whole.attributes
    usage = decoded(first(merged, *_USAGE.of(whole.key_set)))
    usage = usage if isinstance(usage, dict) else {}
    of_answer = next((each for tell in _ANSWER_METADATA if (each := tell(merged))), {})
    usage = of_answer["usage"] if isinstance(of_answer.get("usage"), dict) else usage
    models = (*(first_text(merged, key) for key in _MODEL.of(whole.key_set)), text_of(of_answer.get("model")))
    input_tokens, output_tokens = _tokens(merged, whole.key_set, usage)
    inputs = with_content(map(input_messages, spans))
    outputs = with_content(map(output_messages, spans))
    below = calls_below(child.span for node in nodes for child in node.children)
    if below and not any(message.calls for message in outputs):
        outputs = [*outputs, SpanMessage("assistant", calls=below)]
    step = step_message(nodes[0].parent.span) if nodes[0].parent is not None else None
    if step is not None and step.calls:
        outputs = [step]
    if len(outputs) > 1 and count(merged, "gen_ai.request.choice.count") == len(outputs):
        for message in outputs:
            message.is_choice = True
    rounds = next((found for span in spans if (found := played_rounds(span))), [])
    if not rounds:
        hosted = hosted_rounds(outputs)
        rounds, outputs = _divided(outputs)
        rounds += hosted
    if any(message.results for message in inputs) and _provider_of(whole) in _FRAMING:
        for message in inputs:
            message.results = [result._replace(framed=True) for result in message.results]
    return ModelCall(
        nodes=nodes,
        inputs=inputs,
        outputs=outputs,
        model=next((model for model in models if model not in ("", "unknown")), "")
        or next((model for tell in _MODELS_OF if (model := tell(merged))), ""),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        agent=agent_name(nodes[0]),
        earlier=_earlier(spans[0], input_tokens, output_tokens),
        rounds=rounds,
        response_id=first_text(merged, "gen_ai.response.id"),
        is_told_of_failures=_provider_of(whole).lower() in _FLAGGING,
        forced_tool=next((name for tell in _FORCED_TOOLS if (name := tell(merged))), ""),
    )


def _divided(outputs: Sequence[SpanMessage]) -> tuple[list[SpanMessage], list[SpanMessage]]:
    """Returns the rounds with tools in what a model wrote, and what it wrote after them.

    A span around the loop of the tools has, as its output, the calls, the results and the answer.
    """
    results = (place for place, message in enumerate(outputs) if message.results and not message.text)
    end = max(results, default=-1) + 1
    return list(outputs[:end]), list(outputs[end:])


def _provider_of(span: Span) -> str:
    return first_text(span.attributes, *_PROVIDER.of(span.key_set))


def _earlier(span: Span, input_tokens: int | None, output_tokens: int | None) -> list[EarlierCall]:
    """Returns the calls before the last one of a span, if the span has an event for each call and the last one's tokens."""
    events = named_events(span, DETAILS)
    if len(events) < 2:
        return []
    found: dict[EarlierCall, None] = {}
    for event in sorted(events, key=lambda event: event.time_ns):
        fields = event_fields(event)
        read, written = _tokens(fields, key_set_of(fields), {})
        if read is None or written is None:
            return []
        found.setdefault(EarlierCall(event.time_ns, read, written))
    *earlier, last = found
    return earlier if (last.input_tokens, last.output_tokens) == (input_tokens, output_tokens) else []


def _tokens(attributes: Attributes, key_set: KeySet, usage: Attributes) -> tuple[int | None, int | None]:
    """Returns the numbers of input and output tokens."""
    read = count(attributes, *_INPUT_TOKENS.of(key_set))
    written = count(attributes, *_OUTPUT_TOKENS.of(key_set))
    return (
        count(usage, "input_tokens", "prompt_tokens", "input") if read is None else read,
        count(usage, "output_tokens", "completion_tokens", "output") if written is None else written,
    )


def _without_doubles(calls: list[ModelCall]) -> list[ModelCall]:
    kept: list[ModelCall] = []
    for call in calls:
        for other in reversed(kept[-_MAX_COMPARED:]):
            if _same(other, call):
                end_ns = other.end_ns
                other.nodes += call.nodes
                other.inputs = other.inputs or call.inputs
                other.outputs = other.outputs or call.outputs
                other.model = other.model or call.model
                other.input_tokens = call.input_tokens if other.input_tokens is None else other.input_tokens
                other.output_tokens = call.output_tokens if other.output_tokens is None else other.output_tokens
                other.agent = other.agent or call.agent
                other.rounds = other.rounds or call.rounds
                if call.response_id and call.end_ns <= end_ns:
                    # The inner span is nearer to the provider: the outer one can add up what a stream repeats.
                    other.input_tokens = other.input_tokens if call.input_tokens is None else call.input_tokens
                    other.output_tokens = other.output_tokens if call.output_tokens is None else call.output_tokens
                break
        else:
            kept.append(call)
    return kept


def _same(one: ModelCall, other: ModelCall) -> bool:
    """Returns whether two instrumentations recorded the same call: at the same time, with nothing that differs."""
    if {node.span.scope for node in one.nodes} & {node.span.scope for node in other.nodes}:
        return False
    if min(one.end_ns, other.end_ns) <= max(one.start_ns, other.start_ns):
        return False
    if one.response_id and other.response_id:
        return one.response_id == other.response_id
    tokens = ((one.input_tokens, other.input_tokens), (one.output_tokens, other.output_tokens))
    if any(None not in pair and pair[0] != pair[1] for pair in tokens):
        return False
    if not (one.outputs and other.outputs):
        return True
    return _content_of(one.outputs) == _content_of(other.outputs)


def _content_of(messages: Sequence[SpanMessage]) -> tuple[str, list[str]]:
    texts = "\n".join(message.text for message in messages).strip()
    return texts, [call.name for message in messages for call in message.calls]
