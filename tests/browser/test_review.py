"""A person labels sessions with the keyboard alone, and sees the judge's verdict only afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import orjson
import pytest
from tests.browser.test_dashboard import serious_findings
from tests.support.dashboard_site import Site, served, session_of
from tests.support.scaled_criteria import scaled_configs, scaled_scores
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

REVIEW = "/review?metric=hallucinations_v1&share=0.2"


def progress(page: Page) -> int:
    found = re.match(r"(\d+) of", page.locator("#progress").inner_text())
    assert found is not None
    return int(found[1])


def wait_for_progress(page: Page, done: int) -> None:
    # A condition in JavaScript would be evaluated in the page, whose policy forbids it.
    page.locator("#progress", has_text=re.compile(rf"^\s*{done} of")).wait_for()


def test_the_keyboard_alone_labels_three_and_undoes_one(page: Page, address: str) -> None:
    page.goto(f"{address}{REVIEW}&annotator=keyboard")
    subjects = []
    for done, key in enumerate(("1", "2", "3"), 1):
        item = page.locator("#item")
        subjects.append(item.locator(".mono").first.inner_text())
        assert "supported by results" not in page.locator("main").inner_text().split("to judge", 1)[-1]
        page.keyboard.press(key)
        page.wait_for_url("**given=*")
        wait_for_progress(page, done)
        given = page.locator("#given").inner_text()
        assert ("you " + {"1": "pass", "2": "fail", "3": "unsure"}[key]) in given
        assert re.search(r"(passed|failed) [\d.]+, needs 0.8", given)
    assert "1 of them unsure" in page.locator("#progress").inner_text()

    page.keyboard.press("u")
    wait_for_progress(page, 2)
    assert progress(page) == 2


def test_keys_are_letters_in_the_note_and_the_note_is_kept(page: Page, address: str) -> None:
    page.goto(f"{address}{REVIEW}&annotator=notes")
    page.keyboard.press("n")
    page.keyboard.type("123 su")
    assert progress(page) == 0
    assert page.get_by_role("textbox", name="why, if you like").input_value() == "123 su"
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.wait_for_url("**given=*")
    assert "123 su" in page.locator("#given").inner_text()


def test_passing_over_leads_on_and_back(page: Page, address: str) -> None:
    page.goto(f"{address}{REVIEW}&annotator=skips")
    first = page.locator("#item .mono").nth(1).inner_text()
    page.keyboard.press("s")
    page.wait_for_url("**after=*")
    assert page.locator("#item .mono").nth(1).inner_text() != first
    assert "1 passed over" in page.locator("#progress").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_given_label_fits_on_a_phone_and_axe_finds_nothing(
    scheme: Literal["light", "dark"], page: Page, address: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}{REVIEW}&annotator={scheme}")
    page.get_by_role("button", name="Pass").click()
    page.wait_for_url("**given=*")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious_findings(page) == []


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a dashboard whose judge answers with numbers and categories."""
    site = Site(
        open_store(tmp_path_factory.mktemp("scaled") / "store.duckdb"),
        now=NOW + timedelta(minutes=1),
        content="full",
        configs=scaled_configs(),
    )
    for number in range(6):
        site.add(*scaled_scores(number))
    records = [FakeRecord(orjson.dumps(session_of(number, NOW, is_new=False)), number) for number in range(6)]
    site.store.write(batch_of("sessions", *records))
    with served(site) as address:
        yield address


def test_the_keyboard_gives_numbers_and_categories_and_undoes_them(page: Page, scaled: str) -> None:
    for metric, keys, said in (("mood", ("4", "-"), ("4", "unsure")), ("topic", ("2", "-"), ("exchange", "unsure"))):
        page.goto(f"{scaled}/review?metric={metric}&share=1&annotator=keys")
        for done, (key, answer) in enumerate(zip(keys, said, strict=True), 1):
            page.keyboard.press(key)
            wait_for_progress(page, done)
            assert f"you {answer}" in page.locator("#given").inner_text()
        page.keyboard.press("u")
        wait_for_progress(page, 1)


def test_a_number_of_a_larger_scale_is_written_and_one_off_it_is_not_sent(page: Page, scaled: str) -> None:
    page.goto(f"{scaled}/review?metric=share&share=1&annotator=field")
    page.keyboard.press("v")
    page.keyboard.type("120")
    page.keyboard.press("Enter")
    assert page.locator("input[name=value]:invalid").count() == 1
    assert progress(page) == 0
    page.keyboard.press("Control+a")
    page.keyboard.type("62.5")
    page.keyboard.press("Enter")
    wait_for_progress(page, 1)
    assert "you 62.5" in page.locator("#given").inner_text()
    # Unsure needs no number.
    page.keyboard.press("-")
    wait_for_progress(page, 2)


@pytest.mark.parametrize("metric", ["mood", "share", "topic"])
def test_scales_fit_on_a_phone_and_axe_finds_nothing(metric: str, page: Page, scaled: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{scaled}/review?metric={metric}&share=1&annotator=phone")
    page.get_by_role("button", name="Unsure").click()
    page.wait_for_url("**given=*")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious_findings(page) == []
