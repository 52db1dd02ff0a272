"""OpenAI's Agents SDK, as OpenInference and traceloop write it."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

OPENAI_AGENTS = Convention(name="OpenAI Agents SDK", frameworks=(("openai_agents", "openai-agents"),))
