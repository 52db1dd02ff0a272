"""AutoGen's own spans, which tell names alone."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

AUTOGEN = Convention(name="AutoGen", frameworks=(("autogen", "autogen"),), agents=("recipient_agent_name",))
