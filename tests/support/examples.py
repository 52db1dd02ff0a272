"""With how many examples a property is tried that does not need the usual number."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100


def examples(number: int) -> int:
    """Returns the examples of a property that is tried with a number of them by `make test-large`.

    The profile that pytest was started with lessens them as it lessens those of all other properties.
    """
    return -(-number * settings().max_examples // USUAL)
