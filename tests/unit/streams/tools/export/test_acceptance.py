"""A target takes what it is sent, unless its last answers say otherwise; one item that it cannot process is no outage."""

from __future__ import annotations

import pytest

from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.answers import Accepted, Answer, Later, Refused, Unfit
from traceweir.streams.tools.export.delivery import Delivery
from traceweir.streams.tools.export.errors import ExportError

ERROR = Later("the target answered 500: text of a user", None, True, "the target answered 500")


def after(*answers: tuple[list[str], Answer]) -> str | None:
    acceptance = Acceptance()
    for items, answer in answers:
        acceptance.note(items, answer)
    return acceptance.problem


def test_a_target_that_was_asked_nothing_yet_takes_what_it_is_sent() -> None:
    assert after() is None


@pytest.mark.parametrize("answer", [Later("the target cannot be reached"), Later("the target answered 503", 7.0)])
def test_an_outage_shows_at_once_and_ends_with_the_next_item_that_is_taken(answer: Later) -> None:
    assert after((["a"], answer)) == f"the target takes nothing now: {answer.reason}"
    assert after((["a"], answer), (["a"], Accepted())) is None
    assert after((["a"], answer), (["a"], Refused("too large"))) is None


def test_an_outage_ends_when_nothing_of_what_was_sent_is_tried_again() -> None:
    acceptance = Acceptance()
    acceptance.note(["a"], ERROR)
    acceptance.forget()
    acceptance.note(["b"], ERROR)
    assert acceptance.problem is None
    acceptance.note(["c"], ERROR)
    assert acceptance.problem is not None
    acceptance.forget()
    assert acceptance.problem is None
    acceptance.end("the exporter ends")
    acceptance.forget()
    assert acceptance.problem == "the exporter ends"


def test_an_error_of_the_target_counts_when_it_is_not_about_one_item() -> None:
    assert after((["a"], ERROR), (["a"], ERROR), (["a"], ERROR)) is None
    assert after((["a"], ERROR), (["b"], Accepted()), (["c"], ERROR)) is None
    problem = "the target takes nothing now: the target answered 500"
    assert after((["a"], ERROR), (["b"], ERROR)) == problem
    assert after((["a", "b"], ERROR)) == problem
    assert after((["a", "b"], ERROR), (["a"], ERROR)) == problem


async def test_what_ends_the_exporter_stays_whatever_is_still_answered() -> None:
    async def send(items: object) -> Answer:
        return Unfit("the target answered 401: text of a user; check the key", "the target answered 401; check the key")

    delivery: Delivery[str] = Delivery(send, trouble=lambda reason: None)
    with pytest.raises(ExportError):
        await delivery.deliver(["a"])
    delivery.acceptance.note(["b"], Accepted())
    expected = "the target refuses this exporter, which ends: the target answered 401; check the key"
    assert delivery.acceptance.problem == expected


async def test_a_target_that_refuses_everything_ends_the_exporter_and_is_not_ready() -> None:
    async def send(items: object) -> Answer:
        return Refused("no such field")

    delivery: Delivery[int] = Delivery(send, trouble=lambda reason: None)
    with pytest.raises(ExportError):
        await delivery.deliver(range(500))
    assert delivery.acceptance.problem == "the target refused 100 items one after another; the exporter ends"
