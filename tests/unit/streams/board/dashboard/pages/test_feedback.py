"""The page Feedback shows what users say, with its texts inert and redacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import Site
from tests.support.labelled_scores import label_of, site_of, story

from traceweir.streams.board.store import feedback

pytestmark = pytest.mark.slow

NOTE = "<script>alert(1)</script> write to kim@example.com"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    scores, reviews = story(60, 10)
    changes = {"kind": "user", "drawn": "none", "inclusion_probability": None, "criterion": "thumbs"}
    thumbs = [
        label_of(each, "pass" if number % 4 else "fail", **changes, label_id=f"thumb-{number}", annotator="<b>u</b>")
        for number, each in enumerate(scores)
    ]
    thumbs[0] = thumbs[0].model_copy(update={"note": NOTE})
    return site_of(tmp_path, scores, [*reviews, *thumbs])


async def test_feedback_has_its_counts_slices_and_notes_and_no_review(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/feedback")).text
    assert "thumbs" in page
    assert "helpful" not in page.split("<main", 1)[1]
    assert page.count("agent version <bdi>") == 2
    assert "0.75 <span" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; write to [REDACTED:email]" in page
    assert "kim@example.com" not in page


async def test_without_feedback_the_page_says_so(site: Site, visit: Open) -> None:
    page = (await visit(site).get("/feedback?app_name=nobody")).text
    live = page.split("data-live", 1)[1]
    assert "Nobody has given feedback about these sessions in this time range." in live


async def test_labels_that_are_left_out_are_said_where_the_figures_live(
    site: Site, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "MAX_FEEDBACK", 50)
    page = (await visit(site).get("/feedback")).text
    assert "10 earlier labels of this time range are not counted here" in page.split("data-live", 1)[1]
