"""Tells addresses of this dashboard from those that lead to another site."""

from __future__ import annotations

from urllib.parse import urlsplit

MAX_ADDRESS_CHARS = 4_000
"""Characters of an address that the dashboard keeps or leads to."""


def is_local(address: str) -> bool:
    """Returns whether an address is a path of this dashboard, and leads to no other site.

    >>> is_local("/sessions?status=FAILED"), is_local("//evil.example"), is_local("https://evil.example/"), is_local("/\\\\evil")
    (True, False, False, False)
    """
    if len(address) > MAX_ADDRESS_CHARS or not address.startswith("/") or not address.isprintable() or "\\" in address:
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return not address.startswith("//") and not parts.scheme and not parts.netloc
