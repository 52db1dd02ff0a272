"""The metrics of trust say what the page says, of the newest prompt of each judge, and no scrape computes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.labelled_scores import label_of, rate_of, site_of, story
from tests.support.metrics import samples
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.schemas.score import Score
from traceweir.streams.board.dashboard import trust_metrics
from traceweir.streams.board.dashboard.application import routes
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.judge_trust import criterion_trust
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.dashboard.trust_metrics import trust_look
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.worker.telemetry.prometheus import exposition
from traceweir.streams.worker.telemetry.tool_catalogue import TRUST

pytestmark = pytest.mark.slow

SPAN = Selection(NOW - timedelta(days=1), NOW + timedelta(days=1), metric="helpful")


async def computed(site: Site) -> dict[tuple[str, ...], float]:
    """Returns the samples of a site, by name and the values of bound, criterion and judge."""
    metrics = trust_look(site.store, lambda: NOW + timedelta(minutes=1))
    await metrics.look()
    return samples(exposition(metrics.known, TRUST))


async def test_they_say_what_the_page_says(tmp_path: Path) -> None:
    site = site_of(tmp_path, *story())
    found = await computed(site)
    (said,) = criterion_trust(site.store, SPAN, 0.1).judges
    agreement: Any = said.agreement
    for name, rate in (("tpr", agreement.tpr), ("tnr", agreement.tnr), ("corrected_rate", rate_of(said))):
        shown = tuple(found[f"trust_{name}", bound, "helpful", "model-a"] for bound in ("estimate", "low", "high"))
        assert shown == (rate.value, rate.low, rate.high)
    assert found["trust_labels", "helpful", "model-a"] == 60
    assert found["trust_raw_rate", "helpful", "model-a"] == rate_of(said).raw
    assert found["trust_computed_time_seconds",] == (NOW + timedelta(minutes=1)).timestamp()


async def test_a_scrape_gives_what_was_computed_and_asks_no_store(tmp_path: Path) -> None:
    site = site_of(tmp_path, *story())
    metrics = trust_look(site.store, lambda: NOW + timedelta(minutes=1))

    class Closed:
        def query(self, sql: str, parameters: Any = None) -> list[dict[str, Any]]:
            raise AssertionError("a scrape asked the store")

    options = DashboardOptions(lambda: site.state, "full", lambda: NOW, trust_points=lambda: metrics.known)
    api = Dashboard(Closed(), options, Live()).serving(routes(with_login=False))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://127.0.0.1:4180") as client:
        before = await client.get("/api/v1/prometheus")
        await metrics.look()
        after = await client.get("/api/v1/prometheus")
    assert before.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert samples(before.content) == {}
    assert samples(after.content)["trust_labels", "helpful", "model-a"] == 60


async def test_the_newest_prompt_of_a_judge_counts(tmp_path: Path) -> None:
    def of_prompt(number: int, digest: str, age_h: int) -> Score:
        ended = NOW - timedelta(hours=age_h, minutes=number)
        return make_score(
            f"{digest}-{number}", "helpful", 1.0, judge="model-a", metric_digest=digest, occurred_at=ended
        )

    prompts = {"a": (9, 5), "m": (4, 1), "z": (7, 3)}
    scores = [of_prompt(at, digest, age_h) for digest, (number, age_h) in prompts.items() for at in range(number)]
    found = await computed(site_of(tmp_path, scores, [label_of(each, "pass") for each in scores]))
    assert found["trust_labels", "helpful", "model-a"] == 4


async def test_the_number_of_series_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_metrics, "MAX_JUDGES", 2)
    monkeypatch.setattr(trust_metrics, "MAX_CRITERIA", 1)

    def of_judge(criterion: str, judge: int) -> Score:
        ended = NOW - timedelta(minutes=judge)
        return make_score(f"{criterion}-{judge}", criterion, 1.0, judge=f"model-{judge}", occurred_at=ended)

    scores = [
        of_judge(criterion, judge) for criterion, judges in (("helpful", 4), ("safe", 3)) for judge in range(judges)
    ]
    found = await computed(site_of(tmp_path, scores, [label_of(each, "pass") for each in scores]))
    assert {each for each in found if each[0] == "trust_labels"} == {
        ("trust_labels", "helpful", "model-0"),
        ("trust_labels", "helpful", "model-1"),
    }


async def test_without_a_label_that_can_calibrate_only_the_time_is_there(tmp_path: Path) -> None:
    scores, labels = story(20, 10)
    of_users = [label_of(each, "pass", kind="user", drawn="none", inclusion_probability=None) for each in scores[:5]]
    withdrawn = [each.model_copy(update={"withdrawn": True}) for each in labels[5:]]
    found = await computed(site_of(tmp_path, scores, [*of_users, *withdrawn]))
    assert list(found) == [("trust_computed_time_seconds",)]


async def test_a_failure_leaves_the_former_ones_with_their_time(tmp_path: Path) -> None:
    site = site_of(tmp_path, *story())

    class Failing:
        failed = False

        def query(self, sql: str, parameters: Any = None) -> Sequence[Any]:
            if self.failed:
                raise StoreError("the store is gone")
            found: Sequence[Any] = site.store.query(sql, parameters)
            return found

    store: Any = Failing()
    metrics = trust_look(store, lambda: NOW + timedelta(minutes=1))
    await metrics.look()
    former = metrics.known
    store.failed = True
    await metrics.look()
    assert metrics.known is former
    assert former


async def test_names_are_inert(tmp_path: Path) -> None:
    name = f"m{HOSTILE}\n".strip()
    scores = [make_score(f"s-{number}", name, 1.0, judge=f"j\n{HOSTILE}", occurred_at=NOW) for number in range(4)]
    found = await computed(
        site_of(tmp_path, scores, [label_of(each, "pass", criterion=each.metric[:200]) for each in scores])
    )
    ((_, criterion, judge),) = [each for each in found if each[0] == "trust_labels"]
    assert chr(0x202E) not in criterion + judge
    assert "\n" not in criterion + judge


async def test_long_names_that_begin_alike_are_one_series(tmp_path: Path) -> None:
    long = "m" * 130

    def of_judge(criterion: str, judge: str, number: int) -> Score:
        ended = NOW - timedelta(minutes=number)
        return make_score(f"{criterion}-{judge}-{number}", criterion, 1.0, judge=judge, occurred_at=ended)

    judged = [(long, f"{long}-new", range(3)), (long, f"{long}-old", range(5, 10)), (f"{long}-b", long, range(2))]
    scores = [of_judge(criterion, judge, number) for criterion, judge, numbers in judged for number in numbers]
    metrics = trust_look(
        site_of(tmp_path, scores, [label_of(each, "pass") for each in scores]).store, lambda: NOW + timedelta(minutes=1)
    )
    await metrics.look()
    places = [(each.instrument, each.attributes) for each in metrics.known]
    assert len(places) == len(set(places))
    # The criterion with the most labels, and of it the judge with the latest score.
    found = samples(exposition(metrics.known, TRUST))
    assert [value for (name, *_), value in found.items() if name == "trust_labels"] == [3]
