"""People answer with a number or a category on the scale of the criterion's config, and nothing off it is taken."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from tests.support.dashboard_site import session_of
from tests.support.scaled_criteria import scaled_configs, scaled_scores
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, scores_batch

from traceweir.schemas.labels import Label
from traceweir.streams.board.dashboard.access import Tokens
from traceweir.streams.board.dashboard.application import create_application
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.criterion_scale import VERDICTS, CriterionScale
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.worker.config_topic import TopicState

pytestmark = pytest.mark.slow

SESSIONS = 6


@pytest.fixture
def taken() -> list[Label]:
    return []


@pytest.fixture
async def browse(tmp_path: Path, taken: list[Label]) -> AsyncIterator[Callable[..., httpx.AsyncClient]]:
    """Returns a function that opens a dashboard with sessions that were judged on three scales."""
    store = open_store(tmp_path / "store.duckdb")
    sessions = [FakeRecord(orjson.dumps(session_of(at, NOW, is_new=False)), at) for at in range(SESSIONS)]
    store.write(scores_batch(*(score for at in range(SESSIONS) for score in scaled_scores(at))))
    store.write(batch_of("sessions", *sessions))
    async with AsyncExitStack() as stack:

        def open_browser(configs: TopicState | None = None) -> httpx.AsyncClient:
            found = scaled_configs() if configs is None else configs
            options = DashboardOptions(
                FeedState, "full", lambda: NOW + timedelta(minutes=1), write_labels=taken.extend, configs=lambda: found
            )
            transport = httpx.ASGITransport(create_application(Dashboard(store, options, Live()), Tokens()))
            client = httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1:4180", headers={"accept": "text/html"}
            )
            stack.push_async_callback(client.aclose)
            return client

        yield open_browser


def form_of(page: str) -> str:
    return page.split('action="/review/label"', 1)[1].split("</form>", 1)[0]


def buttons_of(page: str) -> list[tuple[str, str, str]]:
    """Returns field, value and key of each button of the form, as a browser without JavaScript has them too."""
    return re.findall(r'<button name="(\w+)" value="([^"]*)"[^>]*data-key="([^"]*)"', form_of(page))


async def give(client: httpx.AsyncClient, page: str, **answer: str) -> httpx.Response:
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form_of(page))
    sent = {name: unescape(value) for name, value in hidden} | answer
    return await client.post("/review/label", data=sent, follow_redirects=True)


async def test_a_small_scale_has_a_key_for_each_number_and_tells_what_its_ends_mean(
    browse: Any, taken: list[Label]
) -> None:
    client = browse()
    page = (await client.get("/review?metric=mood&share=1")).text
    assert buttons_of(page) == [*(("value", str(each), str(each)) for each in range(1, 6)), ("verdict", "unsure", "-")]
    assert "The user is angry." in page
    page = (await give(client, page, value="4")).text
    (label,) = taken
    assert (label.value, label.verdict, label.drawn, label.inclusion_probability) == (4.0, None, "random", 1.0)
    given = page.split('id="given"', 1)[1].split("</section>", 1)[0]
    assert re.search(r">4</span>", given)
    assert re.search(r"(passed|failed) [123]\.7, needs 3", given)


async def test_a_larger_scale_has_a_field_and_an_answer_of_zero_is_shown(browse: Any, taken: list[Label]) -> None:
    client = browse()
    page = (await client.get("/review?metric=share&share=1")).text
    assert 'type="number" name="value" step="any" min="0.0" max="100.0" required' in form_of(page)
    assert buttons_of(page) == [("verdict", "unsure", "-")]
    page = (await give(client, page, value="0")).text
    assert "you <span" in page
    assert re.search(r'id="given".*?>0</span>', page, re.DOTALL)
    # A button counts more than what stands in the field.
    await give(client, page, value="33", verdict="unsure")
    assert [(each.value, each.verdict) for each in taken] == [(0.0, None), (None, "unsure")]


async def test_categories_have_keys_in_the_order_of_the_config_and_a_difference_is_named(
    browse: Any, taken: list[Label]
) -> None:
    client = browse()
    page = (await client.get("/review?metric=topic&share=1")).text
    assert buttons_of(page) == [
        ("category", "refund", "1"),
        ("category", "exchange", "2"),
        ("category", "other", "3"),
        ("verdict", "unsure", "-"),
    ]
    for _ in range(3):
        page = (await give(client, page, category="other")).text
    assert {each.category for each in taken} == {"other"}
    assert "3 of 6 drawn subjects labelled" in page
    differ = [each.subject.session_id for each in taken]
    assert len(set(differ)) == 3


@pytest.mark.parametrize("metric", ["mood", "share", "topic"])
async def test_nothing_tells_the_judges_answer_before_the_label(metric: str, browse: Any) -> None:
    main = (await browse().get(f"/review?metric={metric}&share=1")).text.split("<main", 1)[1]
    for hidden in ("1.7", "2.7", "3.7", "61.5", "FAILED", "PASSED", "needs"):
        assert hidden not in main, hidden
    # The names of the categories are on the buttons alone.
    assert len({main.count(name) for name in ("refund", "exchange")}) == 1 or metric != "topic"


@pytest.mark.parametrize(
    ("metric", "answer", "sentence"),
    [
        ("mood", {"value": "6"}, "6 is off the scale of mood"),
        ("mood", {"value": "0.9"}, "off the scale"),
        ("mood", {"value": "nan"}, "write a number"),
        ("mood", {"value": ""}, "write a number"),
        ("mood", {}, "write a number"),
        ("mood", {"category": "refund"}, "is no category of mood"),
        ("mood", {"verdict": "pass"}, "is answered on its own scale"),
        ("share", {"value": "1e9"}, "off the scale"),
        ("topic", {"category": "refunds"}, "is no category of topic"),
        ("topic", {"verdict": "fail"}, "is answered on its own scale"),
    ],
)
async def test_an_answer_off_the_scale_is_refused_with_the_scale(
    browse: Any, taken: list[Label], metric: str, answer: dict[str, str], sentence: str
) -> None:
    client = browse()
    refused = await give(client, (await client.get(f"/review?metric={metric}&share=1")).text, **answer)
    assert (refused.status_code, taken) == (422, [])
    assert sentence in unescape(refused.text)


async def test_the_api_refuses_the_same(browse: Any, taken: list[Label]) -> None:
    given = {"session_id": "s-1", "criterion": "mood", "value": 7}
    answer = await browse().post("/api/v1/labels", json=given)
    assert (answer.status_code, taken) == (422, [])
    assert "7 is off the scale of mood, a number from 1 to 5" in answer.json()["detail"]
    assert (await browse().post("/api/v1/labels", json={**given, "value": 5})).status_code == 200


async def test_a_label_is_withdrawn_by_undo(browse: Any, taken: list[Label]) -> None:
    client = browse()
    page = (await give(client, (await client.get("/review?metric=topic&share=1")).text, category="refund")).text
    hidden = re.findall(r'name="(label_id|address)" value="([^"]*)"', page.split('action="/review/withdraw"', 1)[1])
    await client.post("/review/withdraw", data={name: unescape(value) for name, value in hidden[:2]})
    assert [each.withdrawn for each in taken] == [False, True]


async def test_two_people_agree_in_categories(browse: Any) -> None:
    client = browse()
    for name, answers in (("ana", "refund refund other other"), ("ben", "refund other other other")):
        page = (await client.get(f"/review?metric=topic&share=1&annotator={name}")).text
        for category in answers.split():
            page = (await give(client, page, category=category)).text
    table = page.split('aria-label="Agreement of people"', 1)[1].split("</section>", 1)[0]
    assert re.findall(r'data-label="(?:both|agree|kappa)">([^<]*)<', table) == ["4", "3", "0.50"]


async def test_without_the_config_people_say_whether_it_passes(browse: Any, taken: list[Label]) -> None:
    client = browse(TopicState())
    page = (await client.get("/review?metric=mood&share=1")).text
    assert [value for _, value, _ in buttons_of(page)] == ["pass", "fail", "unsure"]
    await give(client, page, verdict="pass")
    assert [each.verdict for each in taken] == ["pass"]


@pytest.mark.parametrize(
    ("scale", "keys", "has_field"),
    [
        (VERDICTS, "123", False),
        (CriterionScale(ends=(0, 4)), "01234-", False),
        (CriterionScale(ends=(0, 1.5)), "-", True),
        (CriterionScale(ends=(-1, 1)), "-", True),
        (CriterionScale(ends=(1, 10)), "-", True),
        (CriterionScale(categories=[f"c{at}" for at in range(12)]), "123456789-", False),
    ],
)
def test_each_answer_has_a_key_of_its_own(scale: CriterionScale, keys: str, has_field: bool) -> None:
    assert "".join(each.key or "" for each in scale.buttons) == keys
    assert scale.has_field is has_field
