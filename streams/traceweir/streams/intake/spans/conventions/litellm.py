"""LiteLLM's callback, which writes the model calls below a span on that span."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation

if TYPE_CHECKING:
    from traceweir.streams.intake.spans.model_calls import ModelCall

_REQUEST = "raw_gen_ai_request"


def _has_several_requests(model: ModelCall) -> bool:
    return sum(each.span.name == _REQUEST for each in model.nodes[0].children) > 1


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    if not any(map(_has_several_requests, seen.models)):
        return {}
    return {
        "tokens": "the tokens of some model calls are not in the spans: LiteLLM writes the model calls below a span on that "
        "span, where the last call overwrites the others; set USE_OTEL_LITELLM_REQUEST_SPAN=true"
    }


LITELLM = Convention(name="LiteLLM", users=("llm.user", "metadata.user_api_key_end_user_id"), quirks=_quirks)
