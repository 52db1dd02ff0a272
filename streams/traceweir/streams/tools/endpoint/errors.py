"""Says why the endpoint cannot start."""

from __future__ import annotations


class EndpointError(Exception):
    """The endpoint cannot start: a topic or a port is not as it must be; the message contains the way out."""
