"""States what the spans of an invocation do not contain, and the setting that turns the content on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from traceweir.schemas.finish_reasons import is_unfinished, known_word, not_whole
from traceweir.schemas.part_kinds import not_text, unread_choices
from traceweir.streams.intake.spans.attributes import plain_text
from traceweir.streams.intake.spans.content import bare_answer, finish_of
from traceweir.streams.intake.spans.conventions import CONVENTIONS, hooks_of, keys_of
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.dialects import finish_in_outputs, finish_reasons
from traceweir.streams.intake.spans.frame_content import printed_on, unread_answer_on, unread_question_on
from traceweir.streams.intake.spans.identity import own_agent_name
from traceweir.streams.intake.spans.message import is_hidden, newest_turn, unread_question
from traceweir.streams.intake.spans.missing_calls import is_interrupted, is_open, missing_of_calls
from traceweir.streams.intake.spans.model_calls import ModelCall, last_of
from traceweir.streams.intake.spans.reasons import reason_of
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.tool_calls import ToolCall
from traceweir.streams.intake.spans.tool_spans import tool_name
from traceweir.streams.intake.spans.turn_errors import has_failed
from traceweir.streams.intake.spans.turns import TurnSpans

_CLIENT = "use an instrumentation of the model's client as well, such as that for openai or litellm"
_STREAMS = f"{_CLIENT}; a stream of OpenAI reports them with include_usage only"
_OVERWRITTEN = (
    "the tokens of some model calls are not in the spans: the instrumentation writes all model calls of an agent on "
    "one span, where the last call overwrites the others; use the spans of the framework itself, or export its log records too"
)
_QUIRKS = tuple(reversed(hooks_of(lambda each: each.quirks)))
"""The quirks of all conventions, the most specific last: what it tells replaces what the others tell of a part."""
_CONTENT_SPANS = keys_of(lambda each: each.content_spans)
_NO_NAME = "no span tells it; set gen_ai.agent.name on a span around the work of the agent"
_NO_OUTER_SPAN = (
    "the span of the agent around its steps is not there; it was lost, or its instrumentation never ended it, as that of "
    + " or ".join(each.unended_agents for each in CONVENTIONS if each.unended_agents)
)

_PART_OF_TURN = (
    "the session is not in the spans: the turn has model calls in other traces, and each trace is a session of its own; "
    "set session.id or gen_ai.conversation.id on each model call, or put a span around the turn"
)
_NO_ROOT = (
    "the root span, or another span above the invocation, is not in the trace: a sampler dropped it, it comes later, or its "
    "service exports no spans; what it tells, such as the session or the user, is not read"
)


@dataclass(slots=True)
class Missing:
    """The parts of an invocation that its spans do not contain, a sentence for each."""

    parts: dict[str, str] = field(default_factory=dict)
    """The sentence of each missing part: `question`, `answer`, `end` (of the answer), `choices`, `agent`, `tokens`, `model`, `tools`,
    `root`; of what is not read though an attribute may tell it: `session`, `user`, `tool`, `operation`; and of a tool call:
    `args:<place>`, `result:<place>`, `error:<place>`, `outcome:<place>`, `parts:<place>`."""

    @classmethod
    def of(
        cls,
        turn: TurnSpans,
        models: Sequence[ModelCall],
        calls: Sequence[ToolCall],
        *,
        question: str,
        answer: str,
        agent: str,
        failed: bool,
        error: str,
        has_session: bool,
    ) -> Missing:
        """Returns what is missing, and why as far as the spans tell."""
        # Looks at every value, and most invocations are complete.
        why = cache(lambda: _reason_of_turn(turn))
        last = max(models, key=lambda each: each.end_ns, default=None)
        parts: dict[str, str] = {}
        if not question:
            parts["question"] = f"the question is not in the spans: {why()}"
        if not answer and not failed:
            parts["answer"] = _of_answer(turn, calls, last, error, why)
        parts |= _of_parts_without_text(turn, models, last, question=question, answer=answer)
        if further := sum(model.further_choices for model in models):
            parts["choices"] = unread_choices(further)
        if answer:
            parts |= _of_end(turn, models, last, answer)
        parts |= missing_of_calls(turn, calls, last, why)
        parts |= _of_models(models, calls, why)
        if not agent:
            parts |= _of_agent(turn, why)
        if turn.has_lost_spans and not turn.is_fragment:
            parts["root"] = _NO_ROOT
        if not has_session and turn.bare and _has_other_calls(calls, models):
            parts["session"] = _PART_OF_TURN
        if any(model.is_cut for model in models) or (
            not calls and _is_of_a_client(turn) and any(map(_may_have_asked, models))
        ):
            parts["tools"] = f"the tool calls of a model's answer, if there were any, are not in the spans: {why()}"
        scopes = {node.span.scope for node in turn.nodes}
        seen = SeenInvocation(turn.nodes, scopes, models, calls, agent, own_agent_name, why)
        for quirks in _QUIRKS:
            parts |= quirks(seen)
        if any(_is_overwritten(model) for model in models):
            parts["tokens"] = _OVERWRITTEN
        return cls(parts)

    def on(self, *parts: str) -> dict[str, Any]:
        """Returns the field `missing` for the event of the parts; no field if all are there."""
        found = [plain_text(self.parts[part]) for part in parts if part in self.parts] if self.parts else []
        return {"missing": found} if found else {}

    def on_call(self, place: int, *parts: str) -> dict[str, Any]:
        """Returns the field `missing` for an event of a tool call; no field if all parts are there."""
        return self.on(*(f"{part}:{place}" for part in parts)) if self.parts else {}


def _of_answer(
    turn: TurnSpans, calls: Sequence[ToolCall], last: ModelCall | None, error: str, why: Callable[[], str]
) -> str:
    if is_interrupted(turn):
        return "the answer is not in this trace: the run stopped before it, to wait for a person"
    if error:
        return f"the answer is not in the spans: the last model call failed, or a span around it: {error}"
    if last is not None and last.calls and (turn.bare or any(is_open(call, last) for call in calls)):
        return "the answer is not in this trace: its last model call asks for tools, whose results it does not contain"
    stopped = sorted(filter(_is_stopped, _finish_reasons(last))) if last is not None else []
    if stopped:
        return f"the answer is not in the spans: the model stopped before it, because of {stopped[0].lower()!r}"
    return f"the answer is not in the spans: {why()}"


def _of_parts_without_text(
    turn: TurnSpans, models: Sequence[ModelCall], last: ModelCall | None, *, question: str, answer: str
) -> dict[str, str]:
    """Tells which parts of the question and of the answer are no text, such as images."""
    asked = unread_question(models[0].inputs) if models else None
    parts: dict[str, str] = {}
    frames = [] if turn.bare else turn.roots
    of_question = [asked] if asked else [*map(unread_question_on, frames[:1])]
    if not question and not any(of_question):
        of_question = [printed_on(node, "question") for node in frames[:1]]
    for sentence in not_text("question", question, of_question):
        parts["question"] = sentence
    written = [message.unread for message in last.outputs if message.unread] if last is not None else []
    written = written or [*map(unread_answer_on, frames[-1:])]
    if not answer and not any(written):
        written = [printed_on(node, "answer") for node in frames[-1:]]
    for sentence in not_text("answer", answer, written):
        parts["answer"] = sentence
    return parts


def _has_other_calls(calls: Sequence[ToolCall], models: Sequence[ModelCall]) -> bool:
    """Returns whether the turn has model calls before the first one, or after the last one, whose tools they need."""
    if any(message.calls or message.results for model in models[:1] for message in newest_turn(model.inputs)):
        return True
    last = max(models, key=lambda each: each.end_ns, default=None)
    return any(is_open(call, last) and not call.hosted for call in calls)


def _of_models(models: Sequence[ModelCall], calls: Sequence[ToolCall], why: Callable[[], str]) -> dict[str, str]:
    """Tells whether tokens, the name of the model and, without a model call, tool calls are missing."""
    parts: dict[str, str] = {}
    if not models:
        parts["tokens"] = f"the tokens of the model calls are not in the spans: {_CLIENT}"
        if not calls:
            parts["tools"] = f"the tool calls, if there were any, are not in the spans: {_CLIENT}"
    elif any(_lacks_tokens(model) for model in models):
        dropped = any(node.span.dropped_attributes for model in models for node in model.nodes)
        way_out = why() if dropped or _are_content(models) else _STREAMS
        parts["tokens"] = f"the tokens of some model calls are not in the spans: {way_out}"
    if not any(model.model for model in models):
        way_out = why() if models and _are_content(models) else _CLIENT
        parts["model"] = f"the name of the model is not in the spans: {way_out}"
    return parts


def _of_agent(turn: TurnSpans, why: Callable[[], str]) -> dict[str, str]:
    """Tells why the agent has no name."""
    reason = _NO_NAME
    if turn.is_fragment:
        reason = _NO_OUTER_SPAN
    elif any(node.kind == "chain" and is_hidden(node.span.attributes.get("input.value")) for node in turn.nodes):
        reason = why()
    return {"agent": f"the name of the agent is not in the spans: {reason}"}


def _reason_of_turn(turn: TurnSpans) -> str:
    spans = [node.span for node in turn.nodes]
    return _NO_OUTER_SPAN if turn.is_fragment and not _has_hidden(spans) else reason_of(spans)


def _has_hidden(spans: Sequence[Span]) -> bool:
    return any(is_hidden(value) for span in spans for value in span.attributes.values())


def _are_content(models: Sequence[ModelCall]) -> bool:
    """Returns whether tokens and the name of the model are in the content of their spans."""
    return all(node.span.name.startswith(_CONTENT_SPANS) for model in models for node in model.nodes)


def _lacks_tokens(model: ModelCall) -> bool:
    """Returns whether a call that did not fail is without its tokens."""
    failed = any(has_failed(node.span) for node in model.nodes) or "error" in map(
        known_word, finish_reasons(model.nodes[0].span)
    )
    return not failed and (model.input_tokens is None or model.output_tokens is None)


def _is_of_a_client(turn: TurnSpans) -> bool:
    """Returns whether the model's client alone is instrumented, which writes no spans of tools."""
    clients = {node.span.scope for node in turn.nodes if node.kind == "llm"}
    return all(node.kind == "llm" or node.span.scope not in clients for node in turn.nodes)


def _may_have_asked(model: ModelCall) -> bool:
    """Returns whether a model can have asked for tools in an answer whose content is hidden."""
    if model.text or model.all_calls or any(has_failed(node.span) for node in model.nodes):
        return False
    if any(message.unread or _is_stopped(message.finish) for message in model.outputs):
        return False
    reasons = {known_word(each) for each in finish_reasons(model.nodes[0].span)}
    return model.may_stop_with_calls or not reasons or not reasons <= {"stop", "end_turn", "length", "max_tokens"}


def _finish_reasons(model: ModelCall) -> list[str]:
    """Returns why the answers of a model ended, those of its messages first."""
    of_messages = [message.finish for message in model.outputs if message.role == "assistant" and message.finish]
    spans = [node.span for node in model.nodes]
    of_spans = of_messages or [reason for span in spans for reason in finish_reasons(span)]
    return of_spans or [reason for span in spans if (reason := finish_in_outputs(span))]


def _is_stopped(reason: str) -> bool:
    """Returns whether a model that ended for this reason can have written no text."""
    return is_unfinished(reason) or known_word(reason) == "refusal"


def _of_end(turn: TurnSpans, models: Sequence[ModelCall], last: ModelCall | None, answer: str) -> dict[str, str]:
    """Tells whether the answer was cut."""
    wrote = [model for model in models if model.text and bare_answer(model.text).strip() == answer.strip()]
    model = last_of(wrote) or last
    reasons = _finish_reasons(model) if model is not None else []
    # Of several choices, the first one is the answer.
    sentences = not_whole(answer, reasons[0] if reasons else finish_of(turn))
    return {"end": sentences[0]} if sentences else {}


def _is_overwritten(model: ModelCall) -> bool:
    """Returns whether a span has several model calls, because it contains tools whose results the model has read, and
    the tokens of one of the earlier calls are nowhere."""
    inside = {tool_name(child.span) for child in model.nodes[0].children if child.kind == "tool"}
    # As in most model calls.
    if not inside:
        return False
    answers = [message for message in newest_turn(model.inputs) if any(call.name in inside for call in message.calls)]
    return len(answers) > len(model.earlier)
