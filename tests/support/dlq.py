"""Runs `traceweir dlq` as a process, and writes dead letters to the topic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import Producer

from traceweir.schemas.dead_letter import DeadLetter


class Ended(NamedTuple):
    """The exit code of a command, and its output."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines of stdout, parsed."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Dlq:
    """The command, on a broker and under a prefix."""

    servers: str
    prefix: str = "traceweir."

    def __call__(self, *arguments: str) -> Ended:
        """Runs `traceweir dlq`."""
        ended = subprocess.run(
            [sys.executable, "-m", "traceweir.streams.cli.main", "dlq", *arguments],
            env=os.environ | self.environment | {"COLUMNS": "200"},
            capture_output=True,
            check=False,
            timeout=60,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr.decode())

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that name the broker and the prefix."""
        return {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": self.servers, "TRACEWEIR_TOPIC_PREFIX": self.prefix}

    def states(self) -> dict[str, str]:
        """Returns the state of each dead letter (`open` or `replayed`) by id."""
        return {line["id"]: line["state"] for line in self("list", "--json").lines}

    def put(self, letters: Sequence[DeadLetter]) -> None:
        """Writes dead letters as a worker does, each to the partition of its record."""
        producer = Producer({"bootstrap.servers": self.servers})
        for letter in letters:
            producer.produce(
                f"{self.prefix}dead-letters",
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
