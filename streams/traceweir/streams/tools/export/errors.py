"""Says why an exporter ends."""

from __future__ import annotations


class ExportError(Exception):
    """The exporter cannot start or cannot continue; the message states the reason and the way out."""
