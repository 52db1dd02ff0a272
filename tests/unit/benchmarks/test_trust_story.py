"""The story of the judge that becomes too lenient says what was planted, and docs/trust.md quotes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.result_tables import stored, tables_in
from benchmarks.trust_story import Scene, scenes, table

_PAGE = Path(__file__).parents[3] / "docs/trust.md"
_SEEDS = range(1, 6)


@pytest.fixture(scope="module", params=_SEEDS)
def story(request: pytest.FixtureRequest) -> list[Scene]:
    return scenes(request.param)


@pytest.mark.slow
def test_with_labels_of_its_time_each_interval_contains_the_planted_rate(story: list[Scene]) -> None:
    covered = [(scene.stated.low or 1) <= scene.truth <= (scene.stated.high or 0) for scene in story[:3]]

    assert covered == [True] * 3


def test_after_the_drift_the_labels_say_that_the_judge_is_too_lenient(story: list[Scene]) -> None:
    before, after, *_ = story

    assert "too lenient" not in before.stated.sentence
    assert "too lenient" in after.stated.sentence


def test_the_drift_is_seen_in_the_tnr(story: list[Scene]) -> None:
    before, after = (scene.agreement.failing for scene in story[:2] if scene.agreement is not None)
    assert before is not None
    assert after is not None

    assert after.high < before.low


def test_labels_of_before_the_drift_state_a_wrong_rate_and_say_what_they_assume(story: list[Scene]) -> None:
    stated = story[3].stated

    assert stated.method == "rogan-gladen"
    assert (stated.low or 0) > story[3].truth
    assert "assumes that the judge errs as it did" in stated.sentence


@pytest.mark.slow
def test_the_file_has_the_printed_story_and_the_page_a_sentence_of_it() -> None:
    printed = table()

    assert tables_in("\n".join(printed)) == [stored("trust-story")]
    page = " ".join(_PAGE.read_text("utf-8").split())
    assert [line for line in printed if line.startswith("- after: ") and " ".join(line.split()) in page]
