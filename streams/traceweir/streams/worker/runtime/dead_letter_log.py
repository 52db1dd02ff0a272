"""Warns of dead letters in the log of a worker: the place and the first problem of a record, and no text of the record.

The messages of some reasons quote ids that a sender has chosen, so a warning is redacted, escaped and short.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.text import printable
from traceweir.scorers.redaction.redaction import redact_text
from traceweir.streams.base.stages.base import Output

log = logging.getLogger(__name__)

QUIET_S = 10.0
"""Time in seconds after a warning in which no other dead letter with the same reason is logged."""
PROBLEM_CHARS = 200
"""Maximum number of characters of a problem."""
_SEARCHED_CHARS = 4_000
_EXCEPTIONS = ("poison", "scoring_failed")
"""Reasons whose detail can contain the message of an exception, and so text of the record."""


class DeadLetterLog:
    """Logs at most one dead letter per reason in `QUIET_S`, with the number of those that were not logged."""

    def __init__(self, topic: str, clock: Callable[[], float] = monotonic) -> None:
        """Starts without a warning.

        Args:
            topic: Name of the topic `dead-letters`.
            clock: Returns seconds of a monotonic clock.
        """
        self._topic = topic
        self._clock = clock
        self._logged_at: dict[str, float] = {}
        self._hidden: Counter[str] = Counter()

    def committed(self, counts: Mapping[str, int], outputs: Sequence[Output]) -> None:
        """Logs the dead letters among the outputs of a committed checkpoint.

        Args:
            counts: What the checkpoint has counted. Without a dead letter, the outputs are not searched.
            outputs: The outputs of the checkpoint.
        """
        if not any(".dead_lettered." in key for key in counts):
            return
        for output in outputs:
            if output.topic == self._topic:
                self._note(DeadLetter.read(output.key, None, output.headers))

    def _note(self, letter: DeadLetter) -> None:
        reason = letter.reason
        now = self._clock()
        if reason in self._logged_at and now - self._logged_at[reason] < QUIET_S:
            self._hidden[reason] += 1
            return
        hidden = self._hidden.pop(reason, 0)
        self._logged_at[reason] = now
        log.warning(
            "dead letter: reason=%s topic=%s partition=%d offset=%d stage=%s problem=%s%s",
            reason,
            letter.topic,
            letter.partition,
            letter.offset,
            letter.stage,
            _problem(letter),
            f" ({hidden} more since the last line with this reason)" if hidden else "",
        )


def _problem(letter: DeadLetter) -> str:
    if letter.reason in _EXCEPTIONS:
        return "an exception, which `traceweir dlq show` shows"
    # Redacted before it is shortened, because a secret that is cut is not recognised.
    return printable(redact_text(letter.detail.split("; ")[0][:_SEARCHED_CHARS]), PROBLEM_CHARS)
