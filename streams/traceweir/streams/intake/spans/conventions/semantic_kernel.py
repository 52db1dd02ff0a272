"""Semantic Kernel: the standard, with the messages in log records."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention, Switch

SEMANTIC_KERNEL = Convention(
    name="Semantic Kernel",
    switches=(
        Switch(
            "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true, and export the log records of the "
            "logger semantic_kernel too, which hold the messages",
            scopes=("microsoft.semantic_kernel*", "semantic_kernel*"),
        ),
    ),
    input_tokens=("gen_ai.response.prompt_tokens",),
    output_tokens=("gen_ai.response.completion_tokens",),
    frameworks=(("semantic_kernel", "semantic-kernel"),),
)
