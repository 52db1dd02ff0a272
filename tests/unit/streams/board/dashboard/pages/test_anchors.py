"""The page of anchors and the API say what `traceweir anchors list` says of judges, when it was read, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.anchors import standing_of
from tests.support.dashboard_pages import Open, commands
from tests.support.dashboard_site import Site
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.anchor_look import AnchorStanding, standing_at, with_problem

pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(open_store(tmp_path / "store.duckdb"), now=NOW, anchors=standing_of(NOW))


async def test_the_page_shows_the_judge_of_each_criterion_and_its_changes(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/anchors")).text
    for text in (
        "<bdi>safety_v1</bdi>", "1 judge refused", "1 of 2", "learning", "<bdi>openai/local</bdi>",
        "is stricter: of the anchors that passed, 20% more (10% to 30%) fail now, in 80 verdicts",
    ):  # fmt: skip
        assert text in page, text
    assert commands(page) == []


async def test_the_api_has_the_same(site: Site, visit: Open) -> None:
    found = (await visit(site).get("/api/v1/anchors")).json()
    (criterion,) = found["criteria"]
    assert (criterion["pass"], criterion["fail"], criterion["verdicts"]) == (1, 1, 2)
    assert (criterion["agreement"]["agree"], criterion["missing"]) == (1, {"judge_refused": 1})
    assert criterion["days"][0] == {"day": f"{NOW:%Y-%m-%d}", "verdicts": 2, "missing": 1}
    assert criterion["changes"][0]["from"] == "2026-01-31T10:00:00Z"


async def test_without_an_anchor_the_page_says_how_to_make_them(site: Site, visit: Open) -> None:
    site.anchors = AnchorStanding(problem="topic 'traceweir.anchors' does not exist")
    page = (await visit(site).get("/anchors")).text
    assert "&#39;traceweir.anchors&#39; does not exist" in page
    assert commands(page) == [
        "traceweir anchors add --criterion NAME",
        "traceweir anchors run --config eval.json --per-day 240",
    ]


@pytest.mark.parametrize(
    ("standing", "sentence"),
    [
        (AnchorStanding(), "The topics of anchors are being read"),
        (AnchorStanding(read_at=NOW), "There are no anchors."),
        (AnchorStanding(problem="no broker answers"), "No anchors have been read."),
    ],
)
async def test_without_an_anchor_the_page_says_what_is_known(
    standing: AnchorStanding, sentence: str, site: Site, visit: Open
) -> None:
    site.anchors = standing
    page = (await visit(site).get("/anchors")).text
    assert sentence in page
    assert ("cannot be read now" in page) == (standing.problem is not None)


async def test_head_is_answered_without_a_body_and_an_unknown_parameter_is_refused(site: Site, visit: Open) -> None:
    for address in ("/anchors", "/api/v1/anchors"):
        answer = await visit(site).head(address)
        assert (answer.status_code, answer.content) == (200, b"")
    assert (await visit(site).get("/api/v1/anchors?metric=safety_v1")).status_code == 422


@pytest.mark.parametrize("address", ["/alerts", "/trust"])
async def test_alerts_and_trust_lead_to_anchors(address: str, site: Site, visit: Open) -> None:
    assert '">Anchors</a> tell whether a judge has changed' in (await visit(site).get(address)).text


def test_what_cannot_be_read_is_counted() -> None:
    found = standing_at(NOW, [], {"anchor": ["0/1"], "verdict": ["0/1", "0/2"]})
    assert found == AnchorStanding(read_at=NOW, unreadable=3)


def test_a_problem_leaves_what_was_read() -> None:
    found = with_problem(standing_of(NOW), "this user lacks the right Read")
    assert found == standing_of(NOW).model_copy(update={"problem": "this user lacks the right Read"})
