"""Names the part of aiokafka's consumers and producers that connects to nodes."""

from __future__ import annotations

from typing import Any


def client_of(user: Any) -> Any:
    """Returns the client of an aiokafka consumer or producer, which sends its requests."""
    return user._client if hasattr(user, "_client") else user.client
