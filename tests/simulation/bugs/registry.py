"""The list of all bugs, and how they change the product."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.world import World

Bug = Callable[[World], None]
BUGS: dict[str, Bug] = {}
"""All bugs by name, once the modules beside this one are imported."""


def bug(work: Bug) -> Bug:
    """Adds a bug under the name of its function."""
    BUGS[work.__name__] = work
    return work
