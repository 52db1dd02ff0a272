"""Names the setting that makes an instrumentation write content."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.streams.intake.spans.conventions import CONVENTIONS
from traceweir.streams.intake.spans.span import Span

_SWITCHES = tuple(switch for each in CONVENTIONS for switch in each.switches)


def switch_of(spans: Sequence[Span]) -> str:
    """Returns the setting that makes the instrumentation of these spans write content, with its value."""
    keys = {key for span in spans for key in span.attributes}
    scopes = {span.scope.lower() for span in spans}
    return next(switch.setting for switch in _SWITCHES if switch.applies(keys, scopes))
