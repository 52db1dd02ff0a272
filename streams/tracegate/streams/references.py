"""What was expected, from the compacted `references` topic: found by reference id, or by the question within an app."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from mode import Service
from pydantic import ValidationError

from tracegate.schemas.base import explain
from tracegate.schemas.dead_letter import printable
from tracegate.schemas.reference import Reference, normalised_question
from tracegate.schemas.turns import Turn

log = logging.getLogger(__name__)

Question = tuple[str, str]


class References:
    """All references that there are now. The latest of an id counts; a tombstone takes it away."""

    def __init__(self) -> None:
        self._by_id: dict[str, Reference] = {}
        self._by_question: dict[Question, str] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Take a reference, or with None take it away."""
        former = self._by_id.pop(reference_id, None)
        if former is not None and self._by_question.get(_question(former)) == reference_id:
            del self._by_question[_question(former)]
        if reference is not None:
            self._by_id[reference_id] = reference
            if reference.question:
                self._by_question[_question(reference)] = reference_id

    def resolve(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns with what is expected of them: inline before by id, by id before by question."""
        return [turn if turn.reference is not None or not self._by_id else self._resolved(turn) for turn in turns]

    def _resolved(self, turn: Turn) -> Turn:
        found = self._by_id.get(turn.reference_id) if turn.reference_id else None
        if found is None and turn.invocation.user_content is not None:
            asked = normalised_question(turn.invocation.user_content.text)
            name = self._by_question.get((turn.app_name, asked)) or self._by_question.get(("", asked))
            found = self._by_id[name] if name else None
        return turn if found is None else replace(turn, reference=found)


def _question(reference: Reference) -> Question:
    return reference.app_name or "", normalised_question(reference.question or "")


class ReferenceReader(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Reads the whole topic before it counts as started, whatever partitions the worker owns, and follows it from then on."""

    def __init__(
        self, references: References, topic: str, partitions: int, options: Mapping[str, Any], **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._references, self._topic, self._partitions, self._options = references, topic, partitions, options

    async def on_start(self) -> None:
        """Read to the end."""
        consumer = self._consumer = AIOKafkaConsumer(
            **self._options, enable_auto_commit=False, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await consumer.start()
        partitions = [TopicPartition(self._topic, number) for number in range(self._partitions)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        for place, end in (await consumer.end_offsets(partitions)).items():
            while await consumer.position(place) < end:
                self._take(await consumer.getmany(place, timeout_ms=100))
        log.info("references: %d", len(self._references))

    async def on_stop(self) -> None:
        """Disconnect."""
        await self._consumer.stop()

    @Service.task  # type: ignore[untyped-decorator]
    async def _follow(self) -> None:
        while not self.should_stop:
            self._take(await self._consumer.getmany(timeout_ms=500))

    def _take(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        for records in batches.values():
            for record in records:
                self._take_one(record)

    def _take_one(self, record: Any) -> None:
        where = f"reference at {record.topic}/{record.partition}/{record.offset}"
        try:
            reference = Reference.model_validate_json(record.value) if record.value else None
        except ValidationError as error:
            log.warning("%s is left out: %s", where, printable(explain(error)))
            return
        key = (record.key or b"").decode(errors="replace")
        name = key or (reference.reference_id if reference else None)
        if name:
            self._references.put(name, reference)
        else:
            log.warning("%s is left out: it has neither a key nor a reference_id", where)
