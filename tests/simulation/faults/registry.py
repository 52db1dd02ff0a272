"""The list of all faults with their shares, and what each of them gets to act."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol

from tests.simulation.cluster.network import Link
from tests.simulation.worker import SimulatedWorker
from tests.simulation.world import World


class Stumble(NamedTuple):
    """An exception that a stage will raise."""

    stage: str
    method: str
    countdown: list[int]
    """How many calls still pass."""
    share: float
    """How much of the work is done before: a share of the records of `apply`, and nothing (0) or all of the others."""


class Acts(Protocol):
    """What a fault gets."""

    world: World
    rnd: random.Random
    """Draws what this fault does."""
    counts: Counter[str]
    stumbles: list[Stumble]
    refusals: list[tuple[int, int]]
    """The keys of requests, and the errors with which the next of them are answered."""

    def note(self, kind: str, line: str) -> None:
        """Counts a fault that has happened, and adds it to the story."""

    def worker(self) -> SimulatedWorker | None:
        """Draws a worker that is alive; returns None if there is none."""

    def wait_for(
        self, key: int, strike: Callable[[Link], object], *, at_answer: bool, within: int, of: Any = None
    ) -> None:
        """Lets something happen at one of the next messages.

        Args:
            key: The key of the request.
            strike: What happens; it gets the connection.
            at_answer: Whether it happens when the node answers; otherwise when the request is sent.
            within: The most messages of this kind that still pass.
            of: The process that sends the message; None: any.
        """


Fault = Callable[[Acts], object]
SHARES: dict[Fault, float] = {}
"""How often each fault is drawn, relative to the others, once the modules beside this one are imported."""
ONLY: dict[Fault, Collection[str]] = {}
"""The kinds of scenarios in which a fault is possible, for those that are not possible in all."""
OF_WATCHES: set[Fault] = set()
"""The faults that are possible where the processes watch scores."""
NEEDS: dict[Fault, str] = {}
"""For faults that are possible in some scenarios only, the field of `Scenario` that says whether they are."""


def fault(
    share: float, *, only: Collection[str] = (), needs: str = "", of_watches: bool = False
) -> Callable[[Fault], Fault]:
    """Adds a fault to the list.

    Args:
        share: How often it is drawn.
        only: The kinds of scenarios in which it is possible; by default all in which workers run.
        needs: The field of `Scenario` that must be true.
        of_watches: Whether it is also possible where the processes watch scores.
    """

    def add(work: Fault) -> Fault:
        SHARES[work] = share
        if only:
            ONLY[work] = only
        if of_watches:
            OF_WATCHES.add(work)
        if needs:
            NEEDS[work] = needs
        return work

    return add
