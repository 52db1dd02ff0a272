"""Says why OTLP data cannot be read."""

from __future__ import annotations


class OtlpError(ValueError):
    """The data is not what OTLP allows; the message names the place, the value and the rule."""
