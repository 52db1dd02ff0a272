"""People label what was drawn without knowing what the judge says, and see it afterwards."""

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
from tests.support.dashboard_pages import Tags
from tests.support.dashboard_site import HOSTILE, SECRET, session_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, scores_batch

from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.streams.board.dashboard.access import KnownClient, Tokens, digest_of
from traceweir.streams.board.dashboard.application import create_application
from traceweir.streams.board.dashboard.content import Content
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.dashboard.page.review_view import SHARES
from traceweir.streams.board.store.duckdb_store import DuckDBStore

pytestmark = pytest.mark.slow

CRITERION = "helpful"
REVIEW = "/review?metric=helpful&share=1"
READ, LABEL, ADMIN = (f"a-token-for-{right}" for right in ("read", "label", "admin"))
TOKENS = Tokens(admin=ADMIN, label=LABEL, read=READ)
RATIONALE = "The-judge-gave-this-reason"
VALUE = 0.3141


@pytest.fixture
def store(tmp_path: Path) -> DuckDBStore:
    """A store with four sessions that were judged on their invocation."""
    store = open_store(tmp_path / "store.duckdb")
    fill(store, [0, 1, 2, 3])
    return store


@pytest.fixture
def taken() -> list[Label]:
    return []


@pytest.fixture
async def browse(store: DuckDBStore, taken: list[Label]) -> AsyncIterator[Callable[..., httpx.AsyncClient]]:
    """Returns a function that opens a dashboard of the store, whose labels the store does not read back."""
    async with AsyncExitStack() as stack:

        def open_browser(
            tokens: Tokens | None = None, token: str | None = None, content: Content = "full", kafka: bool = True
        ) -> httpx.AsyncClient:
            write = taken.extend if kafka else None
            options = DashboardOptions(FeedState, content, lambda: NOW + timedelta(minutes=1), write_labels=write)
            application = create_application(Dashboard(store, options, Live()), tokens or Tokens())
            headers = {"accept": "text/html"} | ({"authorization": f"Bearer {token}"} if token else {})
            client = httpx.AsyncClient(
                transport=httpx.ASGITransport(application), base_url="http://127.0.0.1:4180", headers=headers
            )
            stack.push_async_callback(client.aclose)
            return client

        yield open_browser


def fill(store: DuckDBStore, numbers: list[int], revision: int = 0) -> None:
    scores: list[Score] = []
    records = []
    for number in numbers:
        session = session_of(number, NOW, is_new=False) | {"revision": revision}
        records.append(FakeRecord(orjson.dumps(session), number + 100 * revision))
        about: dict[str, Any] = {
            "revision": revision, "level": "invocation", "invocation_id": "1", "result_id": f"{number}-{CRITERION}"
        }  # fmt: skip
        scores.append(
            make_score(session["session_id"], CRITERION, VALUE, rationale=RATIONALE, judge="secret/judge", **about)
        )
        scores.append(
            make_score(
                session["session_id"], "safe", 0.2718, rationale=RATIONALE, revision=revision, result_id=f"{number}-s"
            )
        )
    store.write(scores_batch(*scores, offset=100 * revision))
    store.write(batch_of("sessions", *records))


def form_of(page: str, action: str) -> dict[str, str]:
    """Returns the hidden fields of the form with this action."""
    text = page.split(f'action="{action}"', 1)[1].split("</form>", 1)[0]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', text)}


async def give(client: httpx.AsyncClient, page: str, verdict: str = "pass", note: str = "") -> httpx.Response:
    """Presses a button of the page, and returns the page that follows."""
    sent = {**form_of(page, "/review/label"), "verdict": verdict, "note": note}
    return await client.post("/review/label", data=sent, follow_redirects=True)


@pytest.mark.parametrize("stratum", ["random", "flagged"])
async def test_nothing_tells_the_verdict_before_the_label(stratum: str, browse: Any) -> None:
    share = "1" if stratum == "random" else "0.000001"
    page = (await browse().get(f"/review?metric=helpful&share={share}&stratum={stratum}")).text
    main = page.split("<main", 1)[1]
    assert "Two seats on KTX 127 are booked." in main
    for hidden in (RATIONALE, str(VALUE), "0.314", "0.2718", "0.272", "PASSED", "FAILED", "failed by far", "needs"):
        assert hidden not in main, hidden
    # The judge's name is a choice of the filter alone.
    assert "secret/judge" not in re.sub(r"<datalist.*?</datalist>", "", main, flags=re.DOTALL)


async def test_each_share_that_is_offered_has_a_text_of_its_own(browse: Any) -> None:
    page = (await browse().get(REVIEW)).text
    texts = re.findall(r'<option value="[\d.]+"[^>]*>([\d.]+ %)</option>', page)
    assert texts[:2] == ["0.01 %", "0.02 %"]
    assert texts[-1] == "100 %"
    assert len(set(texts)) == len(texts) == len(SHARES)


async def test_the_label_is_taken_as_by_the_api_and_the_judge_is_shown_beside_it(
    browse: Any, taken: list[Label]
) -> None:
    client = browse(TOKENS, LABEL)
    answer = await give(client, (await client.get(REVIEW)).text, note=" good\r\nenough ")
    (label,) = taken
    assert (label.annotator, label.self_declared, label.kind) == ("label token", False, "review")
    assert (label.criterion, label.verdict, label.note) == (CRITERION, "pass", "good\nenough")
    assert (label.drawn, label.inclusion_probability) == ("random", 1.0)
    assert (label.subject.level, label.subject.invocation_id, label.subject.revision) == ("invocation", "1", 0)
    given = answer.text.split('id="given"', 1)[1].split("</section>", 1)[0]
    assert RATIONALE in given
    assert "failed 0.314, needs 0.75" in given
    assert "you differ" in given
    assert "0.272" not in answer.text


async def test_what_i_have_labelled_is_out_of_my_queue_before_the_store_has_it(browse: Any, taken: list[Label]) -> None:
    client = browse(TOKENS, LABEL)
    page = (await client.get(REVIEW)).text
    assert "0 of 4 drawn subjects labelled" in page
    for verdict in ("pass", "unsure", "fail", "pass"):
        page = (await give(client, page, verdict)).text
    assert len({each.subject.session_id for each in taken}) == 4
    assert "4 of 4 drawn subjects labelled, 1 of them unsure" in page
    assert "You have labelled all of this queue." in page
    # Another person is offered the same ones.
    other = (await client.get(REVIEW, headers={"authorization": f"Bearer {ADMIN}"})).text
    assert "0 of 4 drawn subjects labelled" in other


async def test_a_label_is_withdrawn_and_its_subject_comes_again(browse: Any, taken: list[Label]) -> None:
    client = browse()
    page = (await client.get(REVIEW)).text
    first = form_of(page, "/review/label")["about"]
    page = (await give(client, page, note="a slip")).text
    sent = form_of(page, "/review/withdraw")
    page = (await client.post("/review/withdraw", data=sent, follow_redirects=True)).text
    assert [(each.withdrawn, each.note) for each in taken] == [(False, "a slip"), (True, None)]
    assert form_of(page, "/review/label")["about"] == first
    assert "0 of 4" in page
    again = await client.post("/review/withdraw", data=sent)
    assert again.status_code == 422
    assert "was withdrawn" in again.text


async def test_nobody_withdraws_the_label_of_another_token(browse: Any, taken: list[Label]) -> None:
    admin = browse(TOKENS, ADMIN)
    page = (await give(admin, (await admin.get(REVIEW)).text)).text
    sent = form_of(page, "/review/withdraw")
    sent["address"] += "&annotator=admin+token"
    answer = await admin.post("/review/withdraw", data=sent, headers={"authorization": f"Bearer {LABEL}"})
    assert answer.status_code == 422
    assert "is the name of another client" in unescape(answer.text)
    assert [each.withdrawn for each in taken] == [False]


async def test_what_was_passed_over_is_counted_and_comes_back(browse: Any) -> None:
    client = browse()
    page = (await client.get(REVIEW)).text
    first = form_of(page, "/review/label")["about"]
    for _ in range(4):
        page = (await client.get(unescape(re.findall(r'data-key="s"[^>]* href="([^"]*)"', page)[0]))).text
    assert "4 passed over" in page
    back = unescape(re.findall(r'href="([^"]*)">Show the 4', page)[0])
    assert form_of((await client.get(back)).text, "/review/label")["about"] == first


async def test_a_later_revision_asks_to_confirm_the_label(browse: Any, store: DuckDBStore, taken: list[Label]) -> None:
    client = browse()
    page = (await client.get(REVIEW)).text
    for _ in range(4):
        page = (await give(client, page)).text
    fill(store, [0], revision=1)
    page = (await client.get(REVIEW)).text
    assert "3 of 4" in page
    assert "You have labelled an earlier revision" in page
    await give(client, page)
    assert taken[-1].subject.revision == 1
    assert taken[-1].label_id in {each.label_id for each in taken[:4]}


async def test_what_is_worth_a_look_is_flagged_and_never_calibrates(browse: Any, taken: list[Label]) -> None:
    client = browse()
    page = (await client.get("/review?metric=helpful&share=0.000001&stratum=flagged")).text
    answer = await give(client, page)
    (label,) = taken
    assert (label.drawn, label.inclusion_probability, label.calibrates) == ("flagged", None, False)
    assert "It was worth a look: failed by far" in answer.text


async def test_a_draw_offers_again_what_was_labelled_because_it_was_worth_a_look(
    browse: Any, taken: list[Label]
) -> None:
    client = browse()
    picked = (await client.get("/review?metric=helpful&share=0.000001&stratum=flagged")).text
    await give(client, picked, "fail")
    page = (await client.get(REVIEW)).text
    assert "0 of 4 drawn subjects labelled" in page
    for _ in range(4):
        page = (await give(client, page)).text
    assert "4 of 4 drawn subjects labelled" in page
    assert [each.calibrates for each in taken] == [False, True, True, True, True]
    assert taken[0].label_id in {each.label_id for each in taken[1:]}


async def test_a_request_cannot_claim_that_it_was_drawn(browse: Any, taken: list[Label]) -> None:
    client = browse()
    sent = form_of((await client.get(REVIEW)).text, "/review/label") | {"verdict": "pass"}
    sent["address"] = sent["address"].replace("share=1", "share=0.000001")
    answer = await client.post("/review/label", data=sent)
    assert (answer.status_code, taken) == (422, [])
    assert "is not drawn with the share 1e-06" in answer.text


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"verdict": "good"}, "verdict"),
        ({"about": "segment=0"}, "session_id"),
        ({"about": "session_id=s&segment=x"}, "segment"),
        ({"about": "session_id=s&colour=red"}, "colour"),
        ({"address": "https://evil.example/"}, "address"),
        ({"address": "/review"}, "metric is missing"),
        ({"address": "/review?metric=helpful&share=2"}, "share is not above 0"),
        ({"address": f"/review?metric=helpful&annotator={'x' * 201}"}, "a name has at most 200"),
        ({"note": "x" * 4_001}, "note"),
    ],
)
async def test_a_bad_form_is_refused_with_the_rule(
    browse: Any, taken: list[Label], changed: dict[str, str], sentence: str
) -> None:
    client = browse()
    sent = form_of((await client.get(REVIEW)).text, "/review/label") | {"verdict": "pass"} | changed
    answer = await client.post("/review/label", data=sent)
    assert (answer.status_code, taken) == (422, [])
    assert sentence in unescape(answer.text)


@pytest.mark.parametrize("address", ["share=0", "share=nan", "share=x", "after=x", "stratum=both", "span=2y"])
async def test_a_bad_address_is_refused(browse: Any, address: str) -> None:
    assert (await browse().get(f"/review?metric=helpful&{address}")).status_code == 422


async def test_who_cannot_label_is_told_how(browse: Any) -> None:
    page = (await browse(TOKENS, READ).get(REVIEW)).text
    assert "Log in with TRACEWEIR_DASHBOARD_LABEL_TOKEN" in page
    assert 'action="/review/label"' not in page
    assert "this dashboard has no Kafka" in (await browse(kafka=False).get(REVIEW)).text
    hidden = (await browse(content="none").get(REVIEW)).text
    assert "nobody can judge it here" in hidden
    assert 'action="/review/label"' not in hidden


async def test_two_people_are_told_apart_and_their_agreement_is_shown(browse: Any, taken: list[Label]) -> None:
    client = browse()
    for name, verdicts in (("ana", "pass pass fail fail"), ("ben", "pass fail fail fail")):
        page = (await client.get(f"{REVIEW}&annotator={name}")).text
        for verdict in verdicts.split():
            page = (await give(client, page, verdict)).text
    assert {(each.annotator, each.self_declared) for each in taken} == {("ana", True), ("ben", True)}
    table = page.split('aria-label="Agreement of people"', 1)[1].split("</section>", 1)[0]
    cells = re.findall(r'data-label="(?:both|agree|kappa)">([^<]*)<', table)
    assert cells == ["4", "3", "0.50"]


async def test_two_people_with_tokens_of_their_own_are_two_annotators(browse: Any, taken: list[Label]) -> None:
    tokens = Tokens(
        named=tuple(KnownClient(each, "label", digest_of(f"the-token-of-{each}")) for each in ("ana", "ben"))
    )
    client = browse(tokens)
    for name, verdicts in (("ana", "pass pass fail fail"), ("ben", "pass fail fail fail")):
        # The cookie of the login takes the place of the former one.
        await client.post("/login", data={"token": f"the-token-of-{name}"})
        page = (await client.get(REVIEW)).text
        assert "0 of 4 drawn subjects labelled" in page
        for verdict in verdicts.split():
            page = (await give(client, page, verdict)).text
    assert {(each.annotator, each.self_declared) for each in taken} == {("ana", False), ("ben", False)}
    table = page.split('aria-label="Agreement of people"', 1)[1].split("</section>", 1)[0]
    assert re.findall(r'data-label="(?:both|agree|kappa)">([^<]*)<', table) == ["4", "3", "0.50"]


async def test_nobody_labels_or_withdraws_in_the_name_of_another_token(browse: Any, taken: list[Label]) -> None:
    tokens = Tokens(label=LABEL, named=(KnownClient("ana", "label", digest_of("the-token-of-ana")),))
    client = browse(tokens)
    ana = {"authorization": "Bearer the-token-of-ana"}
    asked = form_of((await client.get(REVIEW, headers=ana)).text, "/review/label") | {"verdict": "pass"}
    page = (await client.post("/review/label", data=asked, headers=ana, follow_redirects=True)).text
    withdrawn = form_of(page, "/review/withdraw")
    for action, sent in (("label", asked), ("withdraw", withdrawn)):
        declared = sent | {"address": f"{sent['address']}&annotator=ana"}
        refused = await client.post(f"/review/{action}", data=declared, headers={"authorization": f"Bearer {LABEL}"})
        assert refused.status_code == 422
        assert "is the name of another client" in refused.text
    assert len(taken) == 1


async def test_texts_of_people_and_agents_are_inert_and_redacted(browse: Any, store: DuckDBStore) -> None:
    name = f"odd{HOSTILE}"[:90]
    hostile = make_score(f"x {HOSTILE}", name, 0.1, rationale=HOSTILE, judge=HOSTILE)
    store.write(scores_batch(hostile, offset=500))
    client = browse(content="redacted")
    page = (await client.get(REVIEW)).text
    pages = [await give(client, page, note=f"{HOSTILE} {SECRET}")]
    pages.append(await client.get("/review", params={"metric": name.strip(), "share": "1", "annotator": HOSTILE[:150]}))
    for answer in pages:
        assert answer.status_code == 200
        assert SECRET not in answer.text
        scripts = [attributes.get("src") for tag, attributes in Tags(answer.text).found if tag == "script"]
        assert all(str(each).startswith("/assets/") for each in scripts)
        assert not [tag for tag, attributes in Tags(answer.text).found if tag == "img" or "onerror" in attributes]
        assert chr(0x202E) not in answer.text


async def test_without_a_criterion_the_page_offers_those_with_verdicts(browse: Any) -> None:
    page = (await browse().get("/review")).text
    assert re.findall(r'<option value="(\w+)">\w+ \(4\)', page) == [CRITERION, "safe"]
    assert "Progress" not in page
