"""The list of all bugs, how they change the product, and whether a change itself is broken."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.simulation import seams
from tests.simulation.scenario import Scenario

from traceweir.streams.worker.runtime.checkpoint import Checkpoints

Bug = Callable[[Any], None]
BUGS: dict[str, Bug] = {}
"""All bugs by name, once the modules beside this one are imported."""


OF_HIGHER_SEEDS: set[str] = set()
"""The names of the bugs that only a seed with pushed configs, distant or slow nodes or wrong clocks can find."""

NEEDED: dict[str, Callable[[Scenario], bool]] = {}
"""For bugs that few of these seeds can find: whether the scenario of a seed can."""

MISTAKES = AttributeError, NameError, TypeError
"""What a patch raises that does not fit the product any more."""
_FOLDER = str(Path(__file__).parent)
mistakes: list[str] = []
waiting: set[str] = set()
"""What a patch has put in and the worker has not called yet."""


def bug(work: Bug) -> Bug:
    """Adds a bug under the name of its function."""
    BUGS[work.__name__] = work
    return work


def bug_of(holds: Callable[[Scenario], bool]) -> Callable[[Bug], Bug]:
    """Adds a bug that only some of the higher seeds can find: those for whose scenario `holds` returns true."""

    def add(work: Bug) -> Bug:
        NEEDED[work.__name__] = holds
        return bug_of_higher_seeds(work)

    return add


def bug_of_higher_seeds(work: Bug) -> Bug:
    """Adds a bug that only a seed with pushed configs, distant or slow nodes or wrong clocks can find."""
    OF_HIGHER_SEEDS.add(work.__name__)
    return bug(work)


def put(owner: Any, name: str, new: Any) -> None:
    """Replaces an attribute of the product by a bug. Notes that it is called, and a mistake of its own that it raises.

    Raises:
        AttributeError: the owner has no attribute of this name.
    """
    part = f"{owner.__name__}.{name}"
    if isinstance(new, property):
        new = property(new.fget and _watched(new.fget, part))
    seams.put(owner, name, _watched(new, part) if inspect.isfunction(new) else new)


def install(name: str, world: Any) -> None:
    """Puts a bug into the worker, or into the watch."""
    report_end = Checkpoints.report_end

    def report(self: Any, error: BaseException) -> None:
        note_mistake(error)  # also of what a patch has put in later, without `put`
        report_end(self, error)

    seams.put(Checkpoints, "report_end", report)
    BUGS[name](world)


def note_mistake(error: BaseException) -> None:
    """Notes an exception if a patch has made it by its own mistake, and not the product because of the patch."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is not None and isinstance(error, MISTAKES) and place.tb_frame.f_code.co_filename.startswith(_FOLDER):
        line = f"the patch raises {error!r}"
        if line not in mistakes:
            mistakes.append(line)


def broken() -> list[str]:
    """Returns the mistakes of the patch that was played in this Python process."""
    return [*mistakes]


def uncalled() -> frozenset[str]:
    """Returns what the patch has put into this Python process and the worker has not called."""
    return frozenset(waiting)


def _watched(work: Callable[..., Any], part: str) -> Callable[..., Any]:
    waiting.add(part)
    if inspect.iscoroutinefunction(work):

        @functools.wraps(work)
        async def wait(*args: Any, **options: Any) -> Any:
            waiting.discard(part)
            try:
                return await work(*args, **options)
            except MISTAKES as error:
                note_mistake(error)
                raise

        return wait

    @functools.wraps(work)
    def call(*args: Any, **options: Any) -> Any:
        waiting.discard(part)
        try:
            return work(*args, **options)
        except MISTAKES as error:
            note_mistake(error)
            raise

    return call
