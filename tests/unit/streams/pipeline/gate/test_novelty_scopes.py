"""Tests which novelty scopes keep their places when there are more scopes than places."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import orjson
import pytest

from traceweir.streams.pipeline.gate.novelty_scope_rows import SCOPE
from traceweir.streams.pipeline.gate.novelty_scopes import (
    COUNTED,
    ESTABLISHED_AT,
    KEPT_PER_CANDIDATE,
    TRIAL_SHARE,
    NoveltyScopes,
)

LIMIT = 20
ESTABLISHED = LIMIT - LIMIT // TRIAL_SHARE
VERSION = (0, 0, 0)


class Partition:
    """The scopes of a partition, with their rows as of the last checkpoint."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.scopes, self.limit = NoveltyScopes(4, limit), limit
        self.table: dict[bytes, bytes] = {}
        self._traces = 0

    def take(self, names: Iterable[str]) -> None:
        for name in names:
            self._traces += 1
            self.scopes.get(name).remember(f"trace-{self._traces}", "session", VERSION, accepted=True)

    def checkpoint_and_restart(self) -> None:
        for key, row in self.scopes.rows():
            if row is None:
                self.table.pop(key, None)
            else:
                self.table[key] = row
        self.restart()

    def restart(self) -> None:
        self.scopes = NoveltyScopes(4, self.limit)
        self.scopes.load(self.table)

    def kept(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if not self.scopes.get(name).decided}.symmetric_difference(names)


def invented(count: int, candidates_each: int = 1) -> Iterator[str]:
    return (f"invented-{number}" for number in range(count) for _ in range(candidates_each))


def domains(count: int) -> list[str]:
    return [f"domain-{number}" for number in range(count)]


def test_a_flood_of_new_scopes_drops_scopes_on_trial_only() -> None:
    partition = Partition()
    partition.take(domains(ESTABLISHED) * ESTABLISHED_AT)
    partition.take(["on-trial", *invented(1_000)])
    assert partition.kept(["on-trial"]) == set()
    assert partition.kept(domains(ESTABLISHED)) == set(domains(ESTABLISHED))


def test_a_flood_that_establishes_its_scopes_must_be_longer_than_the_credit_of_an_unused_scope() -> None:
    candidates = 3 * ESTABLISHED_AT
    for flood, kept in ((candidates - 2 * ESTABLISHED_AT, True), (candidates + 2 * ESTABLISHED_AT, False)):
        partition = Partition()
        partition.take(["travel"] * candidates)
        partition.take(invented(KEPT_PER_CANDIDATE * flood // ESTABLISHED_AT, ESTABLISHED_AT))
        partition.take(invented(LIMIT))
        assert bool(partition.kept(["travel"])) is kept


@pytest.mark.slow
def test_a_new_domain_is_established_during_a_flood_and_after_all_places_were_taken() -> None:
    partition = Partition()
    partition.take(domains(LIMIT) * COUNTED)
    flood = invented(100)
    for _ in range(ESTABLISHED_AT):
        partition.take(["new", next(flood)])
    partition.take(invented(LIMIT))
    assert partition.kept(["new"]) == set()  # the others are in use, and worth more
    for name in invented(KEPT_PER_CANDIDATE * COUNTED // ESTABLISHED_AT):
        partition.take([name, *["new"] * ESTABLISHED_AT])
    partition.take(invented(1_000))
    assert partition.kept(["new"]) == {"new"}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit", [1, 2, 7, 30])
def test_the_same_scopes_are_kept_whatever_restarts_come_between(limit: int, seed: int) -> None:
    draw = random.Random(seed)
    names = [f"domain-{round(draw.paretovariate(0.4))}" for _ in range(1_500)]
    once, often = Partition(limit), Partition(limit)
    once.take(names)
    while names:
        some = draw.randrange(1, 200)
        often.take(names[:some])
        often.checkpoint_and_restart()
        names = names[some:]
    once.checkpoint_and_restart()
    assert often.table == once.table
    assert len([key for key in once.table if key.startswith(SCOPE)]) <= limit


def test_rows_without_number_and_place_are_read_and_rewritten_together() -> None:
    partition = Partition()
    partition.take(domains(ESTABLISHED) * ESTABLISHED_AT)
    partition.take(["on-trial"])
    partition.checkpoint_and_restart()
    for key in [key for key in partition.table if key.startswith(SCOPE)]:
        about = orjson.loads(partition.table[key])
        partition.table[key] = orjson.dumps({"name": about["name"], "used": about["used"]})
    partition.restart()
    partition.take(invented(10 * LIMIT))
    partition.checkpoint_and_restart()
    assert all("established" in orjson.loads(row) for key, row in partition.table.items() if key.startswith(SCOPE))
    assert partition.kept(domains(ESTABLISHED)) == set(domains(ESTABLISHED))


def test_a_lower_limit_keeps_the_scopes_that_are_worth_most() -> None:
    partition = Partition()
    for number, name in enumerate(domains(ESTABLISHED)):
        partition.take([name] * (ESTABLISHED_AT * (number + 1)))
    partition.checkpoint_and_restart()
    partition.limit = 10
    partition.restart()
    partition.take(invented(50))
    assert partition.kept(domains(ESTABLISHED)) == set(domains(ESTABLISHED)[-8:])
