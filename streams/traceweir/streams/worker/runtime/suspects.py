"""Finds the record on which a stage raises, so that this record becomes a dead letter and its neighbours are processed.

A stage that raised can hold a part of a record's work, so its partition is loaded again from the last checkpoint. Then the
records that the stage had in memory come in batches of a quarter, with a checkpoint after each, until a batch is one
record. A record on which the stage raises twice alone is poison: it comes to `Stage.reject` in place of `Stage.apply`.
A session on which a stage raises twice is set aside in the same way, before the first tick. The records in memory come in
smaller batches first: only what a checkpoint contains can be set aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from traceback import extract_tb

from traceweir.schemas.text import printable
from traceweir.streams.base.stages.errors import RecordRejected

DETAIL_CHARS = 500
"""Maximum length of the description of an exception, whose message can contain text of the record."""


class StageFailed(Exception):  # noqa: N818  # an outcome that the caller handles
    """A stage raised. Its lane is dead: nothing of the lane is committed any more.

    Args:
        stage: Name of the stage.
        error: What it raised.
        records: By topic, the first and the last offset of the records that can be the cause; empty: no record is.
        count: Number of these records.
        named: Whether the stage has named the record, so that its neighbours are above suspicion.
        session: The session that is the cause, if the stage has named it.
    """

    def __init__(
        self,
        stage: str,
        error: BaseException,
        records: Mapping[str, tuple[int, int]],
        count: int,
        *,
        named: bool = False,
        session: bytes | None = None,
    ) -> None:
        super().__init__(f"the stage {stage} raised {describe(error)}")
        self.for_log = f"the stage {stage} raised {type_and_place(error)}"
        """The message without that of the exception, which can quote a record."""
        self.stage = stage
        self.error = error
        self.records = records
        self.count = count
        self.named = named
        self.session = session


class Suspects:
    """The records of a lane that come in small batches, and those that are poison.

    >>> suspects = Suspects().after(StageFailed("gate", ValueError("no"), {"candidates": (4, 9)}, 6))
    >>> suspects.limit(["candidates"]), suspects.limit(["traces"]), suspects.poison("candidates", 7)
    (1, None, None)
    >>> alone = StageFailed("gate", ValueError("no"), {"candidates": (7, 7)}, 1)
    >>> suspects = suspects.after(alone).after(alone)
    >>> suspects.poison("candidates", 7)
    'the stage gate raised ValueError: no'
    >>> suspects.passed("candidates", 9)
    >>> suspects.isolating
    False
    """

    def __init__(self) -> None:
        # By topic: the last suspect, and the size of a batch.
        self._until: dict[str, tuple[int, int]] = {}
        self._failed_alone: set[tuple[str, int]] = set()
        self._poison: dict[tuple[str, int], str] = {}
        self._failed_sessions: set[tuple[str, bytes]] = set()
        self._poison_sessions: dict[tuple[str, bytes], RecordRejected] = {}

    @property
    def isolating(self) -> bool:
        """Whether records of some topic come in small batches for now."""
        return bool(self._until)

    def limit(self, topics: Iterable[str]) -> int | None:
        """Returns the size of a batch of a stage with these inputs; None: no record of them is suspect."""
        return min((self._until[topic][1] for topic in topics if topic in self._until), default=None)

    @property
    def has_poison(self) -> bool:
        """Whether a record of some topic is poison."""
        return bool(self._poison)

    def poison(self, topic: str, offset: int) -> str | None:
        """Returns why a record is poison, or None."""
        return self._poison.get((topic, offset))

    def poison_sessions(self, stage: str) -> dict[bytes, RecordRejected]:
        """Returns the sessions that a stage must set aside, with the reason."""
        return {session: why for (name, session), why in self._poison_sessions.items() if name == stage}

    def start_at(self, positions: Mapping[str, int]) -> None:
        """Forgets the records that lie before these positions, by topic."""
        for topic, position in positions.items():
            self.passed(topic, position - 1)
        self._failed_alone = {place for place in self._failed_alone if place[1] >= positions[place[0]]}
        self._poison = {place: why for place, why in self._poison.items() if place[1] >= positions[place[0]]}

    def set_aside(self) -> None:
        """Notes that all sessions to set aside were cut. A later session of the same id is another session."""
        self._failed_sessions -= self._poison_sessions.keys()
        self._poison_sessions.clear()

    def passed(self, topic: str, offset: int) -> None:
        """Notes that the work on the records of a topic up to this offset was cut."""
        if topic in self._until and offset >= self._until[topic][0]:
            del self._until[topic]

    def after(self, failed: StageFailed) -> Suspects:
        """Returns the suspects for the next attempt.

        A record is poison if the stage raises twice while it is the only possible cause: an exception that does not repeat itself costs
        no record.

        Raises:
            StageFailed: again, if neither a record nor a session is the cause, or if the cause is poison already.
        """
        if not failed.count and failed.session is None:
            raise failed
        after = Suspects()
        after._until = {**self._until}
        after._failed_alone = {*self._failed_alone}
        after._poison = {**self._poison}
        after._failed_sessions = {*self._failed_sessions}
        after._poison_sessions = {**self._poison_sessions}
        if failed.session is not None and failed.count <= 1:
            place = failed.stage, failed.session
            if place not in self._poison_sessions:
                if place in self._failed_sessions:
                    error = failed.error
                    after._poison_sessions[place] = (
                        error if isinstance(error, RecordRejected) else RecordRejected("poison", str(failed))
                    )
                after._failed_sessions.add(place)
                return after
            if not failed.count:
                raise failed
            # The last checkpoint did not contain the session, so the one record is all of it.
        if failed.count == 1:
            ((topic, (offset, _)),) = failed.records.items()
            if (topic, offset) in self._poison:
                raise failed
            if (topic, offset) in self._failed_alone:
                after._poison[topic, offset] = str(failed)
            after._failed_alone.add((topic, offset))
        if not failed.named:
            size = max(1, failed.count // 4)
            for topic, (_, last) in failed.records.items():
                before, _ = self._until.get(topic, (last, size))
                after._until[topic] = max(last, before), size
        return after


def describe(error: BaseException) -> str:
    """Returns type, message and place of an exception, on one line without control characters.

    >>> describe(KeyError("a" + chr(27)))
    "KeyError: 'a\\\\x1b'"
    """
    return printable(f"{type(error).__name__}: {error}", DETAIL_CHARS) + _place(error)


def type_and_place(error: BaseException) -> str:
    """Returns type and place of an exception, for logs: its message can quote a record.

    >>> type_and_place(KeyError("a secret"))
    'KeyError'
    """
    return type(error).__name__ + _place(error)


def _place(error: BaseException) -> str:
    frames = extract_tb(error.__traceback__)
    return f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
