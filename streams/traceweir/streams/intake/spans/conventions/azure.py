"""Azure's SDKs for AI: the standard, with a setting and a name of the conversation of their own."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention, Switch

AZURE = Convention(
    name="Azure AI",
    sessions=("gen_ai.thread.id",),
    switches=(Switch("AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true", scopes=("azure.*",)),),
)
