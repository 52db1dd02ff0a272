"""A batch is delivered: what is temporary is repeated, and what is refused costs no neighbour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from traceweir.streams.tools.export.answers import Accepted, Answer, Later, Refused, Unfit
from traceweir.streams.tools.export.delivery import ATTEMPTS, MAX_WAIT_S, Delivery
from traceweir.streams.tools.export.errors import ExportError


@dataclass
class Target:
    """Answers by a rule, and keeps what it accepted, and how long the sender waited."""

    rule: Callable[[Sequence[int]], Answer]
    accepted: list[int] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    async def send(self, items: Sequence[int]) -> Answer:
        answer = self.rule(items)
        if isinstance(answer, Accepted):
            self.accepted += items
        return answer

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def delivery(self, *, repeats: bool = True) -> Delivery[int]:
        return Delivery(self.send, trouble=self.reasons.append, repeats=repeats, sleep=self.sleep)


def refusing(*bad: int) -> Callable[[Sequence[int]], Answer]:
    return lambda items: Refused("bad") if set(bad) & set(items) else Accepted()


def after(*answers: Answer) -> Callable[[Sequence[int]], Answer]:
    waiting = iter(answers)
    return lambda items: next(waiting, Accepted())


@pytest.mark.parametrize("bad", [(), (0,), (63,), (5, 6, 40), tuple(range(64))])
async def test_refused_items_are_found_and_their_neighbours_are_accepted_in_order(bad: tuple[int, ...]) -> None:
    target = Target(refusing(*bad))
    assert await target.delivery().deliver(range(64)) == [(item, Refused("bad")) for item in bad]
    assert target.accepted == [item for item in range(64) if item not in bad]


async def test_a_batch_without_items_sends_nothing() -> None:
    target = Target(lambda items: pytest.fail("a request without items"))
    assert await target.delivery().deliver([]) == []


async def test_a_temporary_answer_is_repeated_whole_until_it_is_accepted() -> None:
    target = Target(after(*[Later("busy")] * 200))
    delivery = target.delivery()
    assert await delivery.deliver([1, 2]) == []
    assert target.accepted == [1, 2]
    assert delivery.counts == {"requests": 201, "repeated": 200, "sent": 2}
    assert target.reasons == ["busy"] * 200


async def test_the_waits_grow_to_their_limit_unless_the_target_asks_for_others() -> None:
    target = Target(after(*[Later("busy")] * 3, Later("busy", 17.0), *[Later("busy")] * 6))
    await target.delivery().deliver([1])

    asked = target.waits.pop(3)
    assert asked == 17.0
    assert [1 <= target.waits[0] <= 2, 2 <= target.waits[1] <= 3, 4 <= target.waits[2] <= 5] == [True] * 3
    assert target.waits[-1] >= MAX_WAIT_S
    assert max(target.waits) <= MAX_WAIT_S + 1


async def test_an_item_that_makes_the_target_fail_is_found_and_not_final() -> None:
    target = Target(lambda items: Later("500", can_be_the_content=True) if 0 in items else Accepted())
    assert await target.delivery().deliver(range(8)) == [(0, Later("500", can_be_the_content=True))]
    assert target.accepted == [1, 2, 3, 4, 5, 6, 7]
    assert len(target.reasons) == 4 * ATTEMPTS  # for the batch of eight, of four, of two, and the item


async def test_without_repetitions_each_item_is_sent_once_and_nobody_waits() -> None:
    target = Target(after(Later("busy", 600.0), Accepted(), Refused("bad")))
    delivery = target.delivery(repeats=False)
    found = [await delivery.deliver([item]) for item in range(3)]

    assert found == [[(0, Later("busy", 600.0))], [], [(2, Refused("bad"))]]
    assert (target.waits, target.reasons, delivery.counts["requests"]) == ([], ["busy"], 3)


@pytest.mark.parametrize("repeats", [True, False])
async def test_a_target_that_refuses_the_exporter_ends_it(*, repeats: bool) -> None:
    target = Target(lambda items: Unfit("the target answered 401; check the key"))
    with pytest.raises(ExportError, match=r"answered 401; check the key.*where it stood"):
        await target.delivery(repeats=repeats).deliver([1])
    assert target.waits == []


async def test_partial_success_is_counted_and_not_repeated() -> None:
    target = Target(after(Accepted(3, "too old")))
    delivery = target.delivery()
    await delivery.deliver(range(10))

    assert delivery.counts == {"requests": 1, "sent": 7, "rejected": 3}
    assert delivery.last_rejection == "too old"


@pytest.mark.parametrize(("said", "counted"), [(99, 10), (-5, 0)])
async def test_an_absurd_partial_success_cannot_spoil_the_counts(said: int, counted: int) -> None:
    target = Target(after(Accepted(said)))
    delivery = target.delivery()
    await delivery.deliver(range(10))

    assert (delivery.counts["sent"], delivery.counts["rejected"]) == (10 - counted, counted)


async def test_a_target_that_refuses_everything_ends_the_exporter_before_the_loss_grows() -> None:
    target = Target(lambda items: Refused("the target answered 400"))
    with pytest.raises(ExportError, match=r"refused 100 items one after another.*answered 400"):
        await target.delivery().deliver(range(500))


async def test_an_accepted_item_between_refused_ones_keeps_the_exporter_running() -> None:
    target = Target(lambda items: Refused("odd") if len(items) > 1 or items[0] % 2 else Accepted())
    assert len(await target.delivery().deliver(range(500))) == 250
