"""The page and the API say of the store what `traceweir trust` says of files, and link what people and judge differ on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.labelled_scores import label_of, rate_of, site_of, story
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.judge_trust import criterion_trust
from traceweir.streams.board.dashboard.trust_slices import MOST_LABEL_NAMES, SLICED_BY, dimensions_of
from traceweir.streams.board.store import judged
from traceweir.streams.board.store import labels as store_labels
from traceweir.streams.board.store.review import review_point
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.cli.main import main

pytestmark = pytest.mark.slow

SPAN = Selection(NOW - timedelta(days=1), NOW + timedelta(days=1), metric="helpful")
ASKED = "/trust?metric=helpful&span=24h"


async def test_the_api_says_what_the_command_says_of_files(
    tmp_path: Path, visit: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, labels = story()
    site = site_of(tmp_path, scores, labels)
    answer = (await visit(site).get(f"/api/v1{ASKED}")).json()
    (tmp_path / "scores.jsonl").write_bytes(b"\n".join(each.wire() for each in scores))
    (tmp_path / "labels.jsonl").write_bytes(b"\n".join(each.wire() for each in labels))
    files = ["--labels", str(tmp_path / "labels.jsonl"), "--results", str(tmp_path / "scores.jsonl"), "--json"]
    said = []
    for command in ("rate", "agreement"):
        with pytest.raises(SystemExit):
            main(["trust", command, *files])
        said.append(json.loads(capsys.readouterr().out))
    (of_judge,) = answer["judges"]
    rate, agreement = said
    assert {name: rate[name] for name in of_judge["rate"]} == pytest.approx(of_judge["rate"])
    for name in ("labels", "both_pass", "both_fail", "only_judge_passes", "only_people_pass", "kappa"):
        assert of_judge["agreement"][name] == agreement[name]
    assert of_judge["agreement"]["tpr"]["low"] == agreement["tpr"]["low"]
    assert [of_judge["agreement"][f"kappa_{end}"] for end in ("low", "high")] == agreement["kappa_interval"]
    assert of_judge["agreement"]["disagreements"] == agreement["disagreements"]
    assert (of_judge["judge"], answer["unused"]) == ("model-a", {})


async def test_disagreements_are_linked_the_newest_first(tmp_path: Path, visit: Open) -> None:
    site = site_of(tmp_path, *story())
    page = (await visit(site).get(ASKED)).text
    numbers = [int(each) for each in re.findall(r'href="/session\?[^"]*session_id=s-(\d+)"', page)]
    assert numbers
    assert numbers == sorted(numbers)
    assert "People would give a pass rate of" in page
    assert "TPR" in page


async def test_a_slice_needs_20_labels_and_several_values(tmp_path: Path) -> None:
    site = site_of(tmp_path, *story())
    found = criterion_trust(site.store, SPAN, 0.1)
    assert [(each.dimension, each.slice, rate_of(each).labels) for each in found.slices] == [
        ("agent_version", "0", 30),
        ("agent_version", "1", 30),
    ]
    assert sum(rate_of(each).judged for each in found.slices) == 300
    few = site_of(tmp_path / "few", *story(labelled=38))
    assert criterion_trust(few.store, SPAN, 0.1).slices == []


async def test_rates_are_divided_by_the_labels_of_events_such_as_the_language(tmp_path: Path, visit: Open) -> None:
    scores, labels = story()
    spoken = [
        each.model_copy(update={"labels": {"language": "pl" if number % 2 else "<b>de"}, "agent_version": None})
        for number, each in enumerate(scores)
    ]
    site = site_of(tmp_path, spoken, labels)
    found = criterion_trust(site.store, SPAN, 0.1)
    assert [(each.dimension, each.slice, rate_of(each).labels) for each in found.slices] == [
        ("label language", "<b>de", 30),
        ("label language", "pl", 30),
    ]
    assert sum(rate_of(each).judged for each in found.slices) == 300
    page = (await visit(site).get(ASKED)).text
    assert "label language" in page
    assert "<b>de" not in page


def test_rates_are_divided_by_the_most_frequent_labels_only() -> None:
    scores = [make_score(f"s-{number}", labels={f"n{number % 30:02}": "x", "language": "pl"}) for number in range(45)]
    found = dimensions_of(scores)
    assert len(found) == len(SLICED_BY) + MOST_LABEL_NAMES
    assert found[len(SLICED_BY) :] == sorted(["label language", *(f"label n{number:02}" for number in range(19))])


async def test_without_a_label_it_says_how_many_are_needed(tmp_path: Path, visit: Open) -> None:
    site = site_of(tmp_path, story()[0], [])
    page = (await visit(site).get(ASKED)).text
    assert "cannot be said yet" in page
    assert "No label can be compared with a verdict of this judge." in page
    assert "No score of this criterion" in (await visit(site).get("/trust?metric=unknown")).text


async def test_what_does_not_count_is_said(tmp_path: Path) -> None:
    scores, labels = story(40, 5)
    used = [
        labels[0],
        label_of(scores[1], "pass", drawn="flagged", inclusion_probability=None),
        label_of(scores[2], "pass", kind="user"),
        label_of(make_score("s-3", "helpful", 1.0, revision=1), "pass"),
        label_of(scores[4], "unsure"),
    ]
    found = criterion_trust(site_of(tmp_path, scores, used).store, SPAN, 0.1)
    assert sum(found.unused.values()) == 3
    assert "not drawn at random" in found.unused
    (of_judge,) = found.judges
    assert (rate_of(of_judge).labels, rate_of(of_judge).unsure) == (1, 1)


async def test_labels_that_are_not_read_or_are_of_sessions_elsewhere_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, labels = story(40, 30)
    monkeypatch.setattr(store_labels, "MAX_LABELS", 25)
    store = site_of(tmp_path, scores, labels).store
    assert criterion_trust(store, SPAN, 0.1).unused == {"not read: only the latest 25 labels are, reviews first": 5}
    monkeypatch.undo()
    of_one = criterion_trust(store, replace(SPAN, dimensions={"agent_version": "0"}), 0.1)
    assert of_one.unused == {"the session is not among the scores compared here": 15}


async def test_labels_of_a_part_do_not_stand_for_all(tmp_path: Path, visit: Open) -> None:
    scores, _ = story(400, 0)
    even = site_of(tmp_path / "even", scores, [label_of(each, "pass") for each in scores[::7]])
    assert [each.uneven for each in criterion_trust(even.store, SPAN, 0.1).judges] == [[]]
    of_one = [each for each in scores if each.agent_version == "1"]
    site = site_of(tmp_path / "uneven", scores, [label_of(each, "pass") for each in of_one[::4]])
    (of_judge,) = criterion_trust(site.store, SPAN, 0.1).judges
    found = [(each.dimension, each.value, each.labelled, each.subjects) for each in of_judge.uneven]
    assert found == [("agent_version", "0", 0, 200)]
    page = (await visit(site).get(ASKED)).text
    assert "The labels do not stand for all of these scores." in page
    filtered = Selection(SPAN.since, SPAN.until, {"agent_version": "1"}, "helpful")
    assert [each.uneven for each in criterion_trust(site.store, filtered, 0.1).judges] == [[]]
    first = site_of(tmp_path / "first", scores, [label_of(each, "pass") for each in scores[:60]])
    narrow = Selection(NOW - timedelta(minutes=400), NOW + timedelta(minutes=1), metric="helpful")
    (of_judge,) = criterion_trust(first.store, narrow, 0.1).judges
    assert {each.dimension for each in of_judge.uneven} == {"time"}


async def test_coverage_stands_beside_the_rate(tmp_path: Path, visit: Open) -> None:
    scores, labels = story()
    scores += [make_score(f"m-{number}", "helpful", None, not_evaluated_because="error") for number in range(100)]
    scores += [make_score(f"o-{number}", "helpful", None, not_evaluated_because="sampled_out") for number in range(50)]
    site = site_of(tmp_path, scores, labels)
    (of_judge,) = criterion_trust(site.store, SPAN, 0.1).judges
    assert rate_of(of_judge).coverage == 0.75
    assert rate_of(of_judge).worst is not None
    assert "Only 75.0% have a verdict" in (await visit(site).get(ASKED)).text


async def test_of_many_scores_a_random_part_is_compared_with_what_was_drawn_first(
    tmp_path: Path, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, _ = story(400, 0)
    points = {each.session_id: review_point("helpful", each.session_id, 0, None) for each in scores}
    labels = [label_of(each, "pass", inclusion_probability=0.1) for each in scores if points[each.session_id] < 0.1]
    monkeypatch.setattr(judged, "MAX_JUDGED", 100)
    site = site_of(tmp_path, scores, labels)
    found = criterion_trust(site.store, SPAN, 0.1)
    assert found.scores == 400
    assert found.compared == sum(each < 0.25 for each in points.values())
    assert found.unused == {}
    (of_judge,) = found.judges
    assert rate_of(of_judge).labels == len(labels)
    assert "a random part" in (await visit(site).get(ASKED)).text


@pytest.mark.parametrize(
    "query", ["", "metric=", "metric=m&half_width=0", "metric=m&half_width=x", "metric=m&colour=red"]
)
async def test_a_bad_question_is_refused_with_a_sentence(query: str, tmp_path: Path, visit: Open) -> None:
    answer = await visit(Site(open_store(tmp_path / "store.duckdb"))).get(f"/api/v1/trust?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"]


async def test_names_are_inert(tmp_path: Path, visit: Open) -> None:
    scores = [
        make_score(
            f"{number}{HOSTILE}", f"m{HOSTILE}".strip(), float(number % 2), judge=HOSTILE, scorer_version=HOSTILE
        )
        for number in range(6)
    ]
    labels = [label_of(each, "pass", criterion=each.metric[:200]) for each in scores]
    page = (await visit(site_of(tmp_path, scores, labels)).get("/trust", params={"metric": f"m{HOSTILE}".strip()})).text
    assert "disagreements" in page
    assert "<script>document" not in page
    assert chr(0x202E) not in page


async def test_numbers_of_another_scale_have_a_mean_difference_and_count_by_the_threshold(
    tmp_path: Path, visit: Open
) -> None:
    scores, labels = [], []
    for number in range(40):
        people = 1 + number % 5
        value = people + 0.5 + number % 2 / 10
        scores.append(
            make_score(
                f"s-{number}",
                "helpful",
                value,
                threshold=4.0,
                judge="model-a",
                status="PASSED" if value >= 4 else "FAILED",
            )
        )
        labels.append(label_of(scores[-1], None, value=float(people)))
    site = site_of(tmp_path, scores, labels)
    (of_judge,) = criterion_trust(site.store, SPAN, 0.1).judges
    numbers = of_judge.numbers
    assert numbers is not None
    assert (numbers.labels, numbers.people_mean) == (40, 3.0)
    assert numbers.difference == pytest.approx(0.55)
    assert numbers.low is not None
    assert numbers.high is not None
    assert numbers.low < 0.55 < numbers.high
    assert of_judge.agreement is not None
    assert (of_judge.agreement.both_pass, of_judge.agreement.only_judge_passes) == (16, 0)
    page = (await visit(site).get(ASKED)).text
    assert "40 labels with a number" in page
    assert criterion_trust(site.store, SPAN, 0.1).unused == {}


async def test_categories_without_a_threshold_have_their_table_and_no_rate(tmp_path: Path, visit: Open) -> None:
    said = [("good", "good")] * 12 + [("good", "fair")] * 3 + [("poor", "poor")] * 5
    names = {"good": 2.0, "fair": 1.0, "poor": 0.0}
    scores, labels = [], []
    for number, (people, judge) in enumerate(said):
        scores.append(
            make_score(f"s-{number}", "helpful", names[judge], threshold=None, category=judge, judge="model-a")
        )
        labels.append(label_of(scores[-1], None, category=people))
    site = site_of(tmp_path, scores, labels)
    (of_judge,) = criterion_trust(site.store, SPAN, 0.1).judges
    assert of_judge.rate is None
    assert of_judge.categories is not None
    assert [(each.people, each.judge, each.labels) for each in of_judge.categories.table] == [
        ("good", "fair", 3), ("good", "good", 12), ("poor", "poor", 5),
    ]  # fmt: skip
    assert of_judge.categories.agreed.value == pytest.approx(17 / 20)
    assert of_judge.categories.agreed.low < 0.85 < of_judge.categories.agreed.high
    page = (await visit(site).get(ASKED)).text
    assert "20 labels with a category" in page
    # On a narrow screen, the head of the table is hidden.
    assert page.count('<th scope="row" data-label="people">') == 3
    assert 'kappa 0.69 <span class="dim">0.11 to 0.94</span>' in page
    assert "No label can be compared" not in page


async def test_a_kappa_of_few_labels_has_a_dash_and_the_reason(tmp_path: Path, visit: Open) -> None:
    said = [("good", "good")] * 12 + [("poor", "poor")] * 5
    scores = [
        make_score(f"s-{number}", "helpful", 1.0, threshold=None, category=judge, judge="model-a")
        for number, (_, judge) in enumerate(said)
    ]
    labels = [label_of(score, None, category=people) for score, (people, _) in zip(scores, said, strict=True)]
    page = (await visit(site_of(tmp_path, scores, labels)).get(ASKED)).text
    assert re.search(
        r'kappa 1\.00 <span class="dim">– <span title="Kappa has an interval from 20 subjects[^"]*">\(too few', page
    )
