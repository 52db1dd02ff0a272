"""Knows whether a target takes what it is sent, from its last answers."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.streams.tools.export.answers import Accepted, Answer, Later, Refused, Unfit


class Acceptance:
    """What the last answers of a target say about it.

    A problem is about what is tried: it lasts while a score waits for another attempt, and ends with the first item that is
    taken, and when nothing is left to try.

    An outage shows at the first answer. An error of the target's own, such as 500, can be due to a single item, which then
    waits while others go on: it shows when two different items in a row have met it, or one request with several.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        """Why the target takes nothing, as a sentence without words of the target; None while it takes something, and
        before its first answer."""
        self.ended = False
        """Whether the exporter ends because of the target."""
        self._suspect: object = None

    def note(self, items: Sequence[object], answer: Answer) -> None:
        """Notes the answer to a request.

        Args:
            items: What was sent, one or more.
            answer: The answer. A target that refuses what an item contains has read it, and takes others.
        """
        if self.ended:
            return
        if isinstance(answer, Accepted | Refused):
            self.problem = self._suspect = None
        elif isinstance(answer, Unfit):
            self.end(f"the target refuses this exporter, which ends: {answer.public_reason or answer.reason}")
        elif not self._can_be_one_item(items, answer):
            self.problem = f"the target takes nothing now: {answer.public_reason or answer.reason}"

    def end(self, problem: str) -> None:
        """Notes that the exporter ends because of the target, whatever it still answers."""
        self.ended = True
        self.problem = problem

    def forget(self) -> None:
        """Notes that nothing of what was sent is tried again here: it was given up, or others send it."""
        if not self.ended:
            self.problem = self._suspect = None

    def _can_be_one_item(self, items: Sequence[object], answer: Later) -> bool:
        if self.problem is not None or not answer.can_be_the_content or len(items) > 1:
            return False
        if self._suspect is None:
            self._suspect = items[0]
        return self._suspect == items[0]
