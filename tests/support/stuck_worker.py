"""Runs a worker in which one duty makes no progress.

`python -m tests.support.stuck_worker WHAT worker ...` takes the arguments of `traceweir` after WHAT.

`fetch`: partition 1 of `traces` is assigned, but never fetched. `checkpoint`: sending a checkpoint never ends.
`catch-up`: reading the changelog never ends. `loop`: after the first partition is taken over, the event loop is
blocked. `sync`: after the first JoinGroup the worker sends SyncGroup only when the file that `GO` names exists.
`coordination`: aiokafka's search for the coordinator of the group fails as it does without a list of brokers.
`unlisted`: the first three answers about the cluster that each thread of the worker gets name no broker.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance

from traceweir.streams.cli.main import main
from traceweir.streams.worker.runtime.changelog_restore import ChangelogRestore
from traceweir.streams.worker.runtime.checkpoint import Checkpoints
from traceweir.streams.worker.runtime.delivery import PlainSends
from traceweir.streams.worker.runtime.watchdog import Watch

LIMIT_S = 2.0
GO = "TRACEWEIR_TESTS_GO"
EMPTY_ANSWERS = 3


async def hang(self: Any, *args: Any, **options: Any) -> Any:
    """Never returns."""
    await asyncio.Event().wait()


def fetch_all_but_one() -> None:
    """Omits one partition from every request."""
    real = Fetcher._get_actions_per_node

    def actions(self: Any, assignment: Any) -> Any:
        tps = [tp for tp in assignment.tps if (tp.topic, tp.partition) != ("traceweir.traces", 1)]
        return real(self, SimpleNamespace(tps=tps, state_value=assignment.state_value))

    Fetcher._get_actions_per_node = actions


def hang_in_checkpoints() -> None:
    """Lets single records pass, which have neither rows nor offsets: a worker writes its config before it is ready."""
    real = PlainSends.send

    async def send(self: Any, rows: Any, outputs: Any, offsets: Any, further: Any = None) -> Any:
        if rows or offsets:
            await hang(self)
        return await real(self, rows, outputs, offsets, further)

    PlainSends.send = send  # type: ignore[method-assign]


def hold_the_loop() -> None:
    """Blocks as soon as records can arrive."""

    def fetched(self: Any, ends: Any) -> None:
        while True:
            time.sleep(1)

    Checkpoints.fetched = fetched  # type: ignore[method-assign]


def sync_late() -> None:
    """Delays this follower's request until the leader has finished the rebalance round."""
    real = CoordinatorGroupRebalance._on_join_follower

    def wait() -> None:
        while not Path(os.environ[GO]).exists():
            time.sleep(0.02)

    async def follow(self: Any) -> Any:
        await asyncio.to_thread(wait)
        return await real(self)

    CoordinatorGroupRebalance._on_join_follower = follow


def lose_the_coordinator() -> None:
    """Fails with what is no error of Kafka."""

    async def look_up(self: Any, kind: Any, key: Any) -> Any:
        raise AssertionError("Did we not perform bootstrap?")

    AIOKafkaClient.coordinator_lookup = look_up


def answer_without_brokers() -> None:
    """Answers as a node does that wakes up after its cluster has given it up."""
    real, answers = AIOKafkaConnection.send, Counter[int]()

    async def send(self: Any, request: Any, expect_response: bool = True) -> Any:
        answer = await real(self, request, expect_response)
        if hasattr(answer, "brokers"):
            answers[threading.get_ident()] += 1
            if answers[threading.get_ident()] <= EMPTY_ANSWERS:
                answer.brokers = []
        return answer

    AIOKafkaConnection.send = send


def arm(what: str) -> None:
    """Blocks the named duty in this process."""
    if what == "fetch":
        fetch_all_but_one()
    elif what == "checkpoint":
        hang_in_checkpoints()
    elif what == "catch-up":
        ChangelogRestore.read = hang  # type: ignore[method-assign]
    elif what == "loop":
        hold_the_loop()
    elif what == "sync":
        sync_late()
    elif what == "coordination":
        lose_the_coordinator()
    elif what == "unlisted":
        answer_without_brokers()
    else:
        raise SystemExit(f"{what!r} is not a duty that this worker can block")


def lose_patience() -> None:
    """Shortens the watchdog's limit to `LIMIT_S`; the setting does not accept less than 10 s."""
    real: Any = Watch.__init__

    def init(self: Watch, *args: Any, **kwargs: Any) -> None:
        real(self, *args[:-1], LIMIT_S, **kwargs)

    Watch.__init__ = init  # type: ignore[method-assign]


if __name__ == "__main__":
    arm(sys.argv[1])
    if sys.argv[1] not in ("sync", "unlisted"):
        lose_patience()
    main(sys.argv[2:])
