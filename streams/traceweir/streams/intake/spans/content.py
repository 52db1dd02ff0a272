"""Reads the question and the answer of an invocation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from traceweir.streams.intake.spans.api_bodies import PYTHON_TEXT
from traceweir.streams.intake.spans.attributes import ABSENT, decoded, first_text, structure, text_of
from traceweir.streams.intake.spans.conventions import haystack
from traceweir.streams.intake.spans.dialects import input_messages
from traceweir.streams.intake.spans.message import Message, is_hidden
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.model_calls import ModelCall
from traceweir.streams.intake.spans.span_events import event_fields, named_events
from traceweir.streams.intake.spans.tree import Node
from traceweir.streams.intake.spans.turns import TurnSpans

_QUESTION_KEYS = ("new_message", "task", "message", "question", "query", "user_query", "user_input", "user_message")
_NESTED_KEYS = ("inputs", "input", "kwargs", "input_args", "messages", "contents", "prompt", "data", "args")
_ANSWER_KEYS = (
    "final_answer",
    "answer",
    "raw",
    "output",
    "outputs",
    "result",
    "response",
    "text",
    "final_output",
    "replies",
)
_INPUTS = (
    "ai.prompt",
    "crew_inputs",
    "langfuse.observation.input",
    "haystack.agent.input",
    "haystack.component.input",
    "mastra.agent_run.input",
    "mastra.workflow_run.input",
)
_MESSAGE_KEYS = {"role", "content", "parts", "messages"}
_ARGUMENTS = ("kwargs", "input_args")
"""Keys of the arguments of a function, whose names its author chose."""
_TEXT_OUTPUTS = ("output.value", "langfuse.observation.output")
_TEXT_KEYS = ("final_answer", "answer")
_JSON = "application/json"
_CONTEXT = "For context:"
_NEW_TASK = "New task:\n"
_REACT = re.compile(r"\s*Thought:.*?\n(?:Final )?Answer:(.*)\Z", re.DOTALL)
_FIELDS = re.compile(r"\s*(?:\[\[ ## \w{1,64} ## \]\]\s|\{\s*\"next_thought\":)")
"""The beginning of what DSPy's adapters let a model write: a field between marks, or JSON with the thought first."""
_MAX_DEPTH = 6


def question_of(turn: TurnSpans, models: Sequence[ModelCall]) -> str:
    """Returns the user's question; empty if the spans do not have it."""
    if not turn.bare:
        for node in _outermost(turn):
            for key in ("input.value", "mlflow.spanInputs", "traceloop.entity.input", *_INPUTS):
                found = _question(structure(node.span.attributes.get(key)), 0)
                if found:
                    return found
            asked = node.span.attributes.get("mastra.agent_run.input")
            if (
                isinstance(asked, str)
                and isinstance(told := structure(asked), dict)
                and not told.keys() & _MESSAGE_KEYS
            ):
                return asked  # a question that is JSON
            for key in ("crew_tasks", "crewai.crew.tasks"):
                found = _task(structure(node.span.attributes.get(key)))
                if found:
                    return found
            if "langsmith.span.kind" in node.span.attributes:
                found = _question(structure(node.span.attributes.get("gen_ai.prompt")), 0)
                if found:
                    return found
            if haystack.PIPELINE_INPUT in node.span.attributes:
                told = node.span.attributes[haystack.PIPELINE_INPUT]
                found = next((text for each in haystack.component_values(told) if (text := _question(each, 0))), "")
                found = found or haystack.only_text(told)
                if found:
                    return found
            if "gen_ai.input.messages" in node.span.attributes or (node.kind == "workflow" and node.span.events):
                found = newest_user_text(input_messages(node.span))
                if found:
                    return found
    for model in models:
        found = newest_user_text(model.inputs)
        if found:
            return found
        if any(node.span.cut_texts for node in model.nodes):
            break  # a later model can have the question of an agent to another one
    for node in _outermost(turn):
        found = newest_user_text(input_messages(node.span))
        if found:
            return found
        for key in ("pydantic_ai.all_messages", "all_messages_events"):
            found = newest_user_text(read_messages(node.span.attributes.get(key)))
            if found:
                return found
    return ""


def _outermost(turn: TurnSpans, *, last: bool = False) -> Iterable[Node]:
    """Yields the outermost spans, and below them the first agents or workflows: the frames of the same request.

    Args:
        turn: The spans of the invocation.
        last: Whether to take those that end last: of several agents one after the other, the last one answers.
    """
    for root in turn.roots:
        node: Node | None = root
        for _ in range(4):
            if node is None:
                break
            yield node
            # The agent inside a step without the spans above it works for another agent, whose span is lost.
            kinds = ("chain",) if turn.is_fragment else ("agent", "workflow", "chain")
            inner = [child for child in node.children if child.kind in kinds]
            inner = inner if _is_frame(node) else []
            if last:
                node = max(inner, key=lambda each: (each.span.end_ns, each.order), default=None)
            else:
                node = min(inner, key=lambda each: each.order, default=None)


def _is_frame(node: Node) -> bool:
    return all(child.kind not in ("llm", "tool") for child in node.children)


def newest_user_text(messages: Sequence[Message]) -> str:
    """Returns the newest text of the user; notes that a framework writes in the user's name are left out."""
    for message in reversed(messages):
        if message.role != "user" or message.results:
            continue
        text = message.text
        if text and not text.startswith(_CONTEXT):
            return text.removeprefix(_NEW_TASK)
        if not text and message.hidden:
            return ""  # an older text is not the question
    return ""


def _task(value: Any) -> str:
    """Returns what the first task of a crew demands: a crew has tasks in place of a question."""
    first = value[0] if isinstance(value, list) and value else None
    found = first.get("description") if isinstance(first, dict) else None
    return found if isinstance(found, str) and not is_hidden(found) else ""


def _question(value: Any, depth: int) -> str:
    if value is None or depth > _MAX_DEPTH or is_hidden(value):
        return ""
    if isinstance(value, str):
        value = decoded(value) if value.startswith('"') else value
        return value if isinstance(value, str) and not PYTHON_TEXT.match(value) else ""
    if isinstance(value, list):
        if value and all(isinstance(each, dict | list) for each in value):
            return newest_user_text(read_messages(value))
        return ""
    if not isinstance(value, dict):
        return ""
    if "role" in value or "parts" in value or ("content" in value and "type" in value):
        message = read_message(value)
        return message.text if message.role == "user" else ""
    for key in _QUESTION_KEYS:
        inner = structure(value.get(key))
        if isinstance(inner, str | dict | list) and inner:
            found = _question(inner, depth + 1)
            if found:
                return found
    for key in _NESTED_KEYS:
        inner = structure(value.get(key))
        if isinstance(inner, dict | list) or (isinstance(inner, str) and key in ("inputs", "input", "prompt")):
            found = _question(inner, depth + 1) or _only_text(key, inner)
            if found:
                return found
    return ""


def _only_text(key: str, value: Any) -> str:
    """Returns the only argument of a function, if it is a text; empty for other keys and values."""
    arguments = list(value.values()) if key in _ARGUMENTS and isinstance(value, dict) else []
    arguments = value if key == "args" and isinstance(value, list) else arguments
    only = arguments[0] if len(arguments) == 1 else None
    return only if isinstance(only, str) and not is_hidden(only) and not PYTHON_TEXT.match(only) else ""


def answer_of(turn: TurnSpans, models: Sequence[ModelCall]) -> str:
    """Returns the answer to the user; empty if the spans do not have it, or the invocation failed."""
    if any(root.span.status == "ERROR" for root in turn.roots):
        return ""
    if not turn.bare:
        for node in _outermost(turn, last=True):
            told = first_text(node.span.attributes, "crewai.crew.result")  # no JSON, even if it looks like it
            if told:
                return told
            if found := _answer_of_mastra(structure(node.span.attributes.get("mastra.agent_run.output"))):
                return found
            for key in (
                "final_result",
                "output.value",
                "mlflow.spanOutputs",
                "traceloop.entity.output",
                "ai.response.text",
                "langfuse.observation.output",
                "haystack.agent.output",
                "haystack.component.output",
                "mastra.workflow_run.output",
            ):
                found = _answer(structure(node.span.attributes.get(key, ABSENT)), 0)
                if found:
                    return found
            if node.kind == "agent" and first_text(node.span.attributes, "output.mime_type") != _JSON:
                told = first_text(node.span.attributes, *_TEXT_OUTPUTS)  # a text of the agent that is JSON
                if told and not is_hidden(told):
                    return told
            if "langsmith.span.kind" in node.span.attributes:
                found = _answer(structure(node.span.attributes.get("gen_ai.completion")), 0)
                if found:
                    return found
            for outputs in haystack.component_values(node.span.attributes.get(haystack.PIPELINE_OUTPUT)):
                found = _answer(outputs, 0)
                if found:
                    return found
            if "gen_ai.output.messages" in node.span.attributes:
                messages = read_messages(node.span.attributes["gen_ai.output.messages"], "assistant")
                if messages and messages[-1].text and not messages[-1].calls:
                    return _as_written(messages[-1].text, models)
    last = max(models, key=lambda model: (model.end_ns, model.start_ns), default=None)
    if last is not None and (last.is_cut or (turn.bare and last.calls)):
        return ""
    answering = [model for model in models if model.text and not model.calls]
    if answering:
        return without_thought(max(answering, key=lambda model: (model.end_ns, model.start_ns)).text)
    for node in _outermost(turn, last=True):
        for event in named_events(node.span, "gen_ai.choice"):
            text = read_message({**event_fields(event), "event.name": "gen_ai.choice"}, "assistant").text
            if text:
                return text.rstrip("\n")
    return ""


def _answer_of_mastra(run: Any) -> str:
    """Returns the text that an agent of Mastra returned, also if it is JSON, or else its object as JSON."""
    told = run.get("text") if isinstance(run, dict) else None
    if isinstance(told, str) and told and not is_hidden(told):
        return told
    made = run.get("object") if isinstance(run, dict) else None
    return text_of(made) if isinstance(made, (dict, list)) else ""


def without_thought(text: str) -> str:
    """Returns the answer in a text that thinks aloud as the prompt of a ReAct agent demands; any other text unchanged.

    >>> without_thought("Thought: I know it.\\nFinal Answer: 42"), without_thought("The answer: 42")
    ('42', 'The answer: 42')
    """
    found = _REACT.match(text)
    return found[1].strip() if found else text


def is_protocol(text: str) -> bool:
    """Returns whether a text of a model is only for the framework, which reads fields from it, as DSPy does.

    >>> is_protocol("[[ ## next_tool_name ## ]]\\nweather"), is_protocol("[[ see below ]]")
    (True, False)
    """
    return _FIELDS.match(text) is not None


def _as_written(text: str, models: Sequence[ModelCall]) -> str:
    """Returns the text of the model that the text of an agent ends in line breaks: Strands adds one to each part."""
    bare = text.rstrip("\n")
    return bare if any(model.text == bare for model in models) else text


def _answer(value: Any, depth: int) -> str:
    if value is None or value is ABSENT or depth > _MAX_DEPTH or is_hidden(value):
        return ""
    if isinstance(value, str):
        value = decoded(value) if value.startswith('"') else value
        return value if isinstance(value, str) and not PYTHON_TEXT.match(value) else ""
    if isinstance(value, list):
        messages = read_messages([each for each in value if isinstance(each, dict)], "assistant")
        last = messages[-1] if messages else None
        return last.text if last is not None and last.role == "assistant" and not last.calls else ""
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("messages"), list):
        return _answer(value["messages"], depth + 1)
    content = value.get("content")
    if isinstance(content, dict):
        return read_message({"role": "assistant", **content}, "assistant").text
    if isinstance(content, str | list) or "role" in value or "kwargs" in value or "choices" in value:
        choices = value.get("choices")
        if isinstance(choices, list):
            return _answer(choices, depth + 1)
        message = read_message(value, "assistant")
        return message.text if message.role == "assistant" and not message.calls else ""
    if isinstance(value.get("raw"), str) and value["raw"]:  # CrewAI: the text as it is, also if it is JSON
        return str(value["raw"])
    for key in _ANSWER_KEYS:
        inner = structure(value.get(key))
        if inner:
            found = _answer(inner, depth + 1)
            if found:
                return found
            told = value[key]  # an answer that is JSON, as the model wrote it
            if key in _TEXT_KEYS and isinstance(told, str) and told.startswith("{"):
                return told
    return ""
