"""Reads token counts: those of an MLflow trace, and those in the response of a chat completion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from traceweir.schemas.base import whole
from traceweir.schemas.invocation import TokenUsage
from traceweir.schemas.mlflow_spans import NUMBER_RANGE, OUTPUTS, TOKEN_USAGE, SpanTree, decoded, number

TRACE_USAGE = "mlflow.trace.tokenUsage"
"""The key of the metadata in which MLflow 3 stores the sum of a trace."""
MODELS = ("LLM", "CHAT_MODEL")
INPUT_NAMES, OUTPUT_NAMES = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
"""The names of the two counts: those of OpenAI's Chat Completions, then those of MLflow and the Responses API."""


def trace_token_usage(tree: SpanTree, unread: list[str]) -> TokenUsage | None:
    """Returns the tokens of a trace; None if nothing in the trace reports tokens.

    The counts come from the first of these sources that has one:

    1. `mlflow.trace.tokenUsage` in the metadata, which is MLflow 3's own sum.
    2. `mlflow.chat.tokenUsage` of the spans. As in MLflow, a span below another span with this attribute does not
       count, because a span of an agent can repeat the sum of its model calls.
    3. The outputs of LLM and CHAT_MODEL spans without children, as in databricks-agents 0.22: `prompt_tokens` and
       `completion_tokens` of `llm_output`, or else of `usage`.

    Args:
        tree: The trace.
        unread: Receives a sentence for each count that cannot be read.
    """
    total = tree.metadata.get(TRACE_USAGE)
    if isinstance(total, str):
        try:
            total = decoded(total)
        except ValueError:
            unread.append(f"the trace's {TRACE_USAGE} is not JSON")
            total = None
    spans = [(f"span {span.name[:80]!r}", span.attributes[TOKEN_USAGE]) for span in tree.topmost_with(TOKEN_USAGE)]
    models = [
        (f"span {span.name[:80]!r}", _reported(span.attributes.get(OUTPUTS)))
        for span in tree.leaves()
        if span.kind in MODELS
    ]
    return (
        _summed([("the trace", total)], ("input_tokens",), ("output_tokens",), unread)
        or _summed(spans, ("input_tokens",), ("output_tokens",), unread)
        or _summed(models, ("prompt_tokens",), ("completion_tokens",), unread)
    )


def response_token_usage(response: JsonValue, unread: list[str]) -> TokenUsage | None:
    """Returns the tokens in the `usage` of a response of Chat Completions or of the Responses API; None without it.

    Args:
        response: The response, in any shape.
        unread: Receives a sentence for each count that cannot be read.
    """
    usage = response.get("usage") if isinstance(response, dict) else None
    return _summed([("the response", usage)], INPUT_NAMES, OUTPUT_NAMES, unread)


def _reported(outputs: JsonValue) -> JsonValue:
    return outputs.get("llm_output", outputs.get("usage")) if isinstance(outputs, dict) else None


def _summed(
    usages: Iterable[tuple[str, JsonValue]],
    input_names: Sequence[str],
    output_names: Sequence[str],
    unread: list[str],
) -> TokenUsage | None:
    """Returns the sums of the two counts over (place, usage) pairs; None if no usage has a count."""
    usages = list(usages)
    read, written = (_sum(usages, names, unread) for names in (input_names, output_names))
    return None if read is None and written is None else TokenUsage(input_tokens=read, output_tokens=written)


def _sum(usages: Iterable[tuple[str, JsonValue]], names: Sequence[str], unread: list[str]) -> int | None:
    counts: list[int] = []
    for place, usage in usages:
        name = next((name for name in names if isinstance(usage, dict) and usage.get(name) is not None), None)
        if name is None or not isinstance(usage, dict):
            continue
        count = whole(number(usage[name]))
        if isinstance(count, int) and count >= 0:
            counts.append(count)
        else:
            unread.append(f"{name} of {place} is not an integer {NUMBER_RANGE}")
    total = sum(counts) if counts else None
    if total is not None and number(total) is None:
        unread.append(f"the sum of {names[0]} is not {NUMBER_RANGE}")
        return None
    return total
