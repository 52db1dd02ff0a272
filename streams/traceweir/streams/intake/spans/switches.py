"""Names the setting that makes an instrumentation write content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceweir.streams.intake.spans.conventions import CONVENTIONS
from traceweir.streams.intake.spans.span import Span

_MAX_SCOPE_CHARS = 100
_SWITCHES = tuple(switch for each in CONVENTIONS for switch in each.switches)


def switch_of(spans: Sequence[Span]) -> str:
    """Returns the setting that makes the instrumentation of these spans write content, with its value."""
    keys = {key for span in spans for key in span.attributes}
    scopes = {span.scope.lower() for span in spans}
    found = next((switch.setting for switch in _SWITCHES if switch.applies(keys, scopes)), None)
    counted = Counter(span.scope for span in spans)
    scope = min(counted, key=lambda name: (-counted[name], name), default="")[:_MAX_SCOPE_CHARS]
    return found or f"the option of the instrumentation {scope!r} with which it records content, if it has one"
