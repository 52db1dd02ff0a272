"""Tells why content is not in spans: a limit of the SDK, a place elsewhere, or a setting that turns it off."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.streams.intake.spans.attributes import is_cut
from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.messages import is_broken
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.switches import switch_of

_ONLY_JSON = keys_of(lambda each: each.only_json)
_CONTENT_KEYS = ("messages", "input.value", "output.value", "arguments", "result", "prompt", "completion", "llm_re")


def reason_of(spans: Sequence[Span]) -> str:
    """Returns why content of these spans is missing, and what helps."""
    dropped = sum(span.dropped_attributes for span in spans)
    if dropped:
        return f"the SDK dropped {dropped} attributes of them; raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
    keys = {key for span in spans for key in span.attributes}
    for key in _ONLY_JSON:
        if key in keys and any(is_broken(span.attributes.get(key)) for span in spans):
            return f"the value of {key} is no JSON; write it with a serializer of JSON, such as json.dumps"
    if any(span.cut_texts for span in spans) or any(
        is_cut(value) for span in spans for key, value in span.attributes.items() if _is_content(key)
    ):
        return "a value was cut; raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
    if any(key.endswith(("_ref", "messages.ref", ".uri")) and _is_content(key) for key in keys):
        return (
            "the content was uploaded elsewhere and only its address is in the spans; capture it in the spans as well: "
            + switch_of(spans)
        )
    return f"set {switch_of(spans)}"


def _is_content(key: str) -> bool:
    return any(word in key for word in _CONTENT_KEYS)
