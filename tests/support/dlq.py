"""Runs `traceweir dlq` in the process of the test, and writes dead letters to the topic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.streams.cli.main import main


class Ended(NamedTuple):
    """The exit code of a command, and its output."""

    code: object
    out: bytes
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines of stdout, parsed."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Dlq:
    """The command, on a broker and under a prefix; `captured` holds what it writes to the streams of the process."""

    servers: str
    prefix: str
    captured: pytest.CaptureFixture[bytes]

    def __call__(self, *arguments: str) -> Ended:
        """Runs `traceweir dlq`, which starts an event loop: a coroutine calls this in a thread."""
        self.captured.readouterr()
        with pytest.MonkeyPatch.context() as variables:
            for name, value in (self.environment | {"COLUMNS": "200"}).items():
                variables.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(["dlq", *arguments])
        out, err = self.captured.readouterr()
        return Ended(ended.value.code, out, err.decode())

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that name the broker and the prefix."""
        return {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": self.servers, "TRACEWEIR_TOPIC_PREFIX": self.prefix}

    def states(self) -> dict[str, str]:
        """Returns the state of each dead letter (`open` or `replayed`) by id."""
        return {line["id"]: line["state"] for line in self("list", "--json").lines}

    def put(self, letters: Sequence[DeadLetter]) -> None:
        """Writes dead letters as a worker does, each to the partition of its record."""
        put_letters(self.servers, letters, self.prefix)


def put_letters(servers: str, letters: Sequence[DeadLetter], prefix: str = "traceweir.") -> None:
    """Writes dead letters as a worker does, each to the partition of its record."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for letter in letters:
        producer.produce(
            f"{prefix}dead-letters",
            letter.wire_value(),
            letter.key,
            partition=letter.partition,
            headers=letter.wire_headers(),
        )
    assert producer.flush(30) == 0


def letter(number: int, prefix: str = "traceweir.", topic: str = "traces", **changes: Any) -> DeadLetter:
    """Returns a dead letter of the partition `number % 4`."""
    about: dict[str, Any] = {"reason": "late", "detail": "too late", "stage": "assemble", "timestamp": 1_000, **changes}
    value = about.pop("value", b"value %d" % number)
    return DeadLetter(
        topic=prefix + topic, partition=number % 4, offset=number, key=b"key %d" % number, value=value, **about
    )
