"""Removes the secret tag from a prompt, which differs between deployments."""

from __future__ import annotations

import re


def without_tag(prompt: str) -> str:
    """Returns a prompt with marks that have no tag.

    >>> without_tag("<answer 0123456789abcdef>It ships.</answer 0123456789abcdef>")
    '<answer>It ships.</answer>'
    """
    return re.sub(r"(</?\w+) [0-9a-f]{16}>", r"\1>", prompt)
